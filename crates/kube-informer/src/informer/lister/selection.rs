//! Evaluation of a label selector over the entries of a snapshot.

use std::borrow::Borrow;

use crate::object::Selector;
use crate::store::{BloomQuery, StoreEntry, StoreState};

/// Matches entries of a state against a label selector. The Bloom filter of an entry's label set
/// rejects most non-matching sets without reading their labels.
pub(super) struct Selection<'a, S> {
    selector: S,
    state: &'a StoreState,
    query: BloomQuery,
    /// Memoized result per label set, indexed by set number; empty until the first evaluation.
    matched: Vec<Option<bool>>,
}

impl<'a, S: Borrow<Selector>> Selection<'a, S> {
    pub(super) fn new(selector: S, state: &'a StoreState) -> Self {
        let query = BloomQuery::by(selector.borrow(), state.hashing());
        Self { selector, state, query, matched: Vec::new() }
    }

    /// Evaluates without memoization, for iteration over a few entries.
    pub(super) fn takes(&self, entry: &StoreEntry) -> bool {
        self.may_take(entry) && self.selector.borrow().matches(&entry.raw.meta().labels())
    }

    /// Evaluates with memoization, for iteration over all entries: at most once per label set.
    pub(super) fn takes_in_passing(&mut self, entry: &StoreEntry) -> bool {
        if self.selector.borrow().is_everything() {
            return true;
        }
        if !self.may_take(entry) {
            return false;
        }
        if self.matched.is_empty() {
            self.matched.resize(self.state.blooms().bound(), None);
        }
        let matches = || self.selector.borrow().matches(&entry.raw.meta().labels());
        match self.matched.get_mut(entry.labels as usize) {
            Some(matched) => *matched.get_or_insert_with(matches),
            None => matches(),
        }
    }

    fn may_take(&self, entry: &StoreEntry) -> bool {
        self.query.may_be(self.state.blooms(), entry.labels)
    }
}
