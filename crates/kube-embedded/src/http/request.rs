//! The target of a request: its path and method, parsed once.

use http::{HeaderMap, Method, Uri};
use percent_encoding::percent_decode_str;

use super::negotiate::{Form, Negotiated, Unacceptable};
use super::query::Query;

/// A request without its body.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    pub(crate) target: Target,
    pub(crate) wish: Negotiated,
    /// The form of the response, or why no form is acceptable.
    pub(crate) form: Result<Form, Unacceptable>,
}

impl Head {
    /// The verb of a resource request.
    pub(crate) fn verb(&self) -> Option<Verb> {
        match &self.target {
            Target::Resource(path) => path.verb(&self.method, self.query.flag("watch")),
            _ => None,
        }
    }
}

/// The verb of a request, as in access rules and audit logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Watch a collection.
    Watch,
    /// Create an object.
    Create,
    /// Replace an object.
    Update,
    /// Change a part of an object.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb as access rules spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl From<Verb> for &str {
    fn from(verb: Verb) -> Self {
        verb.name()
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A path below `/api` or `/apis` that names a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The deprecated form `/api/v1/watch/…`, which is always a watch.
    pub(crate) watch_prefix: bool,
}

/// What a path refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// `/api` or `/apis`.
    Groups { core: bool },
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    GroupVersion { group: String, version: String },
    /// A collection, an object or a subresource.
    Resource(ResourcePath),
    /// Anything else: `/version`, `/livez`, …
    Path,
}

impl Target {
    /// Parses a percent-encoded path.
    pub(crate) fn parse(path: &str) -> Self {
        let parts: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["api"] => Self::Groups { core: true },
            ["apis"] => Self::Groups { core: false },
            ["api", version] => Self::GroupVersion { group: String::new(), version: (*version).into() },
            ["apis", group] => Self::Group((*group).into()),
            ["apis", group, version] => Self::GroupVersion { group: (*group).into(), version: (*version).into() },
            ["api", version, rest @ ..] => Self::resource("", version, rest),
            ["apis", group, version, rest @ ..] => Self::resource(group, version, rest),
            _ => Self::Path,
        }
    }

    fn resource(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch_prefix, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let (namespace, rest) = match rest {
            // A namespace is itself a resource: its own subresources do not name a resource within
            // it.
            ["namespaces", _, "status" | "finalize"] | ["namespaces", _] | ["namespaces"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [resource] => (*resource, None, None),
            [resource, name] => (*resource, Some((*name).to_owned()), None),
            [resource, name, sub @ ..] => (*resource, Some((*name).to_owned()), Some(sub.join("/"))),
            [] => return Self::Path,
        };
        Self::Resource(ResourcePath {
            group: group.into(),
            version: version.into(),
            namespace,
            resource: resource.into(),
            name,
            subresource,
            watch_prefix,
        })
    }
}

impl ResourcePath {
    /// The verb of a method on this path; `None` if the method has none.
    ///
    /// `asks_to_watch` is the `watch` parameter of the query; it is ignored for a single object.
    pub(crate) fn verb(&self, method: &Method, asks_to_watch: bool) -> Option<Verb> {
        Some(match (method, &self.name) {
            (&Method::GET | &Method::HEAD, _) if self.watch_prefix => Verb::Watch,
            (&Method::GET | &Method::HEAD, Some(_)) => Verb::Get,
            (&Method::GET | &Method::HEAD, None) if asks_to_watch => Verb::Watch,
            (&Method::GET | &Method::HEAD, None) => Verb::List,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, Some(_)) => Verb::Delete,
            (&Method::DELETE, None) => Verb::DeleteCollection,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match Target::parse(path) {
            Target::Resource(resource) => resource,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_namespace_is_a_place_and_an_object() {
        let pods = resource("/api/v1/namespaces/web/pods");
        assert_eq!((pods.namespace.as_deref(), &*pods.resource, pods.name), (Some("web"), "pods", None));
        let web = resource("/api/v1/namespaces/web");
        assert_eq!((web.namespace, &*web.resource, web.name.as_deref()), (None, "namespaces", Some("web")));
        let finalize = resource("/api/v1/namespaces/web/finalize");
        assert_eq!((finalize.name.as_deref(), finalize.subresource.as_deref()), (Some("web"), Some("finalize")));
        let status = resource("/apis/apps/v1/namespaces/web/deployments/d/status");
        assert_eq!(
            (&*status.group, status.name.as_deref(), status.subresource.as_deref()),
            ("apps", Some("d"), Some("status"))
        );
    }

    #[test]
    fn the_old_watch_path_is_a_watch_of_anything() {
        let one = resource("/api/v1/watch/namespaces/web/pods/a");
        assert!(one.watch_prefix);
        assert_eq!(one.verb(&Method::GET, false), Some(Verb::Watch));
        assert_eq!(resource("/api/v1/pods").verb(&Method::GET, true), Some(Verb::Watch));
    }

    #[test]
    fn watching_a_named_object_is_a_plain_get() {
        assert_eq!(resource("/api/v1/namespaces/web/pods/a").verb(&Method::GET, true), Some(Verb::Get));
    }

    #[test]
    fn percent_encoding_is_undone_in_each_part() {
        assert_eq!(resource("/api/v1/namespaces/a%2Fb/pods").namespace.as_deref(), Some("a/b"));
    }
}
