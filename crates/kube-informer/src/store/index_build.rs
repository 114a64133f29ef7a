//! Incremental building of an index over existing objects.

use std::sync::Arc;

use super::index_table::AnyTable;
use super::state::{SlotRef, StoreState};

/// An index table that has not yet processed the objects stored before it was added. It receives
/// every change meanwhile; processing an object twice has no effect.
#[derive(Debug)]
pub(super) struct IndexBuild {
    pub(super) id: usize,
    pub(super) table: Box<dyn AnyTable>,
    /// Namespaces left to process.
    spaces: Vec<Arc<str>>,
    /// Entries left in the current namespace.
    slot_refs: Vec<SlotRef>,
}

impl IndexBuild {
    pub(super) fn new(id: usize, table: Box<dyn AnyTable>, state: &StoreState) -> Self {
        let spaces = state.spaces.iter().map(|space| Arc::clone(&space.namespace)).collect();
        Self { id, table, spaces, slot_refs: Vec::new() }
    }

    /// Processes up to `objects` entries. Returns whether the build is complete.
    pub(super) fn advance(&mut self, state: &StoreState, objects: usize) -> bool {
        for _ in 0..objects {
            let slot_ref = loop {
                if let Some(slot_ref) = self.slot_refs.pop() {
                    break slot_ref;
                }
                let Some(space) = self.spaces.pop() else { return true };
                self.slot_refs.extend(state.namespace(&space).map(|entry| state.slot_ref_of(entry.key(), entry.slot)));
            };
            if let Some(entry) = state.at(slot_ref) {
                self.table.put(slot_ref, &entry.object());
            }
        }
        self.slot_refs.is_empty() && self.spaces.is_empty()
    }
}
