//! The keyed discipline: deltas accumulate by object.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use super::{Known, exclude_queued};
use crate::object::ObjectKey;
use crate::store::Delta;

/// A queue of objects, each with all its deltas.
///
/// A delta that concerns no single object is a barrier: later deltas accumulate behind it, never
/// before it. Otherwise the end of a list would remove objects created after it.
#[derive(Debug, Default)]
pub(super) struct Keyed {
    entries: VecDeque<QueuedDeltas>,
    /// The position of each object that can still accumulate deltas, counted from the first entry
    /// ever queued.
    open: HashMap<ObjectKey, usize>,
    /// How many entries have been popped.
    popped: usize,
    /// The keys popped last: no longer queued, but possibly not in the store yet.
    in_flight: HashSet<ObjectKey>,
}

#[derive(Debug)]
enum QueuedDeltas {
    Object(Vec<Delta>),
    Barrier(Delta),
}

impl Keyed {
    /// Returns whether the delta was kept.
    pub(super) fn push(&mut self, mut delta: Delta, is_known: &Known) -> bool {
        let Some(key) = delta.key() else {
            exclude_queued(&mut delta, self.open.keys().cloned());
            self.open.clear();
            self.entries.push_back(QueuedDeltas::Barrier(delta));
            return true;
        };
        let entry = self.open.get(key).and_then(|at| self.entries.get_mut(at - self.popped));
        if let Some(QueuedDeltas::Object(deltas)) = entry {
            // Consecutive deletes are one: the first has the last known state of the object.
            let is_repeated = matches!((deltas.last(), &delta), (Some(Delta::Deleted(_)), Delta::Deleted(_)));
            if !is_repeated {
                deltas.push(delta);
            }
            return !is_repeated;
        }
        if matches!(delta, Delta::Deleted(_)) && !is_known(key) && !self.is_queued(key) {
            return false;
        }
        self.open.insert(key.clone(), self.popped + self.entries.len());
        self.entries.push_back(QueuedDeltas::Object(vec![delta]));
        true
    }

    /// Whether this object has deltas queued, also before the last barrier, or in flight.
    fn is_queued(&self, key: &ObjectKey) -> bool {
        let has_key = |entry: &QueuedDeltas| matches!(entry, QueuedDeltas::Object(all) if all.first().and_then(Delta::key) == Some(key));
        self.in_flight.contains(key) || self.entries.iter().any(has_key)
    }

    pub(super) fn pop(&mut self, most: usize) -> Vec<Delta> {
        let mut batch = Vec::new();
        self.in_flight.clear();
        while let Some(entry) = self.entries.front() {
            match entry {
                QueuedDeltas::Barrier(_) if !batch.is_empty() => break,
                QueuedDeltas::Object(all) if !batch.is_empty() && batch.len() + all.len() > most => break,
                QueuedDeltas::Barrier(_) | QueuedDeltas::Object(_) => {}
            }
            self.popped += 1;
            match self.entries.pop_front() {
                Some(QueuedDeltas::Object(all)) => {
                    if let Some(key) = all.first().and_then(Delta::key) {
                        // Behind a barrier the object may have a second entry, which stays open.
                        if self.open.get(key).is_some_and(|at| *at < self.popped) {
                            self.open.remove(key);
                        }
                        self.in_flight.insert(key.clone());
                    }
                    batch.extend(all);
                }
                Some(QueuedDeltas::Barrier(mut delta)) => {
                    exclude_queued(&mut delta, self.open.keys().cloned());
                    return vec![delta];
                }
                None => {}
            }
        }
        batch
    }
}
