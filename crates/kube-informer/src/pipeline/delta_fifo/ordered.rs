//! The ordered discipline: every delta, in order.

use std::collections::VecDeque;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashSet};

use super::exclude_queued;
use crate::store::Delta;

#[derive(Debug, Default)]
pub(super) struct Ordered {
    queue: VecDeque<Delta>,
    /// Hashes of the keys in the current batch; reused to avoid reallocating. A hash collision only
    /// splits the batch.
    seen: HashSet<u64>,
    hashing: DefaultHashBuilder,
}

impl Ordered {
    pub(super) fn push(&mut self, delta: Delta) {
        self.queue.push_back(delta);
    }

    pub(super) fn pop(&mut self, most: usize) -> Vec<Delta> {
        let Self { queue, seen, hashing } = self;
        seen.clear();
        let batches = |delta: &&Delta| delta.key().is_some_and(|key| seen.insert(hashing.hash_one(key)));
        let mut count = queue.iter().take(most).take_while(batches).count();
        if count == 0 && !self.queue.is_empty() {
            count = 1;
        }
        let mut batch: Vec<_> = self.queue.drain(..count).collect();
        if let [only @ Delta::Resync { .. }] = batch.as_mut_slice() {
            exclude_queued(only, self.queue.iter().filter_map(Delta::key).cloned());
        }
        batch
    }
}
