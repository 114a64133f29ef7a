//! What others do to the cluster: the controllers see it and act on it.

use std::collections::HashSet;

use super::world::World;
use super::write::{Target, Verb};
use crate::cluster::Cluster;
use crate::metadata;
use crate::storage::{Change, ChangeKind, TableId};

/// How many changes are read at a time.
const BATCH: usize = 256;

/// Reads the log of pods and deployments, and tells its own writes from those of others.
#[derive(Debug)]
pub(super) struct Onlooker {
    pods: Log,
    deployments: Log,
    /// Pods that the cluster itself is deleting, by namespace and name.
    dying: HashSet<(String, String)>,
    /// The revisions of what it wrote into deployments.
    written: HashSet<u64>,
}

#[derive(Debug)]
struct Log {
    table: TableId,
    cursor: u64,
}

impl Onlooker {
    /// Begins with what happens from now on; `None` on a server without pods and deployments.
    pub(super) fn new(cluster: &Cluster) -> Option<Self> {
        let registry = cluster.registry();
        let cursor = cluster.storage.revision();
        let log =
            |group: &str, kind: &str| Some(Log { table: registry.by_kind(group, "v1", kind)?.storage.clone(), cursor });
        Some(Self {
            pods: log("", "Pod")?,
            deployments: log("apps", "Deployment")?,
            dying: HashSet::new(),
            written: HashSet::new(),
        })
    }

    /// Takes note of a write of the cluster itself, before it is made.
    pub(super) fn note(&mut self, verb: &Verb) {
        if let Verb::Delete(Target { kind: "Pod", namespace, name, .. }) = verb {
            self.dying.insert((namespace.clone(), name.clone()));
        }
    }

    /// Takes note of the revision that a write of the cluster itself got.
    pub(super) fn note_revision(&mut self, revision: u64) {
        self.written.insert(revision);
    }

    /// Tells the world what others did since it looked last.
    pub(super) fn look(&mut self, cluster: &Cluster, world: &mut World) {
        for change in self.pods.read(cluster) {
            let key = (change.object.key().namespace().unwrap_or_default(), change.object.key().name());
            let own = (key.0.to_owned(), key.1.to_owned());
            match change.kind {
                ChangeKind::Deleted => {
                    if !self.dying.remove(&own) {
                        world.lost_named(key.0, key.1);
                    }
                }
                ChangeKind::Updated if is_marked(&change) && !self.dying.contains(&own) => {
                    self.dying.insert(own);
                    world.told_to_end(key.0, key.1);
                }
                ChangeKind::Created | ChangeKind::Updated => {}
            }
        }
        for change in self.deployments.read(cluster) {
            let key = change.object.key();
            let (namespace, name) = (key.namespace().unwrap_or_default(), key.name());
            match change.kind {
                ChangeKind::Deleted => world.deployment_gone(namespace, name),
                ChangeKind::Updated if !self.written.contains(&change.revision()) => {
                    let object = change.object.to_value();
                    let wanted = object["spec"]["replicas"].as_u64();
                    let generation = metadata::number(&object, "generation").and_then(|number| number.try_into().ok());
                    if let (Some(wanted), Some(generation)) = (wanted, generation) {
                        world.scaled(namespace, name, wanted, generation);
                    }
                }
                ChangeKind::Created | ChangeKind::Updated => {}
            }
        }
        // The log has been read to its end, so none of these will be met again.
        self.written.clear();
    }
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
                // What was forgotten meanwhile is not to be known any more.
                Err(_) => {
                    self.cursor = cluster.storage.revision();
                    return all;
                }
            }
        }
    }
}

/// Whether the change was the wish that the pod should go.
fn is_marked(change: &Change) -> bool {
    let marked = |object: &crate::storage::Object| {
        let metadata = object.metadata();
        metadata.windows(MARK.len()).any(|window| window == MARK)
    };
    marked(&change.object) && change.previous.as_ref().is_some_and(|previous| !marked(previous))
}

const MARK: &[u8] = br#""deletionTimestamp":"#;
