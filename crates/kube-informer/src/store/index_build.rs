//! An index that comes late, built a little at a time.

use std::sync::Arc;

use super::index_table::AnyTable;
use super::state::{SlotRef, StoreState};

/// A table that has yet to see objects that were there before it. It hears of every change meanwhile; an object that it sees
/// twice makes no difference.
#[derive(Debug)]
pub(super) struct IndexBuild {
    pub(super) id: usize,
    pub(super) table: Box<dyn AnyTable>,
    /// Namespaces to look at.
    spaces: Vec<Arc<str>>,
    /// What is left of the one that is being looked at.
    places: Vec<SlotRef>,
}

impl IndexBuild {
    pub(super) fn new(id: usize, table: Box<dyn AnyTable>, state: &StoreState) -> Self {
        let spaces = state.spaces.iter().map(|space| Arc::clone(&space.namespace)).collect();
        Self { id, table, spaces, places: Vec::new() }
    }

    /// Looks at so many objects. Whether there are no more.
    pub(super) fn advance(&mut self, state: &StoreState, objects: usize) -> bool {
        for _ in 0..objects {
            let place = loop {
                if let Some(place) = self.places.pop() {
                    break place;
                }
                let Some(space) = self.spaces.pop() else { return true };
                self.places.extend(state.namespace(&space).map(|entry| state.place(entry.key(), entry.slot)));
            };
            if let Some(entry) = state.at(place) {
                self.table.put(place, &entry.object());
            }
        }
        self.places.is_empty() && self.spaces.is_empty()
    }
}
