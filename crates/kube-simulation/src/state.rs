//! The objects of the cluster at one revision.

use std::collections::BTreeMap;
use std::fmt;

use kube_embedded::{Change, ChangeKind};
use serde_json::Value;

/// What an object is called: API version, kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectName {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ObjectName {
    pub(crate) fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: text(&object["metadata"]["namespace"]),
            name: text(&object["metadata"]["name"]),
        }
    }
}

impl ObjectName {
    fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether nothing depends on such an object but time: leases and events.
    pub(crate) fn is_background(&self) -> bool {
        matches!((self.group(), self.kind.as_str()), ("coordination.k8s.io", "Lease") | ("" | "events.k8s.io", "Event"))
    }
}

/// The kind has its group: two groups can have kinds of the same name.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group().is_empty() {
            write!(f, ".{}", self.group())?;
        }
        match self.namespace.as_str() {
            "" => write!(f, " {}", self.name),
            namespace => write!(f, " {namespace}/{}", self.name),
        }
    }
}

/// The objects of the cluster at one revision, for [invariants](crate::Simulation::invariant).
#[derive(Debug, Clone, Default)]
pub struct State {
    revision: u64,
    objects: BTreeMap<ObjectName, Value>,
}

impl State {
    /// The revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The objects of a kind, ordered by namespace and name.
    pub fn objects(&self, api_version: &str, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |(id, _)| id.api_version == api_version && id.kind == kind).map(|(_, o)| o)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&ObjectName, &Value)> {
        self.objects.iter()
    }

    #[cfg(test)]
    pub(crate) fn insert(&mut self, object: &Value) {
        self.objects.insert(ObjectName::of(object), object.clone());
    }

    pub(crate) fn apply(&mut self, change: &Change) {
        self.revision = change.revision;
        let name = ObjectName::of(&change.object);
        match change.kind {
            ChangeKind::Created | ChangeKind::Updated => drop(self.objects.insert(name, change.object.clone())),
            ChangeKind::Deleted => drop(self.objects.remove(&name)),
        }
    }
}
