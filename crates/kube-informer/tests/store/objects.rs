//! Short constructors for objects and deltas, and a short format for events.

#![allow(dead_code, reason = "every test file takes what it needs")]

use kube_informer::store::{Delta, History, Relist, WatchScope};
use kube_informer::store::{Events, Store};
use kube_informer::{Event, Obj, Untyped, Version};

/// An object `ns/name` or `name` at a version, whose uid is its key.
pub(crate) fn object(key: &str, version: u64) -> Obj<Untyped> {
    object_of(key, key, version)
}

/// The same with another uid.
pub(crate) fn object_of(key: &str, uid: &str, version: u64) -> Obj<Untyped> {
    labelled(key, uid, version, "{}")
}

pub(crate) fn labelled(key: &str, uid: &str, version: u64, labels: &str) -> Obj<Untyped> {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","labels":{labels}}}}}"#
    );
    Obj::from_json(json).expect("well-formed")
}

pub(crate) fn changed(key: &str, version: u64) -> Delta {
    Delta::Changed(object(key, version))
}

pub(crate) fn deleted(key: &str, version: u64) -> Delta {
    Delta::Deleted(object(key, version))
}

pub(crate) fn listed(key: &str, version: u64) -> Delta {
    Delta::Listed(object(key, version))
}

pub(crate) fn begun() -> Delta {
    Delta::RelistBegun(Relist { scope: WatchScope::Everything, history: History::Continues })
}

pub(crate) fn went_back() -> Delta {
    Delta::RelistBegun(Relist { scope: WatchScope::Everything, history: History::WentBack })
}

pub(crate) fn ended(version: u64) -> Delta {
    Delta::RelistEnded { scope: WatchScope::Everything, version: Version::from(version) }
}

pub(crate) fn namespace(name: &str) -> WatchScope {
    WatchScope::Namespace(name.into())
}

/// The deltas of a complete list.
pub(crate) fn list(version: u64, objects: &[(&str, u64)]) -> Vec<Delta> {
    let listed = objects.iter().map(|(key, version)| listed(key, *version));
    [begun()].into_iter().chain(listed).chain([ended(version)]).collect()
}

/// A store after its first list.
pub(crate) fn store_of(version: u64, objects: &[(&str, u64)]) -> Store {
    let mut store = Store::default();
    drop(store.apply(list(version, objects)));
    store
}

/// Formats events as lines: `+ key v1 Live`, `~ key v1 v2 Live`, `- key v3 Known Live`.
pub(crate) fn described(events: Events) -> Vec<String> {
    events.map(|event| line(&event)).collect()
}

pub(crate) fn line(event: &Event<Untyped>) -> String {
    let (key, origin) = (event.key(), event.origin());
    match event {
        Event::Added { object, .. } => format!("+ {key} v{} {origin:?}", object.version()),
        Event::Updated { old, new, .. } => format!("~ {key} v{} v{} {origin:?}", old.version(), new.version()),
        Event::Deleted { last, state, .. } => format!("- {key} v{} {state:?} {origin:?}", last.version()),
    }
}
