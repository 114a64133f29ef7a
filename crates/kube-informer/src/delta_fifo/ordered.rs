//! Every delta, in order.

use std::collections::VecDeque;

use hashbrown::HashSet;

use super::spare;
use crate::delta::Delta;
use crate::key::ObjectKey;

#[derive(Debug, Default)]
pub(super) struct Ordered {
    queue: VecDeque<Delta>,
    /// Of the batch being filled; kept for its memory.
    seen: HashSet<ObjectKey>,
}

impl Ordered {
    pub(super) fn push(&mut self, delta: Delta) {
        self.queue.push_back(delta);
    }

    pub(super) fn pop(&mut self, most: usize) -> Vec<Delta> {
        self.seen.clear();
        let batches = |delta: &Delta| delta.key().is_some_and(|key| self.seen.insert(key.clone()));
        let mut count = self
            .queue
            .iter()
            .take(most)
            .take_while({
                let mut batches = batches;
                move |delta| batches(delta)
            })
            .count();
        if count == 0 && !self.queue.is_empty() {
            count = 1;
        }
        let mut batch: Vec<_> = self.queue.drain(..count).collect();
        if let [only @ Delta::Resync { .. }] = batch.as_mut_slice() {
            spare(only, self.queue.iter().filter_map(Delta::key).cloned());
        }
        batch
    }
}
