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
    /// The version that a read names.
    pub(crate) version: u64,
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
        let (verb, kind) = match *method {
            Method::POST => ("create", RequestKind::Create),
            Method::PUT => ("update", RequestKind::Write),
            Method::PATCH => ("patch", RequestKind::Write),
            Method::DELETE => ("delete", RequestKind::Write),
            _ if matches!(query.get("watch"), Some("true" | "1")) => ("watch", RequestKind::Watch),
            // Of parts of an object, such as its scale, the latest state is shown.
            _ if rest.len() > 2 || resource == "/" => ("get", RequestKind::Read),
            _ if is_named => ("get", read_kind(&query)),
            _ => ("list", read_kind(&query)),
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
        let version = query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
        let is_lease = group == "coordination.k8s.io" && resource == "leases";
        Self { signature, kind, is_lease, is_single: is_named, version }
    }
}

/// A read that names no version shows the latest state.
fn read_kind(query: &Query<'_>) -> RequestKind {
    let is_exact = query.get("resourceVersionMatch") == Some("Exact") || query.get("continue").is_some();
    match query.get("resourceVersion") {
        None | Some("") => RequestKind::Read,
        _ if is_exact => RequestKind::Read,
        Some("0") => RequestKind::ReadAny,
        Some(_) if query.get("limit").is_some() && query.get("resourceVersionMatch").is_none() => RequestKind::Read,
        Some(_) => RequestKind::ReadNotOlder,
    }
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

/// The list with the state of exactly this version; for a read of one object a list of it alone,
/// because the server has no read of it at a version.
pub(crate) fn exact_version(uri: &Uri, version: u64, is_single: bool) -> Option<Uri> {
    let replaced = ["resourceVersion=", "resourceVersionMatch=", "limit="];
    let kept = uri.query().unwrap_or_default().split('&');
    let kept = kept.filter(|part| !part.is_empty() && !replaced.iter().any(|name| part.starts_with(name)));
    let exact = [format!("resourceVersion={version}"), "resourceVersionMatch=Exact".to_owned()];
    let (path, name) = match uri.path().rsplit_once('/') {
        Some((path, name)) if is_single => (path, Some(format!("fieldSelector=metadata.name%3D{name}"))),
        _ => (uri.path(), None),
    };
    let query: Vec<String> = kept.map(str::to_owned).chain(exact).chain(name).collect();
    format!("{path}?{}", query.join("&")).parse().ok()
}

/// The object out of a list of it alone; `None` if it is not there.
pub(crate) fn only_item(list: &[u8]) -> Option<Value> {
    let mut list: Value = serde_json::from_slice(list).ok()?;
    let mut item = list["items"].as_array_mut()?.pop()?;
    // Items of a list have no kind of their own.
    if item["kind"].is_null() {
        item["kind"] = list["kind"].as_str()?.strip_suffix("List")?.into();
        item["apiVersion"] = list["apiVersion"].take();
    }
    Some(item)
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
        let kind = |query: &str| call(&Method::GET, &format!("/api/v1/pods?{query}"), "").kind;
        assert_eq!(kind(""), RequestKind::Read);
        assert_eq!(kind("resourceVersion="), RequestKind::Read);
        assert_eq!(kind("resourceVersion=0&limit=5"), RequestKind::ReadAny);
        assert_eq!(kind("resourceVersion=7"), RequestKind::ReadNotOlder);
        assert_eq!(kind("resourceVersion=7&resourceVersionMatch=Exact"), RequestKind::Read);
        assert_eq!(kind("resourceVersion=7&limit=5"), RequestKind::Read);
        assert_eq!(kind("resourceVersion=0&watch=true"), RequestKind::Watch);
        let get = |path: &str| call(&Method::GET, &format!("/api/v1/namespaces/x/pods/{path}"), "").kind;
        assert_eq!(get("a"), RequestKind::Read);
        assert_eq!(get("a?resourceVersion=0"), RequestKind::ReadAny);
        assert_eq!(get("a?resourceVersion=7"), RequestKind::ReadNotOlder);
        assert_eq!(get("a/log?resourceVersion=0"), RequestKind::Read);
    }
}
