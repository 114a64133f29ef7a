//! The requests that an access rule matches.

use serde_json::{Value, json};

use super::User;
use super::attributes::{Action, Attributes};

/// A pattern of requests to allow or deny. A new rule matches all requests of all users; each
/// method restricts it.
///
/// Several users and groups, verbs, resources, namespaces, names or paths are alternatives: a rule
/// with two verbs matches either. A rule with a resource, a namespace or a name matches only
/// resource requests; one with a path matches only requests to other paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a rule does nothing until it is allowed or denied"]
pub struct Rule {
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resource>,
    namespaces: Vec<String>,
    names: Vec<String>,
    paths: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Resource {
    group: String,
    resource: String,
    subresource: Option<String>,
}

impl Rule {
    /// A rule that matches every request of every user.
    pub fn new() -> Self {
        Self::default()
    }

    /// Matches this user.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.users.push(name.into());
        self
    }

    /// Matches members of this group.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Matches this verb: a [`Verb`](crate::Verb) of requests, or the name of another one, such as
    /// `impersonate`. For paths it is compared with the HTTP method in lower case.
    pub fn verb<'v>(mut self, verb: impl Into<&'v str>) -> Self {
        self.verbs.push(verb.into().to_owned());
        self
    }

    /// Matches these verbs.
    pub fn verbs<'v>(self, verbs: impl IntoIterator<Item = impl Into<&'v str>>) -> Self {
        verbs.into_iter().fold(self, Self::verb)
    }

    /// Matches this resource: its group (`""` for the core group) and its plural, in the notation
    /// of roles.
    ///
    /// `pods` does not match `pods/log`; `*` matches every resource and subresource, `pods/*` every
    /// subresource of pods, `*/status` the status of every resource. The group may be `*` too.
    pub fn resource(mut self, group: impl Into<String>, resource: &str) -> Self {
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (resource, None),
        };
        self.resources.push(Resource { group: group.into(), resource: resource.to_owned(), subresource });
        self
    }

    /// Matches this namespace. The rule then matches nothing at cluster scope.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// Matches the object with this name. The rule then matches requests for a collection only if a
    /// field selector fixes the name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Matches this path, which is not a resource, such as `/metrics`. A trailing `*` matches all
    /// paths with that prefix.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.paths.push(path.into());
        self
    }

    pub(crate) fn fits(&self, attributes: &Attributes<'_>) -> bool {
        self.fits_user(attributes.user) && self.fits_action(&attributes.action)
    }

    pub(super) fn fits_user(&self, user: &User) -> bool {
        self.users.is_empty() && self.groups.is_empty()
            || self.users.iter().any(|name| name == user.name())
            || self.groups.iter().any(|group| user.groups().contains(group))
    }

    /// The resource rules, as in the status of a `SelfSubjectRulesReview`.
    pub(super) fn on_resources(&self) -> Vec<Value> {
        if !self.paths.is_empty() {
            return Vec::new();
        }
        let verbs = self.verb_names();
        let named = |mut rule: Value| {
            if !self.names.is_empty() {
                rule["resourceNames"] = json!(self.names);
            }
            rule
        };
        if self.resources.is_empty() {
            return vec![named(json!({"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}))];
        }
        let resources = self.resources.iter().map(|Resource { group, resource, subresource }| {
            let resource = match subresource {
                Some(subresource) => format!("{resource}/{subresource}"),
                None => resource.clone(),
            };
            named(json!({"verbs": verbs, "apiGroups": [group], "resources": [resource]}))
        });
        resources.collect()
    }

    /// The rule for other paths, as in the status of a `SelfSubjectRulesReview`.
    pub(super) fn on_paths(&self) -> Option<Value> {
        if !(self.resources.is_empty() && self.namespaces.is_empty() && self.names.is_empty()) {
            return None;
        }
        let paths = if self.paths.is_empty() { vec!["*".to_owned()] } else { self.paths.clone() };
        Some(json!({"verbs": self.verb_names(), "nonResourceURLs": paths}))
    }

    fn verb_names(&self) -> Vec<&str> {
        if self.verbs.is_empty() { vec!["*"] } else { self.verbs.iter().map(String::as_str).collect() }
    }

    fn fits_action(&self, action: &Action<'_>) -> bool {
        let fits_verb = |name: &str| self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == name);
        match action {
            Action::Path { method, path } => {
                let about_resources =
                    !(self.resources.is_empty() && self.namespaces.is_empty() && self.names.is_empty());
                let path = self.paths.is_empty() || self.paths.iter().any(|pattern| path_fits(pattern, path));
                !about_resources && fits_verb(method) && path
            }
            Action::Resource { verb, group, resource, subresource, namespace, name } => {
                let any = |wanted: &[String], is: &Option<&str>| {
                    wanted.is_empty() || is.is_some_and(|is| wanted.iter().any(|wanted| wanted == is))
                };
                let resource = |wanted: &Resource| wanted.fits(group, resource, *subresource);
                self.paths.is_empty()
                    && fits_verb(verb)
                    && (self.resources.is_empty() || self.resources.iter().any(resource))
                    && any(&self.namespaces, namespace)
                    && any(&self.names, name)
            }
        }
    }
}

impl Resource {
    fn fits(&self, group: &str, resource: &str, subresource: Option<&str>) -> bool {
        let star_or = |pattern: &str, word: &str| pattern == "*" || pattern == word;
        star_or(&self.group, group)
            && star_or(&self.resource, resource)
            && match (self.subresource.as_deref(), subresource) {
                (None, None) => true,
                (None, Some(_)) => self.resource == "*",
                (Some(_), None) => false,
                (Some(pattern), Some(subresource)) => star_or(pattern, subresource),
            }
    }
}

fn path_fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == pattern,
    }
}
