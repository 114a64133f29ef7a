//! From an event of any watched kind to the keys of a controller's objects. Pure.

use kube::core::ApiResource;
use kube_informer::object::Owner;
use kube_informer::{Event, Obj, ObjectKey, Uid};

use crate::filter::Filter;

/// Returns the keys that an event concerns: those of the state before and after it. None if the
/// filter does not pass it.
pub(super) fn keys<C: 'static, I: IntoIterator<Item = ObjectKey>>(
    event: &Event<C>,
    filter: Option<&Filter<C>>,
    map: impl Fn(&Obj<C>) -> I,
) -> Vec<ObjectKey> {
    if filter.is_some_and(|filter| !filter.passes_event(event)) {
        return Vec::new();
    }
    let (old, new) = event.states();
    let mut keys: Vec<ObjectKey> = Vec::new();
    for key in old.into_iter().chain(new).flat_map(map) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The kind of a controller's objects, as owner references name it.
#[derive(Debug, Clone)]
pub(super) struct OwnerKind {
    group: String,
    kind: String,
    is_namespaced: bool,
}

impl OwnerKind {
    pub(super) fn new(resource: &ApiResource, is_namespaced: bool) -> Self {
        Self { group: resource.group.clone(), kind: resource.kind.clone(), is_namespaced }
    }

    /// Returns the key of the controlling owner of an object, if it is of this kind.
    pub(super) fn owner_key<C>(&self, object: &Obj<C>) -> Option<ObjectKey> {
        let owner = self.owner(object)?;
        let namespace = object.namespace().filter(|_| self.is_namespaced).unwrap_or_default();
        Some(ObjectKey::namespaced(namespace, owner.name()))
    }

    /// Returns the uid of the controlling owner of an object, if it is of this kind.
    pub(super) fn owner_uid<C>(&self, object: &Obj<C>) -> Option<Uid> {
        self.owner(object).map(|owner| owner.uid())
    }

    fn owner<'a, C>(&self, object: &'a Obj<C>) -> Option<Owner<'a>> {
        let group = |owner: &Owner<'a>| owner.api_version().split_once('/').map_or("", |(group, _)| group);
        object.controller().filter(|owner| owner.kind() == self.kind && group(owner) == self.group)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use k8s_openapi::api::apps::v1::ReplicaSet;
    use kube_informer::{Kind, Origin, Untyped};
    use serde_json::json;

    use super::*;

    fn pod(owner: &str) -> Obj<Untyped> {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true});
        Obj::from_json(json!({"metadata": {"name": "p", "namespace": "n", "ownerReferences": [owner]}}).to_string())
            .unwrap()
    }

    fn names(event: &Event<Untyped>, filter: Option<&Filter<Untyped>>) -> Vec<String> {
        let owners = OwnerKind::new(&<ReplicaSet as Kind>::resource(), true);
        keys(event, filter, |object| owners.owner_key(object)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_owners_before_and_after_an_update_are_concerned() {
        assert_eq!(names(&Event::updated(pod("a"), pod("b"), Origin::Live), None), ["n/a", "n/b"]);
        assert_eq!(names(&Event::updated(pod("a"), pod("a"), Origin::Live), None), ["n/a"]);
        assert_eq!(names(&Event::added(pod("b"), Origin::Live), None), ["n/b"]);
    }

    #[test]
    fn filtered_events_concern_nobody() {
        let none = Filter::new(|_, _| false);
        assert!(names(&Event::added(pod("b"), Origin::Live), Some(&none)).is_empty());
    }

    #[test]
    fn only_the_controlling_owner_of_the_same_group_and_kind_counts() {
        let owned = |change: serde_json::Value| {
            let mut owner =
                json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": true});
            for (field, value) in change.as_object().unwrap() {
                owner[field] = value.clone();
            }
            let pod = json!({"metadata": {"name": "p", "namespace": "n", "ownerReferences": [owner]}});
            names(&Event::added(Obj::from_json(pod.to_string()).unwrap(), Origin::Live), None).len()
        };
        assert_eq!(owned(json!({})), 1);
        assert_eq!(owned(json!({"apiVersion": "apps/v2"})), 1, "any version");
        assert_eq!(owned(json!({"apiVersion": "example.com/v1"})), 0);
        assert_eq!(owned(json!({"kind": "Deployment"})), 0);
        assert_eq!(owned(json!({"controller": false})), 0);
    }
}
