//! A selector at work.

use crate::selector::Selector;
use crate::store::{Entry, Sought, State};

/// Tells which entries of a state have such labels.
///
/// Sets of labels that cannot be meant are passed over by their marks; of the others each is tried once.
pub(super) struct Selection<'s, 'a> {
    selector: &'s Selector,
    state: &'a State,
    sought: Sought,
    /// By the numbers of sets, once there is one to try.
    tried: Vec<Option<bool>>,
}

impl<'s, 'a> Selection<'s, 'a> {
    pub(super) fn new(selector: &'s Selector, state: &'a State) -> Self {
        Self { selector, state, sought: Sought::by(selector, state.hashing()), tried: Vec::new() }
    }

    pub(super) fn takes(&mut self, entry: &Entry) -> bool {
        if !self.sought.may_be(self.state.marks(), entry.labels) {
            return false;
        }
        if self.selector.is_everything() {
            return true;
        }
        if self.tried.is_empty() {
            self.tried.resize(self.state.label_sets(), None);
        }
        let matches = || self.selector.matches(&entry.raw.meta().labels());
        match self.tried.get_mut(entry.labels as usize) {
            Some(tried) => *tried.get_or_insert_with(matches),
            None => matches(),
        }
    }
}
