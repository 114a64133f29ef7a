//! What an API server answers whose view is behind, made from a list at that version. Pure.

use bytes::Bytes;
use http::Uri;
use serde_json::{Value, json};

/// The list with the state of exactly this version: of what is listed or watched, or for a read of
/// one object of it alone, because the server has no read of it at a version.
pub(crate) fn exact_list(uri: &Uri, version: u64, is_single: bool) -> Option<Uri> {
    let (path, name) = match uri.path().rsplit_once('/') {
        Some((path, name)) if is_single => (path, Some(format!("fieldSelector=metadata.name%3D{name}"))),
        _ => (uri.path(), None),
    };
    let left_out = ["limit=", "watch=", "allowWatchBookmarks=", "timeoutSeconds="];
    let exact = [format!("resourceVersion={version}"), "resourceVersionMatch=Exact".to_owned()];
    with_query(uri, path, &left_out, exact.into_iter().chain(name))
}

/// The watch of what follows this version.
pub(crate) fn watch_from(uri: &Uri, version: u64) -> Option<Uri> {
    with_query(uri, uri.path(), &[], [format!("resourceVersion={version}")])
}

/// The path with the query of this URI, but for versions and what is left out, and more.
fn with_query(uri: &Uri, path: &str, left_out: &[&str], more: impl IntoIterator<Item = String>) -> Option<Uri> {
    let versions = ["resourceVersion=", "resourceVersionMatch=", "sendInitialEvents="];
    let is_kept = |part: &&str| !part.is_empty() && !versions.iter().chain(left_out).any(|name| part.starts_with(name));
    let kept = uri.query().unwrap_or_default().split('&').filter(is_kept).map(str::to_owned);
    let query: Vec<String> = kept.chain(more).collect();
    format!("{path}?{}", query.join("&")).parse().ok()
}

/// The object out of a list of it alone; `None` if it is not there.
pub(crate) fn only_item(list: &[u8]) -> Option<Value> {
    items(serde_json::from_slice(list).ok()?).pop()
}

/// The events with which a watch begins, and the bookmark after them, if it is wanted.
pub(crate) fn initial_events(list: &[u8], wants_bookmark: bool) -> Vec<Bytes> {
    let list: Value = serde_json::from_slice(list).unwrap_or_default();
    let mut end = json!({
        "kind": item_kind(&list), "apiVersion": list["apiVersion"],
        "metadata": {"resourceVersion": list["metadata"]["resourceVersion"]},
    });
    end["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    let added = items(list).into_iter().map(|object| json!({"type": "ADDED", "object": object}));
    let bookmark = wants_bookmark.then(|| json!({"type": "BOOKMARK", "object": end}));
    added.chain(bookmark).map(|event| format!("{event}\n").into()).collect()
}

/// The objects of a list; there they have no kind of their own.
fn items(mut list: Value) -> Vec<Value> {
    let (kind, version) = (item_kind(&list), list["apiVersion"].clone());
    let mut items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    for item in items.iter_mut().filter(|item| item["kind"].is_null()) {
        item["kind"] = kind.clone().into();
        item["apiVersion"] = version.clone();
    }
    items
}

fn item_kind(list: &Value) -> String {
    let kind = list["kind"].as_str().unwrap_or_default();
    kind.strip_suffix("List").unwrap_or(kind).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("a valid URI")
    }

    #[test]
    fn what_is_asked_becomes_a_list_at_a_version_with_the_same_selectors() {
        let list = |text: &str, is_single| exact_list(&uri(text), 7, is_single).map(|uri| uri.to_string());
        let exact = |text: &str| Some(format!("{text}resourceVersion=7&resourceVersionMatch=Exact"));
        assert_eq!(
            list("/api/v1/pods?limit=5&labelSelector=a&resourceVersion=0", false),
            exact("/api/v1/pods?labelSelector=a&")
        );
        let watch = "/api/v1/pods?watch=true&resourceVersion=0&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=9&fieldSelector=b";
        assert_eq!(list(watch, false), exact("/api/v1/pods?fieldSelector=b&"));
        let single = exact("/api/v1/namespaces/x/pods?").map(|text| text + "&fieldSelector=metadata.name%3Da");
        assert_eq!(list("/api/v1/namespaces/x/pods/a?resourceVersion=0", true), single);
        let rest = watch_from(&uri(watch), 7).map(|uri| uri.to_string());
        assert_eq!(rest.as_deref(), Some("/api/v1/pods?watch=true&timeoutSeconds=9&fieldSelector=b&resourceVersion=7"));
    }

    #[test]
    fn a_list_becomes_its_object_or_the_beginning_of_a_watch() {
        let list = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#;
        let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}});
        assert_eq!(only_item(list), Some(pod.clone()));
        assert_eq!(only_item(br#"{"kind":"PodList","apiVersion":"v1","items":[]}"#), None);
        let events: Vec<Value> =
            initial_events(list, true).iter().map(|event| serde_json::from_slice(event).expect("JSON")).collect();
        let end = json!({"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}});
        let bookmark = json!({"kind": "Pod", "apiVersion": "v1", "metadata": end});
        assert_eq!(events, [json!({"type": "ADDED", "object": pod}), json!({"type": "BOOKMARK", "object": bookmark})]);
        assert_eq!(initial_events(list, false).len(), 1);
    }
}
