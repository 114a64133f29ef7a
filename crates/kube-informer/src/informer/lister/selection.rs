//! A selector at work.

use crate::object::Selector;
use crate::store::{BloomQuery, StoreEntry, StoreState};

/// Tells which entries of a state have such labels. Sets of labels that cannot be meant are passed over by their marks.
pub(super) struct Selection<'s, 'a> {
    selector: &'s Selector,
    state: &'a StoreState,
    sought: BloomQuery,
    /// By the numbers of sets, once there is one to try.
    tried: Vec<Option<bool>>,
}

impl<'s, 'a> Selection<'s, 'a> {
    pub(super) fn new(selector: &'s Selector, state: &'a StoreState) -> Self {
        Self { selector, state, sought: BloomQuery::by(selector, state.hashing()), tried: Vec::new() }
    }

    /// For a few entries.
    pub(super) fn takes(&self, entry: &StoreEntry) -> bool {
        self.may_take(entry) && self.selector.matches(&entry.raw.meta().labels())
    }

    /// For a walk over everything: each set is tried once, and what came of it is kept for as many sets as there are.
    pub(super) fn takes_in_passing(&mut self, entry: &StoreEntry) -> bool {
        if self.selector.is_everything() {
            return true;
        }
        if !self.may_take(entry) {
            return false;
        }
        if self.tried.is_empty() {
            self.tried.resize(self.state.marks().bound(), None);
        }
        let matches = || self.selector.matches(&entry.raw.meta().labels());
        match self.tried.get_mut(entry.labels as usize) {
            Some(tried) => *tried.get_or_insert_with(matches),
            None => matches(),
        }
    }

    fn may_take(&self, entry: &StoreEntry) -> bool {
        self.sought.may_be(self.state.marks(), entry.labels)
    }
}
