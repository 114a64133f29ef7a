//! The objects of a namespace: written by the tests, and compared between runs.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::Error;
use crate::informer::Playground;

/// The objects of one kind in a namespace.
pub(super) struct Objects {
    resource: ApiResource,
    kind: &'static str,
    api: Api<DynamicObject>,
}

impl Objects {
    pub(super) fn new(
        playground: &Playground,
        namespace: &str,
        [group, version, kind, plural]: [&'static str; 4],
    ) -> Self {
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Self { api: Api::namespaced_with(playground.client.clone(), namespace, &resource), kind, resource }
    }

    pub(super) async fn create(&self, mut object: Value) -> Result<(), Error> {
        object["apiVersion"] = self.resource.api_version.as_str().into();
        object["kind"] = self.kind.into();
        self.api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    pub(super) async fn patch(&self, name: &str, patch: Value) -> Result<(), Error> {
        self.api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Reports a status in the place of the controllers that a cluster has.
    pub(super) async fn report(&self, name: &str, status: Value) -> Result<(), Error> {
        self.api.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
        Ok(())
    }

    pub(super) async fn delete(&self, name: &str) -> Result<(), Error> {
        self.api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Returns all objects by name.
    pub(super) async fn all(&self) -> Result<BTreeMap<String, Value>, String> {
        let listed = self.api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let named = listed.items.into_iter().map(|object| {
            let name = object.metadata.name.clone().unwrap_or_default();
            Ok((name, serde_json::to_value(object).map_err(|error| error.to_string())?))
        });
        named.collect()
    }
}

/// What is left of a run: objects by kind and name, and what events about the first kind say. The
/// API server writes events about other kinds: when its repair of cluster IPs lists before its
/// cache of addresses has caught up, it reports `ClusterIPNotAllocated` for a new Service.
#[derive(PartialEq)]
pub(super) struct Snapshot {
    objects: BTreeMap<(&'static str, String), Value>,
    events: BTreeSet<String>,
}

impl Snapshot {
    pub(super) async fn take(kinds: &[&Objects], events: &Objects) -> Result<Self, Error> {
        let mut objects = BTreeMap::new();
        for kind in kinds {
            for (name, mut object) in kind.all().await? {
                strip(&mut object);
                objects.insert((kind.kind, name), object);
            }
        }
        let reconciled = kinds.first().map(|kind| kind.kind);
        let all = events.all().await?.into_values();
        let about = all.filter(|event| event.pointer("/involvedObject/kind").and_then(Value::as_str) == reconciled);
        Ok(Self { objects, events: about.map(|event| said(&event)).collect() })
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Fails with the first difference.
    pub(super) fn must_equal(&self, other: &Self, these: &str, those: &str) -> Result<(), Error> {
        let keys: BTreeSet<_> = self.objects.keys().chain(other.objects.keys()).collect();
        for key in keys {
            let (left, right) = (self.objects.get(key), other.objects.get(key));
            if left != right {
                let text = |object: Option<&Value>| object.map_or_else(|| "nothing".to_owned(), Value::to_string);
                let (kind, name) = key;
                return Err(format!("{kind} {name} differs\n{these}: {}\n{those}: {}", text(left), text(right)).into());
            }
        }
        if self.events != other.events {
            return Err(format!("events differ\n{these}: {:?}\n{those}: {:?}", self.events, other.events).into());
        }
        Ok(())
    }
}

/// What an event says, without when and how often.
pub(super) fn said(event: &Value) -> String {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, name) = (text("/involvedObject/kind"), text("/involvedObject/name"));
    format!("{kind} {name}: {} {}: {}", text("/type"), text("/reason"), text("/message"))
}

/// Removes what differs between two runs of the same controller: identities, times, addresses, and
/// who owns which field.
fn strip(object: &mut Value) {
    match object {
        Value::Object(fields) => {
            for own in
                ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace", "lastTransitionTime"]
            {
                fields.remove(own);
            }
            for address in ["clusterIP", "clusterIPs"] {
                fields.remove(address);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
