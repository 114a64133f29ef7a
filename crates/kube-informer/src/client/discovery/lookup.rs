//! Lookup of resources by the names that users type.

use super::served::{Served, Watching};
use crate::client::ServerError;

/// The maximum number of names that an error suggests.
const SUGGESTIONS: usize = 3;

/// A name does not identify a resource that can be watched.
///
/// ```
/// use kube_informer::client::LookupError;
///
/// let error = LookupError::Unknown { name: "deploymnet".to_owned(), suggestions: vec!["deployment".to_owned()] };
/// assert_eq!(error.to_string(), "the server has no resource named \"deploymnet\"; did you mean deployment?");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The server has no resource of this name.
    #[error("the server has no resource named {name:?}{}", did_you_mean(.suggestions))]
    Unknown {
        /// The name.
        name: String,
        /// Similar names, the most similar first.
        suggestions: Vec<String>,
    },
    /// The server has the resource, but it cannot be listed and watched.
    #[error("{resource} can not be listed and watched")]
    NotWatchable {
        /// The resource.
        resource: String,
    },
    /// Discovery failed.
    #[error(transparent)]
    Server(#[from] ServerError),
}

fn did_you_mean(suggestions: &[String]) -> String {
    if suggestions.is_empty() { String::new() } else { format!("; did you mean {}?", suggestions.join(" or ")) }
}

/// Finds a resource as kubectl does: by plural, singular, kind or short name, with or without a
/// group or a group prefix, with or without a version. Full names take precedence over short ones,
/// and resources that the server lists first over later ones.
pub(crate) fn find<'a>(served: &'a [Served], name: &str) -> Result<&'a Served, LookupError> {
    let lowercase = name.trim().to_ascii_lowercase();
    let (base, rest) = lowercase.split_once('.').unwrap_or((&lowercase, ""));
    let mut not_watchable = None;
    for restriction in restrictions(rest) {
        for has_name in [has_full_name, has_short_name] {
            let mut named =
                served.iter().filter(|served| has_name(served, base) && restriction.allows(served)).peekable();
            let first = named.peek().copied();
            if let Some(found) = named.find(|served| served.watching == Watching::Possible) {
                return Ok(found);
            }
            not_watchable = not_watchable.or(first);
        }
    }
    Err(match not_watchable {
        Some(not_watchable) => LookupError::NotWatchable { resource: not_watchable.full_name() },
        None => LookupError::Unknown { name: name.to_owned(), suggestions: suggestions(served, base) },
    })
}

fn has_full_name(served: &Served, name: &str) -> bool {
    served.plural == name || served.singular == name || served.kind.eq_ignore_ascii_case(name)
}

fn has_short_name(served: &Served, name: &str) -> bool {
    served.short_names.iter().any(|short| short == name)
}

/// A restriction of a lookup to a group or version.
enum Restriction<'a> {
    Anywhere,
    Version(&'a str),
    VersionOf { version: &'a str, group: &'a str },
    Group(&'a str),
    GroupPrefix(&'a str),
}

impl Restriction<'_> {
    fn allows(&self, served: &Served) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Version(version) => served.version == *version,
            Self::VersionOf { version, group } => served.version == *version && served.group == *group,
            Self::Group(group) => served.group == *group,
            Self::GroupPrefix(prefix) => served.group.starts_with(prefix),
        }
    }
}

/// The possible interpretations of the part after a name's first dot, the likeliest first.
fn restrictions(rest: &str) -> Vec<Restriction<'_>> {
    if rest.is_empty() {
        return vec![Restriction::Anywhere];
    }
    let mut restrictions = Vec::new();
    match rest.split_once('.') {
        Some((version, group)) if is_version(version) => restrictions.push(Restriction::VersionOf { version, group }),
        None if is_version(rest) => restrictions.push(Restriction::Version(rest)),
        _ => {}
    }
    restrictions.extend([Restriction::Group(rest), Restriction::GroupPrefix(rest)]);
    restrictions
}

/// Whether this is a Kubernetes version name: `v1`, `v2beta3`.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stages = ["alpha", "beta"];
    let staged = stages.iter().find_map(|stage| rest.split_once(stage));
    staged.map_or_else(|| is_number(rest), |(major, minor)| is_number(major) && is_number(minor))
}

fn suggestions(served: &[Served], name: &str) -> Vec<String> {
    let furthest = (name.chars().count() / 3).max(1);
    let distance = |served: &Served| {
        let kind = served.kind.to_ascii_lowercase();
        let names = [&served.plural, &served.singular, &kind];
        let least = names.into_iter().chain(&served.short_names).map(|other| distance(name, other)).min();
        least.filter(|least| *least <= furthest)
    };
    let watchable = served.iter().filter(|served| served.watching == Watching::Possible);
    let mut near: Vec<(usize, String)> =
        watchable.filter_map(|served| Some((distance(served)?, served.full_name()))).collect();
    // Stable sort: of two equally similar names, the one that the server lists first.
    near.sort_by_key(|(distance, _)| *distance);
    let mut suggestions: Vec<String> = Vec::new();
    for (_, name) in near {
        if !suggestions.contains(&name) && suggestions.len() < SUGGESTIONS {
            suggestions.push(name);
        }
    }
    suggestions
}

/// The number of insertions, deletions, substitutions and transpositions of adjacent letters
/// between two words (optimal string alignment distance).
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, theirs) in other.iter().enumerate() {
            let replaced = last[j] + usize::from(letter != theirs);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *theirs {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::discovery::served::ResourceScope;

    fn served(api_version: &str, kind: &str, plural: &str, short_names: &[&str]) -> Served {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Served {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_ascii_lowercase(),
            short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
            categories: Vec::new(),
            scope: ResourceScope::Namespaced,
            watching: Watching::Possible,
        }
    }

    fn cluster() -> Vec<Served> {
        let mut all = vec![
            served("v1", "Pod", "pods", &["po"]),
            served("v1", "Event", "events", &["ev"]),
            served("v1", "Binding", "bindings", &[]),
            served("events.k8s.io/v1", "Event", "events", &["ev"]),
            served("apps/v1", "Deployment", "deployments", &["deploy"]),
            served("apps/v1beta1", "Deployment", "deployments", &["deploy"]),
            served("networking.k8s.io/v1", "Ingress", "ingresses", &["ing"]),
            // The full name of one kind is the short name of another.
            served("example.com/v1", "Widget", "widgets", &["gadget"]),
            served("other.com/v1", "Gadget", "gadgets", &["widget", "po"]),
        ];
        all[2].watching = Watching::Impossible;
        all
    }

    fn found(name: &str) -> String {
        match find(&cluster(), name) {
            Ok(served) => format!("{} {}", served.resource().api_version, served.plural),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_are_found_as_a_person_types_them() {
        for name in
            ["deploy", "deployment", "deployments", "Deployment", "DEPLOYMENTS", "deployments.apps", " deploy.apps"]
        {
            assert_eq!(found(name), "apps/v1 deployments", "{name}");
        }
        for name in ["deployments.v1.apps", "Deployment.v1.apps", "deploy.v1", "deployments.ap"] {
            assert_eq!(found(name), "apps/v1 deployments", "{name}");
        }
        for name in ["deployments.v1beta1.apps", "deploy.v1beta1"] {
            assert_eq!(found(name), "apps/v1beta1 deployments", "{name}");
        }
        assert_eq!((found("po"), found("pods.v1.")), ("v1 pods".to_owned(), "v1 pods".to_owned()));
        assert_eq!(found("ingresses.networking"), "networking.k8s.io/v1 ingresses");
    }

    #[test]
    fn what_the_server_names_first_wins_and_a_full_name_over_a_short_one() {
        assert_eq!(
            (found("events"), found("events.events.k8s.io")),
            ("v1 events".to_owned(), "events.k8s.io/v1 events".to_owned())
        );
        assert_eq!(
            (found("widget"), found("gadget")),
            ("example.com/v1 widgets".to_owned(), "other.com/v1 gadgets".to_owned())
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_what_may_be_meant() {
        let no = |name: &str, rest: &str| format!("the server has no resource named {name:?}{rest}");
        assert_eq!(found("depolyments"), no("depolyments", "; did you mean deployments.apps?"));
        assert_eq!(found("deployments.extensions"), no("deployments.extensions", "; did you mean deployments.apps?"));
        assert_eq!(found("evnets"), no("evnets", "; did you mean events or events.events.k8s.io?"));
        assert_eq!(found("pdo"), no("pdo", "; did you mean pods or gadgets.other.com?"));
        assert_eq!((found("zebras"), found("")), (no("zebras", ""), no("", "")));
        assert_eq!(found("deployments.v9.apps"), no("deployments.v9.apps", "; did you mean deployments.apps?"));
    }

    #[test]
    fn what_cannot_be_watched_is_said_to_be_so() {
        assert_eq!(found("bindings"), "bindings can not be listed and watched");
    }

    #[test]
    fn distances_count_letters() {
        for (one, other, expected) in
            [("", "", 0), ("", "ab", 2), ("pods", "pdos", 1), ("kitten", "sitting", 3), ("a", "b", 1)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }
}
