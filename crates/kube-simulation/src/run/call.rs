//! A request of the controller, as far as a plan has to understand it. Pure.

use form::Query;
use http::{Method, Uri};
use serde_json::Value;

use crate::trace::RequestKind;

/// The verb, the path and the version of a request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) signature: String,
    pub(crate) kind: RequestKind,
    /// Whether it is for a lease.
    pub(crate) is_lease: bool,
    /// Whether it is for one object, and not for a collection.
    pub(crate) is_single: bool,
    /// The oldest state that may be shown; `None` if it has to be the latest, or that of a version.
    pub(crate) oldest: Option<u64>,
    /// Whether a watch ends its initial events with a bookmark.
    pub(crate) wants_initial_events: bool,
}

impl Call {
    pub(crate) fn new(method: &Method, uri: &Uri, body: &[u8]) -> Self {
        let query = Query::new(uri.query().unwrap_or_default());
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => "",
        };
        let _version = parts.next();
        let mut rest: Vec<&str> = parts.collect();
        let namespace = match rest.as_slice() {
            ["namespaces", namespace, _, ..] => {
                let namespace = *namespace;
                rest.drain(..2);
                Some(namespace)
            }
            _ => None,
        };
        let resource = rest.first().copied().unwrap_or("/");
        let is_named = rest.len() > 1;
        let (verb, kind, oldest) = match *method {
            Method::POST => ("create", RequestKind::Create, None),
            Method::PUT => ("update", RequestKind::Write, None),
            Method::PATCH => ("patch", RequestKind::Write, None),
            Method::DELETE => ("delete", RequestKind::Write, None),
            _ if matches!(query.get("watch"), Some("true" | "1")) => {
                ("watch", RequestKind::Watch, oldest_beginning(&query))
            }
            // Of parts of an object, such as its scale, the latest state is shown.
            _ if rest.len() > 2 || resource == "/" => ("get", RequestKind::Read, None),
            _ if is_named => ("get", RequestKind::Read, oldest_read(&query)),
            _ => ("list", RequestKind::Read, oldest_read(&query)),
        };
        let mut signature = format!("{verb}:{resource}");
        if !group.is_empty() {
            signature = format!("{signature}.{group}");
        }
        let created = (kind == RequestKind::Create && !is_named).then(|| created_name(body));
        let names = namespace.into_iter().map(str::to_owned).chain(rest.iter().skip(1).map(|&part| part.to_owned()));
        for name in names.chain(created) {
            signature.push('/');
            signature.push_str(&name);
        }
        let wants_initial_events = query.get("sendInitialEvents") == Some("true");
        let is_lease = group == "coordination.k8s.io" && resource == "leases";
        Self { signature, kind, is_lease, is_single: is_named, oldest, wants_initial_events }
    }
}

/// The oldest state with which a list, or a read of one object, may be answered.
fn oldest_read(query: &Query<'_>) -> Option<u64> {
    let version = query.version()?;
    let is_exact = query.get("resourceVersionMatch") == Some("Exact") || query.get("continue").is_some();
    // With a limit only, the version is the exact one.
    let is_page = version > 0 && query.get("limit").is_some() && query.get("resourceVersionMatch").is_none();
    (!is_exact && !is_page).then_some(version)
}

/// The oldest state with which a watch may begin, if it begins with a state.
fn oldest_beginning(query: &Query<'_>) -> Option<u64> {
    query.version().filter(|&version| match query.get("sendInitialEvents") {
        Some(sends) => sends == "true",
        None => version == 0,
    })
}

/// The name in the body of a create; that of a generated one ends with `*`.
fn created_name(body: &[u8]) -> String {
    let object: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| object["metadata"][name].as_str().filter(|text| !text.is_empty());
    match (text("name"), text("generateName")) {
        (Some(name), _) => name.to_owned(),
        (None, Some(prefix)) => format!("{prefix}*"),
        (None, None) => "?".to_owned(),
    }
}

mod form {
    /// The parameters of a query whose values have no escapes, as versions and flags have none.
    pub(super) struct Query<'a>(&'a str);

    impl<'a> Query<'a> {
        pub(super) fn new(query: &'a str) -> Self {
            Self(query)
        }

        pub(super) fn get(&self, name: &str) -> Option<&'a str> {
            self.0
                .split('&')
                .find_map(|part| part.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
        }

        /// The version that is named; an empty one is none.
        pub(super) fn version(&self) -> Option<u64> {
            self.get("resourceVersion")?.parse().ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &Method, uri: &str, body: &str) -> Call {
        Call::new(method, &uri.parse().expect("a valid URI"), body.as_bytes())
    }

    #[test]
    fn a_signature_names_the_verb_and_the_object() {
        let signature = |method, uri, body| call(&method, uri, body).signature;
        let create = r#"{"metadata":{"generateName":"a-"}}"#;
        assert_eq!(signature(Method::GET, "/api/v1/configmaps?limit=500", ""), "list:configmaps");
        assert_eq!(signature(Method::POST, "/api/v1/namespaces/x/configmaps", create), "create:configmaps/x/a-*");
        assert_eq!(
            signature(Method::PATCH, "/apis/example.com/v1/namespaces/x/sites/a/status", ""),
            "patch:sites.example.com/x/a/status"
        );
        assert_eq!(signature(Method::GET, "/api/v1/namespaces/x", ""), "get:namespaces/x");
        assert_eq!(signature(Method::GET, "/version", ""), "get:/");
    }

    #[test]
    fn only_a_read_that_allows_it_may_be_behind() {
        let oldest = |query: &str| call(&Method::GET, &format!("/api/v1/pods?{query}"), "").oldest;
        assert_eq!(oldest(""), None);
        assert_eq!(oldest("resourceVersion="), None);
        assert_eq!(oldest("resourceVersion=0&limit=5"), Some(0));
        assert_eq!(oldest("resourceVersion=7"), Some(7));
        assert_eq!(oldest("resourceVersion=7&resourceVersionMatch=Exact"), None);
        assert_eq!(oldest("resourceVersion=7&limit=5"), None);
        assert_eq!(oldest("resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan"), Some(7));
        let get = |path: &str| call(&Method::GET, &format!("/api/v1/namespaces/x/pods/{path}"), "").oldest;
        assert_eq!(get("a"), None);
        assert_eq!(get("a?resourceVersion=0"), Some(0));
        assert_eq!(get("a?resourceVersion=7"), Some(7));
        assert_eq!(get("a/log?resourceVersion=0"), None);
        // A watch from a version shows what follows it, and begins with no state.
        assert_eq!(oldest("watch=true&resourceVersion=7"), None);
        assert_eq!(oldest("watch=true"), None);
        assert_eq!(oldest("watch=true&resourceVersion=0"), Some(0));
        assert_eq!(oldest("watch=true&resourceVersion=0&sendInitialEvents=false"), None);
        assert_eq!(oldest("watch=true&sendInitialEvents=true"), None);
        assert_eq!(oldest("watch=true&sendInitialEvents=true&resourceVersion=0"), Some(0));
        assert_eq!(oldest("watch=true&sendInitialEvents=true&resourceVersion=7"), Some(7));
    }
}
