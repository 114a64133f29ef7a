//! Garbage collection: deletes objects whose owners no longer exist.
//!
//! The collector reads the event log of every table, like a watch, and keeps only the ownership
//! graph. Before it acts, it checks in the store whether an owner still exists.

mod graph;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use self::graph::{Graph, Node, Traits};
use crate::admission::metadata::{self, FOREGROUND, ORPHAN};
use crate::api::delete_options::{DeleteOptions, Policy};
use crate::api::verbs::delete::delete;
use crate::api::verbs::update::replace;
use crate::api::view::View;
use crate::api::write::{Authorship, Write};
use crate::cluster::Cluster;
use crate::http::negotiate::Form;
use crate::kinds::{Registry, ResourceScope};
use crate::storage::{Change, ChangeKind, Key, KeyRange, Object, TableId};

/// Changes read from a table per batch.
const BATCH: usize = 256;

/// Objects processed before the task yields.
const TURN: usize = 256;

/// A queued check of an object, identified by its uid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    /// Check whether the object still has an owner.
    Dependent(String),
    /// The object is in foreground deletion and waits for its dependents to be deleted.
    Foreground(String),
    /// The object waits for its dependents to be orphaned.
    Orphan(String),
}

/// The owners of an object, by state.
#[derive(Debug, Default)]
struct Owners {
    /// Number of owners that exist and are not in foreground deletion.
    solid: usize,
    /// Uids of owners that do not exist.
    dangling: Vec<String>,
    /// Uids of owners in foreground deletion, which wait for their dependents.
    waiting: Vec<String>,
}

/// Runs garbage collection until the future is dropped or the storage is closed.
pub(crate) async fn collect(cluster: &Cluster) {
    let mut revisions = cluster.storage.revisions();
    let mut collector = Collector::default();
    loop {
        revisions.mark_seen();
        collector.read(cluster);
        while collector.work(cluster) {
            tokio::task::yield_now().await;
            collector.read(cluster);
        }
        if revisions.changed().await.is_err() {
            return;
        }
    }
}

#[derive(Debug, Default)]
struct Collector {
    graph: Graph,
    cursors: HashMap<TableId, u64>,
    queue: VecDeque<Task>,
    queued: BTreeSet<Task>,
}

impl Collector {
    /// Updates the graph with all changes since the last call.
    fn read(&mut self, cluster: &Cluster) {
        let revision = cluster.storage.revision();
        if self.cursors.values().any(|cursor| *cursor > revision) {
            // The storage was restored to an earlier revision, so the graph is invalid.
            *self = Self::default();
        }
        for table in cluster.storage.tables() {
            let Some(mut cursor) = self.cursors.get(&table).copied() else {
                self.read_all(cluster, &table);
                continue;
            };
            loop {
                let Ok((changes, _)) = cluster.storage.changes(&table, cursor, BATCH) else {
                    self.read_all(cluster, &table);
                    break;
                };
                let Some(last) = changes.last() else { break };
                cursor = last.revision();
                for change in &changes {
                    self.note(&table, change);
                }
                self.cursors.insert(table.clone(), cursor);
            }
        }
    }

    /// Updates the graph from a list of a table.
    fn read_all(&mut self, cluster: &Cluster, table: &TableId) {
        let snapshot = cluster.storage.list(table, &KeyRange::everything());
        let present: Vec<Traits> = snapshot.objects.iter().map(Traits::of).collect();
        let uids: BTreeSet<&str> = present.iter().map(|traits| traits.uid.as_str()).collect();
        for gone in self.graph.of_table(table).into_iter().filter(|uid| !uids.contains(uid.as_str())) {
            self.gone(&gone);
        }
        for (object, traits) in snapshot.objects.iter().zip(present.clone()) {
            self.there(table, object, traits);
        }
        self.cursors.insert(table.clone(), snapshot.revision);
    }

    fn note(&mut self, table: &TableId, change: &Change) {
        let traits = Traits::of(&change.object);
        match change.kind {
            ChangeKind::Deleted => self.gone(&traits.uid),
            ChangeKind::Created | ChangeKind::Updated => self.there(table, &change.object, traits),
        }
    }

    fn there(&mut self, table: &TableId, object: &Arc<Object>, traits: Traits) {
        let uid = traits.uid.clone();
        if !traits.owners.is_empty() {
            self.add(Task::Dependent(uid.clone()));
        }
        if traits.waits_for(FOREGROUND) {
            self.add(Task::Foreground(uid.clone()));
            // All dependents can be deleted now, not only the blocking ones.
            for dependent in self.graph.dependents(&uid) {
                self.add(Task::Dependent(dependent));
            }
        }
        if traits.waits_for(ORPHAN) {
            self.add(Task::Orphan(uid));
        }
        let node = Node { table: table.clone(), key: object.key().clone(), traits };
        for owner in self.graph.put(node) {
            self.add(Task::Foreground(owner));
        }
    }

    fn gone(&mut self, uid: &str) {
        for dependent in self.graph.dependents(uid) {
            self.add(Task::Dependent(dependent));
        }
        for owner in self.graph.remove(uid) {
            self.add(Task::Foreground(owner));
        }
    }

    fn add(&mut self, task: Task) {
        if self.queued.insert(task.clone()) {
            self.queue.push_back(task);
        }
    }

    /// Processes up to [`TURN`] tasks. Returns whether there were any.
    fn work(&mut self, cluster: &Cluster) -> bool {
        let registry = cluster.registry();
        let mut done = 0;
        while done < TURN {
            let Some(task) = self.queue.pop_front() else { break };
            self.queued.remove(&task);
            let actor = Actor { cluster, registry: &registry, graph: &self.graph };
            match &task {
                Task::Dependent(uid) => actor.process_dependent(uid),
                Task::Foreground(uid) => actor.process_foreground(uid),
                Task::Orphan(uid) => actor.process_orphan(uid),
            }
            done += 1;
        }
        done > 0
    }
}

/// Writes to the cluster according to the graph.
struct Actor<'c> {
    cluster: &'c Cluster,
    registry: &'c Registry,
    graph: &'c Graph,
}

impl Actor<'_> {
    /// Deletes an object without existing owners. If some owners still exist, removes the
    /// references to the others.
    fn process_dependent(&self, uid: &str) {
        let Some((node, object)) = self.find(uid) else { return };
        if metadata::is_deleting(&object) {
            return;
        }
        let owners = self.owners(&node.key, &object);
        if owners.dangling.is_empty() && owners.waiting.is_empty() {
            return;
        }
        if owners.solid > 0 {
            let lost: Vec<String> = owners.dangling.into_iter().chain(owners.waiting).collect();
            self.remove_owners(node, &lost);
            return;
        }
        let finalizers = metadata::finalizers(&object);
        let dependents = self.graph.dependents(uid);
        let has_dependents = !dependents.is_empty();
        let waits = |uid: &String| self.graph.get(uid).is_some_and(|node| node.traits.waits_for(FOREGROUND));
        if !owners.waiting.is_empty() && dependents.iter().any(waits) {
            // A cycle of blocking dependents: unblock it.
            self.amend(node, clear_block_owner_deletion);
        }
        let policy = if !owners.waiting.is_empty() && has_dependents || finalizers.contains(&FOREGROUND) {
            Policy::Foreground
        } else if finalizers.contains(&ORPHAN) {
            Policy::Orphan
        } else {
            Policy::Background
        };
        let options = DeleteOptions { uid: Some(uid.to_owned()), policy: Some(policy), ..DeleteOptions::default() };
        // Fails if the object is already deleted or was replaced by another of that name; then
        // there is nothing to do.
        self.with(node, |write| drop(delete(write, node.key.name(), &options)));
    }

    /// Removes the foreground finalizer of an owner that no dependent blocks.
    fn process_foreground(&self, uid: &str) {
        let Some((node, object)) = self.find(uid) else { return };
        if !metadata::is_deleting(&object) || !metadata::finalizers(&object).contains(&FOREGROUND) {
            return;
        }
        if !self.graph.is_blocked(uid) {
            self.amend(node, |object| remove_finalizer(object, FOREGROUND));
        }
    }

    /// Removes the references of an owner's dependents, and then the owner's orphan finalizer.
    fn process_orphan(&self, uid: &str) {
        let Some((node, object)) = self.find(uid) else { return };
        if !metadata::is_deleting(&object) || !metadata::finalizers(&object).contains(&ORPHAN) {
            return;
        }
        let owner = [uid.to_owned()];
        for dependent in self.graph.dependents(uid) {
            if let Some((dependent, _)) = self.find(&dependent) {
                self.remove_owners(dependent, &owner);
            }
        }
        self.amend(node, |object| remove_finalizer(object, ORPHAN));
    }

    /// Reads the object of a node. `None` if it no longer exists or has another uid.
    fn find(&self, uid: &str) -> Option<(&Node, Value)> {
        let node = self.graph.get(uid)?;
        let object = self.cluster.storage.get(&node.table, &node.key)?.to_value();
        (metadata::text(&object, "uid") == uid).then_some((node, object))
    }

    fn owners(&self, key: &Key, object: &Value) -> Owners {
        let mut owners = Owners::default();
        for reference in metadata::list(object, "ownerReferences") {
            let uid = reference["uid"].as_str().unwrap_or_default().to_owned();
            match self.owner(key, reference) {
                None => owners.solid += 1,
                Some(None) => owners.dangling.push(uid),
                Some(Some(owner)) if metadata::text(&owner, "uid") != uid => owners.dangling.push(uid),
                Some(Some(owner)) => {
                    let waits = metadata::is_deleting(&owner) && metadata::finalizers(&owner).contains(&FOREGROUND);
                    if waits { owners.waiting.push(uid) } else { owners.solid += 1 }
                }
            }
        }
        owners
    }

    /// The owner of a reference, `Some(None)` if it does not exist. `None` if that cannot be
    /// determined; callers then assume that it exists.
    #[expect(clippy::option_option, reason = "not known and not there are different things")]
    fn owner(&self, dependent: &Key, reference: &Value) -> Option<Option<Value>> {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let api_version = text("apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = self.registry.by_kind(group, version, text("kind"))?;
        let key = match kind.scope {
            ResourceScope::Cluster => Key::new(None, text("name")),
            ResourceScope::Namespaced => Key::new(Some(dependent.namespace()?), text("name")),
        };
        Some(self.cluster.storage.get(&kind.storage, &key).map(|owner| owner.to_value()))
    }

    /// Removes owners from an object's owner references.
    fn remove_owners(&self, node: &Node, owners: &[String]) {
        self.amend(node, |object| {
            let kept: Vec<Value> = metadata::list(object, "ownerReferences")
                .iter()
                .filter(|reference| !owners.iter().any(|owner| reference["uid"] == **owner))
                .cloned()
                .collect();
            match kept.is_empty() {
                true => metadata::remove(object, "ownerReferences"),
                false => metadata::set(object, "ownerReferences", kept),
            }
        });
    }

    /// Updates an object, retrying on conflicts.
    fn amend(&self, node: &Node, change: impl Fn(&mut Value)) {
        self.with(node, |write| {
            loop {
                let Some(existing) = write.find(&node.key) else { return };
                let old = write.view.value(&existing);
                if metadata::text(&old, "uid") != node.traits.uid {
                    return;
                }
                let mut new = old.clone();
                change(&mut new);
                match replace(write, &existing, &old, new, None) {
                    Ok(Err(_)) => {}
                    Ok(Ok(_)) | Err(_) => return,
                }
            }
        });
    }

    /// Calls `act` with a write context for a node's kind and namespace.
    fn with(&self, node: &Node, act: impl FnOnce(&Write<'_>)) {
        let Some(kind) = self.registry.stored(&node.table) else { return };
        let view = View::new(kind.clone(), kind, Form::Full, self.cluster.clock);
        let namespace = node.key.namespace();
        act(&Write::internal(self.cluster, &view, namespace, Authorship::Untracked));
    }
}

/// Clears `blockOwnerDeletion` in all owner references of an object.
fn clear_block_owner_deletion(object: &mut Value) {
    let references = object["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten();
    for reference in references {
        if reference["blockOwnerDeletion"] == true {
            reference["blockOwnerDeletion"] = false.into();
        }
    }
}

fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let kept = metadata::finalizers(object).into_iter().filter(|each| *each != finalizer).map(str::to_owned).collect();
    metadata::set_finalizers(object, kept);
}
