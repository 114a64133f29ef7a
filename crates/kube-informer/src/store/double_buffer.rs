//! The state that is written to.

use std::ops::Deref;
use std::sync::Arc;

use super::hamt::Hamt;
use super::label_bloom::LabelBlooms;
use super::prefetch::look_ahead;
use super::reader::Shared;
use super::state::{Change, KeyHashes, NamespaceState, SlotRef, StoreEntry, StoreState, Tables};
use crate::object::ObjectKey;
use crate::object::Version;
use crate::pipeline::delta_fifo::LARGEST_BATCH;

/// The writer's state, ahead of the one that readers see.
///
/// A node that readers may look at is copied before it is written to, and a copy counts up everything that it leads to: a few dozen
/// reference counts all over memory for one object that changes. So there are two of each node where objects change, one for
/// readers and one to write to. A state that has been replaced, and that nobody looks at any more, is not thrown away: the few changes
/// that it lacks are made in it as well, in place, and it is the next one to be written to.
#[derive(Debug)]
pub(super) struct DoubleBuffer {
    state: StoreState,
    former: Option<Former>,
    /// Those that readers do not see yet, in order; none if they are too many to be made twice, or not worth it.
    changes: Option<Vec<Change>>,
}

/// What readers saw before they saw what they see now.
#[derive(Debug)]
struct Former {
    spaces: Hamt<NamespaceState>,
    /// What changed in between.
    lacks: Vec<Change>,
}

/// A delta makes two changes if it is of another object under the same key.
const MOST_CHANGES: usize = 2 * LARGEST_BATCH;

impl DoubleBuffer {
    pub(super) fn new(state: StoreState) -> Self {
        Self { state, former: None, changes: Some(Vec::new()) }
    }

    /// Puts an entry in, instead of the one of its key if there is one.
    pub(super) fn put(&mut self, place: SlotRef, entry: StoreEntry) {
        self.note(|| Change::Put(place, entry.clone()));
        self.state.put(place, entry);
    }

    /// The same, for an entry that is new like most beside it: that is not worth doing twice.
    pub(super) fn fill(&mut self, place: SlotRef, entry: StoreEntry) {
        self.changes = None;
        self.state.put(place, entry);
    }

    /// Takes out the entry of this key, and says where it was.
    pub(super) fn remove(&mut self, spot: KeyHashes, key: &ObjectKey) -> Option<(SlotRef, StoreEntry)> {
        let (place, entry) = self.state.remove(spot, key)?;
        self.note(|| Change::Removed(place));
        Some((place, entry))
    }

    pub(super) fn set_tables(&mut self, tables: Tables) {
        self.state.tables = tables;
    }

    /// Lets readers see it. Gives the state that they saw before, unless it is to be written to.
    pub(super) fn publish(
        &mut self,
        to: &Shared,
        marks: LabelBlooms,
        version: Option<Version>,
    ) -> Option<Arc<StoreState>> {
        self.state.marks = marks;
        self.state.version = version;
        let before = to.publish(self.state.clone());
        // Two steps behind, if it has not caught up.
        self.former = None;
        let Some(lacks) = self.changes.replace(Vec::new()) else { return Some(before) };
        match Arc::try_unwrap(before) {
            Ok(before) => {
                self.former = Some(Former { spaces: before.spaces, lacks });
                None
            }
            Err(before) => Some(before),
        }
    }

    /// Brings the former state up to date, to be written to from now on.
    pub(super) fn catch_up(&mut self) {
        let Some(Former { mut spaces, mut lacks }) = self.former.take() else { return };
        // What has changed since would be missing.
        if self.changes.as_ref().is_none_or(|changes| !changes.is_empty()) {
            return;
        }
        if lacks.len() > 1 {
            look_ahead(&spaces, lacks.iter().map(Change::spot));
        }
        for change in lacks.drain(..) {
            change.make(&mut spaces);
        }
        self.state.spaces = spaces;
        // Its room is used again.
        self.changes = Some(lacks);
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        match &mut self.changes {
            Some(changes) if changes.len() < MOST_CHANGES => changes.push(change()),
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
        draft: DoubleBuffer,
        shared: Shared,
        version: u32,
    }

    impl Written {
        fn new() -> Self {
            let state = StoreState::new(Hashing::with_seed(3, SharedSeed::global_fixed()));
            Self { draft: DoubleBuffer::new(state.clone()), shared: Shared::new(state), version: 0 }
        }

        /// The version that the object has now.
        fn put(&mut self, number: u32, put: impl FnOnce(&mut DoubleBuffer, SlotRef, StoreEntry)) -> u32 {
            self.version += 1;
            let json = format!(
                r#"{{"metadata":{{"namespace":"ns{}","name":"o{number}","resourceVersion":"{}"}}}}"#,
                number % 3,
                self.version,
            );
            let object: Obj = Obj::from_json(json).unwrap();
            let entry = StoreEntry { raw: Arc::clone(object.raw()), labels: 0, slot: number };
            let place = self.draft.place(object.key(), number);
            put(&mut self.draft, place, entry);
            self.version
        }

        fn remove(&mut self, number: u32) -> bool {
            self.draft.remove(self.draft.spot(&key(number)), &key(number)).is_some()
        }

        fn publish(&mut self) -> Option<Arc<StoreState>> {
            self.draft.publish(&self.shared, LabelBlooms::default(), None)
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
        fn readers_see_what_was_written_whoever_looks_and_whenever_it_catches_up(
            steps in prop::collection::vec((0..10_u8, 0..60_u32), 0..400),
        ) {
            let (mut written, mut map) = (Written::new(), BTreeMap::new());
            let mut looked_at = Vec::new();
            for (what, number) in steps {
                match what {
                    0..4 => drop(map.insert(number, written.put(number, DoubleBuffer::put))),
                    4 => drop(map.insert(number, written.put(number, DoubleBuffer::fill))),
                    5 => prop_assert_eq!(written.remove(number), map.remove(&number).is_some()),
                    6 => written.draft.catch_up(),
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
                prop_assert_eq!(contents(&written.draft), map.clone());
            }
            for (seen, map) in looked_at {
                prop_assert_eq!(contents(&seen), map);
            }
        }
    }

    /// How many nodes lead to the first of two objects, after three changes of the other one.
    fn nodes_to_a_neighbour(looking: bool) -> usize {
        let mut written = Written::new();
        written.put(0, DoubleBuffer::fill);
        let mut held = Vec::new();
        for _ in 0..3 {
            written.put(3, DoubleBuffer::put);
            held.extend(looking.then(|| written.shared.state()));
            drop(written.publish());
            written.draft.catch_up();
        }
        drop(held);
        Arc::strong_count(&written.draft.get(&key(0)).unwrap().raw)
    }

    #[test]
    fn a_state_that_nobody_looks_at_any_more_is_written_to_again() {
        assert_eq!(nodes_to_a_neighbour(false), 2, "the one to write to, and the readers' one");
        assert_eq!(nodes_to_a_neighbour(true), 1, "those that readers looked at were not kept");
    }
}
