//! The ownership graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;

use crate::storage::{Key, Object, TableId};

/// The part of an object's metadata that the garbage collector needs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Traits {
    pub(super) uid: String,
    deletion_timestamp: Option<String>,
    finalizers: Vec<String>,
    #[serde(rename = "ownerReferences")]
    pub(super) owners: Vec<Owner>,
}

/// An owner reference.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) uid: String,
    /// Whether foreground deletion of the owner waits for this dependent.
    block_owner_deletion: Option<bool>,
}

impl Traits {
    pub(super) fn of(object: &Arc<Object>) -> Self {
        serde_json::from_slice(object.metadata()).unwrap_or_default()
    }

    /// Whether the object is being deleted and has this finalizer.
    pub(super) fn waits_for(&self, finalizer: &str) -> bool {
        self.deletion_timestamp.is_some() && self.finalizers.iter().any(|each| each == finalizer)
    }
}

/// An existing object.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) table: TableId,
    pub(super) key: Key,
    pub(super) traits: Traits,
}

/// Existing objects by uid, and the dependents of each owner, including owners that do not exist.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    /// Owner uid to dependent uids; the value is whether the dependent blocks the owner's deletion.
    dependents: HashMap<String, BTreeMap<String, bool>>,
}

impl Graph {
    pub(super) fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Inserts or replaces an object. Returns its previous owners.
    pub(super) fn put(&mut self, node: Node) -> Vec<String> {
        let uid = node.traits.uid.clone();
        let before = self.remove(&uid);
        for owner in &node.traits.owners {
            let holds = owner.block_owner_deletion.unwrap_or(false);
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone(), holds);
        }
        self.nodes.insert(uid, node);
        before
    }

    /// Removes an object. Returns its owners.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<String> {
        let Some(node) = self.nodes.remove(uid) else { return Vec::new() };
        let owners: Vec<String> = node.traits.owners.into_iter().map(|owner| owner.uid).collect();
        for owner in &owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        owners
    }

    /// The dependents of an owner, in a fixed order.
    pub(super) fn dependents(&self, owner: &str) -> Vec<String> {
        self.dependents.get(owner).map(|dependents| dependents.keys().cloned().collect()).unwrap_or_default()
    }

    /// Whether a dependent blocks the deletion of its owner.
    pub(super) fn is_blocked(&self, owner: &str) -> bool {
        self.dependents.get(owner).is_some_and(|dependents| dependents.values().any(|holds| *holds))
    }

    /// The uids of the objects of a table.
    pub(super) fn of_table(&self, table: &TableId) -> BTreeSet<String> {
        self.nodes.iter().filter(|(_, node)| node.table == *table).map(|(uid, _)| uid.clone()).collect()
    }
}
