//! Detects writes of other clients in the storage log.

use std::collections::HashSet;

use super::fleet::Cordon;
use super::reconciler::{ObjectName, Reconciler, Task, Workload, controlled_by};
use super::world::World;
use super::write::ObjectReference;
use crate::cluster::Cluster;
use crate::storage::{Change, ChangeKind, TableId};

/// Changes read per call.
const BATCH: usize = 256;

/// Reads the storage logs and distinguishes writes of the simulation from those of other clients.
#[derive(Debug)]
pub(super) struct WriteDetector {
    nodes: Log,
    deployments: Log,
    sets: Log,
    pods: Log,
    services: Log,
    workloads: Vec<(Workload, Log)>,
    /// Objects that the simulation is deleting.
    dying: HashSet<ObjectReference>,
    /// Revisions written by the simulation.
    written: HashSet<u64>,
}

#[derive(Debug)]
struct Log {
    table: TableId,
    cursor: u64,
}

impl WriteDetector {
    /// Starts reading at the current revision. `None` if the server does not serve the required
    /// kinds.
    pub(super) fn new(cluster: &Cluster) -> Option<Self> {
        let registry = cluster.registry();
        let cursor = cluster.storage.revision();
        let log =
            |group: &str, kind: &str| Some(Log { table: registry.by_kind(group, "v1", kind)?.storage.clone(), cursor });
        Some(Self {
            nodes: log("", "Node")?,
            deployments: log("apps", "Deployment")?,
            sets: log("apps", "ReplicaSet")?,
            pods: log("", "Pod")?,
            services: log("", "Service")?,
            workloads: Workload::ALL
                .into_iter()
                .filter_map(|workload| Some((workload, log(workload.group(), workload.kind())?)))
                .collect(),
            dying: HashSet::new(),
            written: HashSet::new(),
        })
    }

    /// Records that the simulation is about to delete an object.
    pub(super) fn dies(&mut self, target: ObjectReference) {
        self.dying.insert(target);
    }

    /// Records that the deletion failed.
    pub(super) fn lives(&mut self, target: &ObjectReference) {
        self.dying.remove(target);
    }

    /// Records the revision of a write of the simulation.
    pub(super) fn note_revision(&mut self, revision: u64) {
        self.written.insert(revision);
    }

    /// Passes all changes since the last call to the world and the reconciler.
    pub(super) fn look(&mut self, cluster: &Cluster, world: &mut World, reconciler: &mut Reconciler) {
        for change in self.nodes.read(cluster) {
            if change.kind == ChangeKind::Updated && !self.written.contains(&change.revision()) {
                let cordon = if change.object.to_value()["spec"]["unschedulable"] == true {
                    Cordon::Closed
                } else {
                    Cordon::Open
                };
                world.fleet.set_cordon(change.object.key().name(), cordon);
            }
        }
        for change in self.deployments.read(cluster) {
            let place = place(&change);
            if change.kind == ChangeKind::Deleted {
                world.let_go(&place.namespace, &place.name);
            } else if !self.written.contains(&change.revision()) {
                take_over_deployment(place, world, reconciler);
            }
        }
        for change in self.sets.read(cluster) {
            let own =
                change.kind == ChangeKind::Deleted && self.dying.remove(&target("apps/v1", "ReplicaSet", &change));
            if own || self.written.contains(&change.revision()) {
                continue;
            }
            if let Some(owner) = controlled_by(&change.object.to_value(), "Deployment") {
                take_over_deployment(owner, world, reconciler);
            }
            reconciler.add(Task::ReplicaSet(place(&change)));
        }
        for (workload, log) in &mut self.workloads {
            for change in log.read(cluster) {
                if change.kind != ChangeKind::Deleted && !self.written.contains(&change.revision()) {
                    reconciler.add(Task::Workload(*workload, place(&change)));
                }
            }
        }
        for change in self.services.read(cluster) {
            match change.kind {
                ChangeKind::Deleted => reconciler.service_gone(&place(&change)),
                ChangeKind::Created | ChangeKind::Updated if self.written.contains(&change.revision()) => {}
                ChangeKind::Created | ChangeKind::Updated => reconciler.add(Task::Service(place(&change))),
            }
        }
        for change in self.pods.read(cluster) {
            self.look_at_pod(&change, world, reconciler);
        }
        // All logs have been read completely, so these revisions cannot appear again.
        self.written.clear();
    }

    fn look_at_pod(&mut self, change: &Change, world: &mut World, reconciler: &mut Reconciler) {
        let place = place(change);
        reconciler.pod_changed(&place.namespace);
        if self.written.contains(&change.revision()) {
            return;
        }
        // A pod is named after its deployment, followed by a hash and a suffix.
        let owner = place.name.rsplitn(3, '-').nth(2).unwrap_or_default();
        if !world.simulates(&place.namespace, owner) {
            let pod = change.object.to_value();
            if let Some(owner) = controlled_by(&pod, "ReplicaSet") {
                reconciler.add(Task::ReplicaSet(owner));
            }
            for workload in Workload::ALL {
                if let Some(owner) = controlled_by(&pod, workload.kind()) {
                    reconciler.add(Task::Workload(workload, owner));
                }
            }
            return reconciler.add(Task::Pod(place));
        }
        let target = target("v1", "Pod", change);
        match change.kind {
            ChangeKind::Deleted => {
                if !self.dying.remove(&target) {
                    world.lost_named(&place.namespace, &place.name);
                }
            }
            ChangeKind::Updated if sets_deletion_timestamp(change) && !self.dying.contains(&target) => {
                self.dying.insert(target);
                world.request_termination(&place.namespace, &place.name);
            }
            ChangeKind::Created | ChangeKind::Updated => {}
        }
    }
}

/// Moves a deployment that another client has changed, and its service, from the world to the
/// reconciler.
fn take_over_deployment(place: ObjectName, world: &mut World, reconciler: &mut Reconciler) {
    if world.simulates(&place.namespace, &place.name) {
        world.let_go(&place.namespace, &place.name);
        reconciler.add(Task::Service(place.clone()));
    }
    reconciler.add(Task::Deployment(place));
}

fn place(change: &Change) -> ObjectName {
    let key = change.object.key();
    ObjectName { namespace: key.namespace().unwrap_or_default().to_owned(), name: key.name().to_owned() }
}

fn target(api_version: &'static str, kind: &'static str, change: &Change) -> ObjectReference {
    let ObjectName { namespace, name } = place(change);
    ObjectReference { api_version, kind, namespace, name }
}

impl Log {
    fn read(&mut self, cluster: &Cluster) -> Vec<std::sync::Arc<Change>> {
        let mut all = Vec::new();
        loop {
            match cluster.storage.changes(&self.table, self.cursor, BATCH) {
                Ok((changes, _)) => {
                    let Some(last) = changes.last() else { return all };
                    self.cursor = last.revision();
                    all.extend(changes);
                }
                // Changes that were compacted in the meantime are lost.
                Err(_) => {
                    self.cursor = cluster.storage.revision();
                    return all;
                }
            }
        }
    }
}

/// Whether the change set the deletion timestamp.
fn sets_deletion_timestamp(change: &Change) -> bool {
    let is_deleting = |object: &crate::storage::Object| {
        let metadata = object.metadata();
        metadata.windows(DELETION_TIMESTAMP.len()).any(|window| window == DELETION_TIMESTAMP)
    };
    is_deleting(&change.object) && change.previous.as_ref().is_some_and(|previous| !is_deleting(previous))
}

const DELETION_TIMESTAMP: &[u8] = br#""deletionTimestamp":"#;
