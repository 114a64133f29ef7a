//! A map with a limit.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A map of at most `capacity` entries: the least recently used one goes first.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    capacity: usize,
    entries: HashMap<K, (u64, V)>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, K>,
    clock: u64,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, entries: HashMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    /// Returns the entry, and whether it was there before.
    pub(crate) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> (&mut V, bool) {
        self.clock += 1;
        let used = self.clock;
        let before = self.entries.get(&key).map(|(used, _)| *used);
        match before {
            Some(before) => drop(self.order.remove(&before)),
            None if self.entries.len() >= self.capacity => {
                if let Some((_, oldest)) = self.order.pop_first() {
                    self.entries.remove(&oldest);
                }
            }
            None => {}
        }
        self.order.insert(used, key.clone());
        let entry = self.entries.entry(key).or_insert_with(|| (used, make()));
        entry.0 = used;
        (&mut entry.1, before.is_some())
    }

    /// Returns the entry, without using it.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.values_mut().map(|(_, value)| value)
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        let order = &mut self.order;
        self.entries.retain(|_, (used, value)| {
            let is_kept = keep(value);
            if !is_kept {
                order.remove(used);
            }
            is_kept
        });
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.order.len());
        self.entries.len()
    }
}
