//! Deferred reclamation of replaced states.

use std::mem;
use std::sync::Arc;

use super::hamt::{Hamt, PendingFree};
use super::state::{NamespaceState, StoreEntry, StoreState};

/// Replaced states that are waiting to be freed.
#[derive(Debug, Default)]
pub(super) struct Reclaimer {
    /// States that a reader may still hold. Kept here so that a reader never drops the last
    /// reference and frees a whole state.
    in_use: Vec<Arc<StoreState>>,
    /// States that no reader holds.
    waiting: Vec<Hamt<NamespaceState>>,
    /// Remaining nodes of the state being freed. A state may hold the last reference to nearly all
    /// of its nodes, and freeing them all at once would take milliseconds.
    spaces: PendingFree<NamespaceState>,
    entries: PendingFree<StoreEntry>,
}

/// Nodes freed per `tidy`: about as many as a batch may replace.
const NODES_PER_TIDY: usize = 512;

/// Limit of both queues: with more states in use `add` calls `tidy`, and with more states waiting
/// `tidy` frees past `NODES_PER_TIDY`.
const MAX_STATES: usize = 64;

impl Reclaimer {
    pub(super) fn add(&mut self, state: Arc<StoreState>) {
        self.in_use.push(state);
        if self.in_use.len() > MAX_STATES {
            self.tidy();
        }
    }

    /// Frees a bounded number of nodes that no reader holds any more.
    pub(super) fn tidy(&mut self) -> ReclaimStatus {
        for state in mem::take(&mut self.in_use) {
            match Arc::try_unwrap(state) {
                Ok(state) => self.waiting.push(state.spaces),
                Err(state) => self.in_use.push(state),
            }
        }
        let mut freed = 0;
        while freed < NODES_PER_TIDY || self.waiting.len() > MAX_STATES {
            if !self.free_one() {
                return if self.in_use.is_empty() { ReclaimStatus::Done } else { ReclaimStatus::Pending };
            }
            freed += 1;
        }
        ReclaimStatus::Pending
    }

    /// Frees one node, or starts with the next state. Returns false if nothing is left.
    fn free_one(&mut self) -> bool {
        let Self { waiting, spaces, entries, .. } = self;
        if entries.free_one(|_| {})
            || spaces.free_one(|space| entries.add(mem::replace(&mut space.entries, Hamt::new())))
        {
            return true;
        }
        waiting.pop().map(|next| spaces.add(next)).is_some()
    }
}

/// Whether deferred reclamation has more to free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimStatus {
    /// Only the current state is held.
    Done,
    /// A later call can free more: readers still hold replaced states, or the states are too large
    /// to be freed in one call.
    Pending,
}

#[cfg(test)]
mod tests {
    use foldhash::SharedSeed;

    use super::*;
    use crate::body::Obj;
    use crate::store::state::{Hashing, SlotRef};

    fn state_of(objects: &[Obj]) -> StoreState {
        let mut state = StoreState::new(Hashing::with_seed(5, SharedSeed::global_fixed()));
        for (slot, object) in (0..).zip(objects) {
            let entry = StoreEntry { raw: Arc::clone(object.raw()), labels: 0, slot };
            state.put(state.slot_ref_of(object.key(), slot), entry);
        }
        state
    }

    fn objects(count: u32, namespaces: u32) -> Vec<Obj> {
        let json = |n| format!(r#"{{"metadata":{{"namespace":"ns{}","name":"o{n}"}}}}"#, n % namespaces);
        (0..count).map(|n| Obj::from_json(json(n)).unwrap()).collect()
    }

    #[test]
    fn a_large_state_is_freed_a_little_at_a_time_beside_many_small_ones() {
        let objects = objects(40_000, 64);
        let held = || objects.iter().map(|object| Arc::strong_count(object.raw()) - 1).sum::<usize>();
        let mut reclaimer = Reclaimer::default();
        for _ in 0..MAX_STATES - 4 {
            reclaimer.add(Arc::new(state_of(&objects[..1])));
        }
        reclaimer.add(Arc::new(state_of(&objects)));
        let mut before = held();
        while reclaimer.tidy() == ReclaimStatus::Pending {
            let now = held();
            assert!(before - now <= NODES_PER_TIDY * 17, "{before} became {now}");
            before = now;
        }
        assert_eq!(held(), 0);
    }

    #[test]
    fn a_large_state_is_freed_in_steps_once_it_has_no_readers() {
        let objects = objects(40_000, 7);
        let state = state_of(&objects);
        let held = || objects.iter().map(|object| Arc::strong_count(object.raw()) - 1).sum::<usize>();
        let mut reclaimer = Reclaimer::default();
        let reader = Arc::new(state.clone());
        reclaimer.add(Arc::clone(&reader));
        assert_eq!((reclaimer.tidy(), held()), (ReclaimStatus::Pending, 40_000), "a reader looks at it");
        drop(reader);
        assert_eq!(
            (reclaimer.tidy(), held()),
            (ReclaimStatus::Done, 40_000),
            "it shares everything with another state"
        );
        reclaimer.add(Arc::new(state));
        let mut before = held();
        for _ in 0..3 {
            assert_eq!(reclaimer.tidy(), ReclaimStatus::Pending);
            let now = held();
            assert!(now < before && before - now <= NODES_PER_TIDY * 17, "{before} became {now}");
            before = now;
        }
        while reclaimer.tidy() == ReclaimStatus::Pending {}
        assert_eq!(held(), 0);
    }

    #[test]
    fn large_states_that_come_faster_than_they_are_freed_do_not_pile_up() {
        let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap();
        let mut reclaimer = Reclaimer::default();
        for _ in 0..500 {
            let mut state = StoreState::new(Hashing::with_seed(5, SharedSeed::global_fixed()));
            for slot in 0..200_u32 {
                let slot_ref_of = SlotRef { space: 0, name: slot.wrapping_mul(0x9e37_79b1), slot };
                state.put(slot_ref_of, StoreEntry { raw: Arc::clone(object.raw()), labels: 0, slot });
            }
            reclaimer.add(Arc::new(state));
        }
        let states = Arc::strong_count(object.raw()) / 200;
        assert!(states <= 2 * MAX_STATES + 2, "{states} are held");
    }
}
