//! Kinds by the names people give them: `pods`, `po`, `deploy`, `certificates.pki.acme.com`.

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::core::ApiResource;
use serde_json::Value;

use crate::connection::Connected;
use crate::failure::Failure;

/// A kind that the server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) scope: Scope,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    verbs: Vec<String>,
}

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Cluster,
    Namespaced,
}

impl Served {
    pub(crate) fn resource(&self) -> ApiResource {
        let api_version = match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        };
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version,
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// `pods`, `deployments.apps`: as permissions and other commands name it.
    pub(crate) fn full_name(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// `pod`, `deployment.apps`: as kubectl writes it in front of an object's name.
    pub(crate) fn singular_name(&self) -> String {
        let singular = self.kind.to_lowercase();
        match self.group.as_str() {
            "" => singular,
            group => format!("{singular}.{group}"),
        }
    }

    fn is_watchable(&self) -> bool {
        ["list", "watch"].iter().all(|verb| self.verbs.iter().any(|known| known == verb))
    }

    fn is_called(&self, name: &str) -> bool {
        name == self.plural
            || name == self.singular
            || name == self.kind.to_lowercase()
            || self.short_names.iter().any(|short| short == name)
    }
}

/// Everything the server serves, preferred versions first.
#[derive(Debug)]
pub(crate) struct Kinds(Vec<Served>);

impl Kinds {
    pub(crate) async fn ask(connected: &Connected) -> Result<Self, Failure> {
        let asking = async {
            let mut kinds = Vec::new();
            for path in ["/api", "/apis"] {
                let answer = fetch(&connected.client, path, AGGREGATED).await?;
                match answer["kind"].as_str() {
                    Some("APIGroupDiscoveryList") => aggregated(&answer, &mut kinds),
                    _ => one_by_one(&connected.client, path, &answer, &mut kinds).await?,
                }
            }
            Ok(Self(kinds))
        };
        let timeout = connected.request_timeout.unwrap_or(DISCOVERY_PATIENCE);
        tokio::time::timeout(timeout, asking).await.unwrap_or_else(|_| {
            Err(Failure::Unreachable(format!("the server did not say within {timeout:?} what it serves")))
        })
    }

    /// The kinds that words of the command line mean, each once.
    pub(crate) fn find_all(&self, words: &[String]) -> Result<Vec<Served>, Failure> {
        let mut found: Vec<Served> = Vec::new();
        for word in words.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty()) {
            for kind in self.find(word)? {
                if !found.contains(kind) {
                    found.push(kind.clone());
                }
            }
        }
        Ok(found)
    }

    fn find(&self, word: &str) -> Result<Vec<&Served>, Failure> {
        let lower = word.to_lowercase();
        let (name, qualifier) = lower.split_once('.').map_or((lower.as_str(), ""), |(name, rest)| (name, rest));
        let fits = |kind: &&Served| {
            let group = kind.group.to_lowercase();
            let versioned = format!("{}.{group}", kind.version);
            qualifier.is_empty()
                || qualifier == group
                || qualifier == versioned.trim_end_matches('.')
                || group.starts_with(&format!("{qualifier}."))
        };
        let called = self.0.iter().filter(fits).find(|kind| kind.is_called(name));
        let found: Vec<&Served> = match called {
            Some(kind) => vec![kind],
            None if qualifier.is_empty() => {
                let mut all: Vec<&Served> = Vec::new();
                for kind in self.0.iter().filter(|kind| kind.categories.contains(&lower)) {
                    if kind.is_watchable()
                        && !all.iter().any(|known| known.kind == kind.kind && known.group == kind.group)
                    {
                        all.push(kind);
                    }
                }
                all
            }
            None => Vec::new(),
        };
        match found.as_slice() {
            [] => Err(self.unknown(word, name)),
            [kind] if !kind.is_watchable() => Err(Failure::Usage(format!(
                "{} cannot be listed and watched: the server only offers {}",
                kind.full_name(),
                kind.verbs.join(", ")
            ))),
            _ => Ok(found),
        }
    }

    fn unknown(&self, word: &str, name: &str) -> Failure {
        let mut close: Vec<(usize, &str)> = self
            .0
            .iter()
            .filter(|kind| kind.is_watchable())
            .flat_map(|kind| [&kind.plural, &kind.singular].into_iter().chain(&kind.short_names))
            .filter(|known| !known.is_empty())
            .map(|known| (strsim::damerau_levenshtein(name, known), known.as_str()))
            .filter(|(distance, known)| *distance <= (known.len().max(name.len()) / 3).clamp(1, 3))
            .collect();
        close.sort_unstable();
        close.dedup();
        let hint = match close.first() {
            Some((_, nearest)) => format!("Did you mean {nearest}?"),
            None => "kubectl api-resources lists what there is.".to_owned(),
        };
        Failure::NotFound(format!("the server has no kind called {word:?}. {hint}"))
    }
}

/// How long finding out what there is may take if nothing else is said.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(30);

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const PLAIN: &str = "application/json";

async fn fetch(client: &Client, path: &str, accept: &str) -> Result<Value, Failure> {
    let request = Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new());
    let request = request.map_err(|error| Failure::Other(error.to_string()))?;
    let doing = "asking the server what it serves";
    client.request(request).await.map_err(|error| Failure::of_request(doing, &error))
}

/// All groups in one answer.
fn aggregated(answer: &Value, kinds: &mut Vec<Served>) {
    for group in items(answer, "items") {
        let name = text(&group["metadata"], "name");
        for version in items(group, "versions") {
            for resource in items(version, "resources") {
                let kind = text(&resource["responseKind"], "kind");
                if kind.is_empty() {
                    continue;
                }
                kinds.push(Served {
                    group: name.to_owned(),
                    version: text(version, "version").to_owned(),
                    kind: kind.to_owned(),
                    plural: text(resource, "resource").to_owned(),
                    singular: text(resource, "singularResource").to_owned(),
                    scope: if text(resource, "scope") == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
                    short_names: words(resource, "shortNames"),
                    categories: words(resource, "categories"),
                    verbs: words(resource, "verbs"),
                });
            }
        }
    }
}

/// Servers before 1.26 answer for one group and version at a time.
async fn one_by_one(client: &Client, path: &str, answer: &Value, kinds: &mut Vec<Served>) -> Result<(), Failure> {
    let versions: Vec<String> = match path {
        "/api" => words(answer, "versions"),
        _ => items(answer, "groups")
            .iter()
            .flat_map(|group| items(group, "versions"))
            .map(|version| text(version, "groupVersion").to_owned())
            .collect(),
    };
    for group_version in versions {
        // A group whose own server is down must not hide the others.
        let Ok(list) = fetch(client, &format!("{path}/{group_version}"), PLAIN).await else { continue };
        let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
        for resource in items(&list, "resources").iter().filter(|resource| !text(resource, "name").contains('/')) {
            kinds.push(Served {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: text(resource, "kind").to_owned(),
                plural: text(resource, "name").to_owned(),
                singular: text(resource, "singularName").to_owned(),
                scope: if resource["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster },
                short_names: words(resource, "shortNames"),
                categories: words(resource, "categories"),
                verbs: words(resource, "verbs"),
            });
        }
    }
    Ok(())
}

fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn words(value: &Value, key: &str) -> Vec<String> {
    items(value, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, plural: &str, short: &str) -> Served {
        Served {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: plural.trim_end_matches('s').to_owned(),
            plural: plural.to_owned(),
            scope: Scope::Namespaced,
            singular: plural.trim_end_matches('s').to_owned(),
            short_names: vec![short.to_owned()],
            categories: vec!["all".to_owned()],
            verbs: vec!["list".to_owned(), "watch".to_owned()],
        }
    }

    fn names(kinds: &Kinds, words: &str) -> Vec<String> {
        kinds.find_all(&[words.to_owned()]).unwrap().iter().map(Served::full_name).collect()
    }

    #[test]
    fn a_kind_is_found_by_every_name_kubectl_knows() {
        let kinds = Kinds(vec![
            served("", "events", "ev"),
            served("apps", "deployments", "deploy"),
            served("events.k8s.io", "events", "ev"),
        ]);
        for name in ["deployments", "deployment", "deploy", "Deployments.apps", "deployments.v1.apps", "deploy.apps"] {
            assert_eq!(names(&kinds, name), ["deployments.apps"], "{name}");
        }
        assert_eq!(names(&kinds, "events"), ["events"]);
        assert_eq!(names(&kinds, "events.events.k8s.io,deploy"), ["events.events.k8s.io", "deployments.apps"]);
        assert_eq!(names(&kinds, "all").len(), 3);
    }

    #[test]
    fn a_kind_that_is_not_there_brings_up_the_nearest() {
        let kinds = Kinds(vec![served("", "pods", "po"), served("apps", "deployments", "deploy")]);
        let said = |word: &str| kinds.find_all(&[word.to_owned()]).unwrap_err().to_string();
        assert_eq!(said("deploymets"), "the server has no kind called \"deploymets\". Did you mean deployments?");
        assert!(said("zebras").contains("kubectl api-resources"));
    }
}
