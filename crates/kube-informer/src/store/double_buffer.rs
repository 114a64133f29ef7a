//! Double buffering of the store's state.

use std::ops::Deref;
use std::sync::Arc;

use super::MAX_BATCH;
use super::hamt::Hamt;
use super::label_bloom::LabelBlooms;
use super::prefetch::prefetch_entries;
use super::reader::StoreShared;
use super::state::{Change, KeyHashes, NamespaceState, SlotRef, StoreEntry, StoreState, Tables};
use crate::object::ObjectKey;
use crate::object::Version;

/// The writer's state, ahead of the state that readers see.
///
/// Copy-on-write copies every node that a reader may hold, and a copy increments the reference
/// count of each child: a few dozen counters, scattered over memory, for one changed object. With
/// double buffering the nodes on changed paths exist twice, one for readers and one for the writer.
/// A replaced state that no reader holds is not freed: the few changes it misses are applied to it
/// in place, and it becomes the next state to write to.
#[derive(Debug)]
pub(super) struct DoubleBuffer {
    state: StoreState,
    previous: Option<Previous>,
    /// Unpublished changes, in order; none if they are too many to be applied twice, or if applying
    /// them twice does not pay off.
    changes: Option<Vec<Change>>,
}

/// The state that was published before the current one.
#[derive(Debug)]
struct Previous {
    spaces: Hamt<NamespaceState>,
    /// The changes between this state and the current one.
    missing: Vec<Change>,
}

/// Two changes per delta: a delta with another object under the same key removes and inserts.
const MAX_CHANGES: usize = 2 * MAX_BATCH;

impl DoubleBuffer {
    pub(super) fn new(state: StoreState) -> Self {
        Self { state, previous: None, changes: Some(Vec::new()) }
    }

    /// Inserts an entry, replacing the one with the same key.
    pub(super) fn put(&mut self, slot_ref: SlotRef, entry: StoreEntry) {
        self.record(|| Change::Put(slot_ref, entry.clone()));
        self.state.put(slot_ref, entry);
    }

    /// Inserts an entry of the initial list. It is not recorded: when most entries are new,
    /// applying each twice does not pay off.
    pub(super) fn fill(&mut self, slot_ref: SlotRef, entry: StoreEntry) {
        self.changes = None;
        self.state.put(slot_ref, entry);
    }

    /// Removes the entry of this key, and returns where it was.
    pub(super) fn remove(&mut self, hashes: KeyHashes, key: &ObjectKey) -> Option<(SlotRef, StoreEntry)> {
        let (slot_ref, entry) = self.state.remove(hashes, key)?;
        self.record(|| Change::Removed(slot_ref));
        Some((slot_ref, entry))
    }

    pub(super) fn set_tables(&mut self, tables: Tables) {
        self.state.tables = tables;
    }

    /// Publishes the state to readers. Returns the state published before, unless it is kept to be
    /// written to.
    pub(super) fn publish(
        &mut self,
        to: &StoreShared,
        blooms: LabelBlooms,
        version: Option<Version>,
    ) -> Option<Arc<StoreState>> {
        self.state.blooms = blooms;
        self.state.version = version;
        let before = to.publish(self.state.clone());
        // Without `catch_up` in between it would be two states behind.
        self.previous = None;
        let Some(missing) = self.changes.replace(Vec::new()) else { return Some(before) };
        match Arc::try_unwrap(before) {
            Ok(before) => {
                self.previous = Some(Previous { spaces: before.spaces, missing });
                None
            }
            Err(before) => Some(before),
        }
    }

    /// Applies the missing changes to the previous state, and makes it the state to write to.
    pub(super) fn catch_up(&mut self) {
        let Some(Previous { mut spaces, mut missing }) = self.previous.take() else { return };
        // The previous state would lack the changes made since `publish`.
        if self.changes.as_ref().is_none_or(|changes| !changes.is_empty()) {
            return;
        }
        if missing.len() > 1 {
            prefetch_entries(&spaces, missing.iter().map(Change::hashes_of));
        }
        for change in missing.drain(..) {
            change.make(&mut spaces);
        }
        self.state.spaces = spaces;
        // Reused to avoid reallocating.
        self.changes = Some(missing);
    }

    fn record(&mut self, change: impl FnOnce() -> Change) {
        match &mut self.changes {
            Some(changes) if changes.len() < MAX_CHANGES => changes.push(change()),
            changes => *changes = None,
        }
    }
}

impl Deref for DoubleBuffer {
    type Target = StoreState;

    fn deref(&self) -> &StoreState {
        &self.state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use foldhash::SharedSeed;
    use proptest::prelude::*;

    use super::*;
    use crate::body::Obj;
    use crate::store::state::Hashing;

    struct Written {
        buffer: DoubleBuffer,
        shared: StoreShared,
        version: u32,
    }

    impl Written {
        fn new() -> Self {
            let state = StoreState::new(Hashing::with_seed(3, SharedSeed::global_fixed()));
            Self { buffer: DoubleBuffer::new(state.clone()), shared: StoreShared::new(state), version: 0 }
        }

        /// Returns the new version of the object.
        fn put(&mut self, number: u32, put: impl FnOnce(&mut DoubleBuffer, SlotRef, StoreEntry)) -> u32 {
            self.version += 1;
            let json = format!(
                r#"{{"metadata":{{"namespace":"ns{}","name":"o{number}","resourceVersion":"{}"}}}}"#,
                number % 3,
                self.version,
            );
            let object: Obj = Obj::from_json(json).unwrap();
            let entry = StoreEntry { raw: Arc::clone(object.raw()), labels: 0, slot: number };
            let slot_ref = self.buffer.slot_ref_of(object.key(), number);
            put(&mut self.buffer, slot_ref, entry);
            self.version
        }

        fn remove(&mut self, number: u32) -> bool {
            self.buffer.remove(self.buffer.hashes_of(&key(number)), &key(number)).is_some()
        }

        fn publish(&mut self) -> Option<Arc<StoreState>> {
            self.buffer.publish(&self.shared, LabelBlooms::default(), None)
        }
    }

    fn key(number: u32) -> ObjectKey {
        format!("ns{}/o{number}", number % 3).parse().unwrap()
    }

    fn contents(state: &StoreState) -> BTreeMap<u32, u32> {
        let all: BTreeMap<_, _> =
            state.iter().map(|entry| (entry.slot, entry.raw.meta().version.to_string().parse().unwrap())).collect();
        assert_eq!(all.len(), state.len());
        all
    }

    proptest! {
        #[test]
        fn readers_see_what_was_written_at_any_time_of_the_catch_up(
            steps in prop::collection::vec((0..10_u8, 0..60_u32), 0..400),
        ) {
            let (mut written, mut map) = (Written::new(), BTreeMap::new());
            let mut looked_at = Vec::new();
            for (what, number) in steps {
                match what {
                    0..4 => drop(map.insert(number, written.put(number, DoubleBuffer::put))),
                    4 => drop(map.insert(number, written.put(number, DoubleBuffer::fill))),
                    5 => prop_assert_eq!(written.remove(number), map.remove(&number).is_some()),
                    6 => written.buffer.catch_up(),
                    7 => drop(looked_at.pop()),
                    _ => {
                        drop(written.publish());
                        let seen = written.shared.state();
                        prop_assert_eq!(contents(&seen), map.clone());
                        if what == 9 {
                            looked_at.push((seen, map.clone()));
                        }
                    }
                }
                prop_assert_eq!(contents(&written.buffer), map.clone());
            }
            for (seen, map) in looked_at {
                prop_assert_eq!(contents(&seen), map);
            }
        }
    }

    /// Number of leaves that hold the first of two objects, after three changes of the other one.
    fn nodes_to_a_neighbour(looking: bool) -> usize {
        let mut written = Written::new();
        written.put(0, DoubleBuffer::fill);
        let mut held = Vec::new();
        for _ in 0..3 {
            written.put(3, DoubleBuffer::put);
            held.extend(looking.then(|| written.shared.state()));
            drop(written.publish());
            written.buffer.catch_up();
        }
        drop(held);
        Arc::strong_count(&written.buffer.get(&key(0)).unwrap().raw)
    }

    #[test]
    fn a_state_without_readers_is_written_to_again() {
        assert_eq!(nodes_to_a_neighbour(false), 2, "the one to write to, and the readers' one");
        assert_eq!(nodes_to_a_neighbour(true), 1, "those that readers looked at were not kept");
    }
}
