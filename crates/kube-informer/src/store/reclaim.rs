//! States that have been replaced.

use std::mem;
use std::sync::Arc;

use super::hamt::{Hamt, Remains};
use super::state::{NamespaceState, StoreEntry, StoreState};

/// States that readers do not see any more, on their way out.
#[derive(Debug, Default)]
pub(super) struct Reclaimer {
    /// Those that a reader may still look at. Held, so that it is never a reader who has to take one apart.
    looked_at: Vec<Arc<StoreState>>,
    /// The others, except for one.
    waiting: Vec<Hamt<NamespaceState>>,
    /// What is left of that one: a state may be the last to hold nearly all of its nodes, and freeing them all at once would take
    /// milliseconds.
    spaces: Remains<NamespaceState>,
    entries: Remains<StoreEntry>,
}

/// How many nodes are freed at a time: about as many as a batch may replace.
const FREED_AT_ONCE: usize = 512;

/// How many states may be held before they are tidied up even in between, and how many may wait to be freed.
const MOST: usize = 64;

impl Reclaimer {
    pub(super) fn add(&mut self, state: Arc<StoreState>) {
        self.looked_at.push(state);
        if self.looked_at.len() > MOST {
            self.tidy();
        }
    }

    /// Frees a little of what nobody looks at any more.
    pub(super) fn tidy(&mut self) -> ReclaimStatus {
        for state in mem::take(&mut self.looked_at) {
            match Arc::try_unwrap(state) {
                Ok(state) => self.waiting.push(state.spaces),
                Err(state) => self.looked_at.push(state),
            }
        }
        let mut freed = 0;
        while freed < FREED_AT_ONCE || self.waiting.len() > MOST {
            if !self.free_one() {
                return if self.looked_at.is_empty() { ReclaimStatus::Done } else { ReclaimStatus::Pending };
            }
            freed += 1;
        }
        ReclaimStatus::Pending
    }

    /// Takes a step towards having freed everything. Whether there was one to take.
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

/// Whether there is more to tidy up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReclaimStatus {
    /// All that is held is the present state.
    Done,
    /// Tidying up later will free more: readers still look at states that have been replaced, or those are too large to be freed at once.
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
            state.put(state.place(object.key(), slot), entry);
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
        let mut retired = Reclaimer::default();
        for _ in 0..MOST - 4 {
            retired.add(Arc::new(state_of(&objects[..1])));
        }
        retired.add(Arc::new(state_of(&objects)));
        let mut before = held();
        while retired.tidy() == ReclaimStatus::Pending {
            let now = held();
            assert!(before - now <= FREED_AT_ONCE * 17, "{before} became {now}");
            before = now;
        }
        assert_eq!(held(), 0);
    }

    #[test]
    fn a_large_state_is_freed_a_little_at_a_time_once_nobody_looks_at_it() {
        let objects = objects(40_000, 7);
        let state = state_of(&objects);
        let held = || objects.iter().map(|object| Arc::strong_count(object.raw()) - 1).sum::<usize>();
        let mut retired = Reclaimer::default();
        let reader = Arc::new(state.clone());
        retired.add(Arc::clone(&reader));
        assert_eq!((retired.tidy(), held()), (ReclaimStatus::Pending, 40_000), "a reader looks at it");
        drop(reader);
        assert_eq!((retired.tidy(), held()), (ReclaimStatus::Done, 40_000), "it shares everything with another state");
        retired.add(Arc::new(state));
        let mut before = held();
        for _ in 0..3 {
            assert_eq!(retired.tidy(), ReclaimStatus::Pending);
            let now = held();
            assert!(now < before && before - now <= FREED_AT_ONCE * 17, "{before} became {now}");
            before = now;
        }
        while retired.tidy() == ReclaimStatus::Pending {}
        assert_eq!(held(), 0);
    }

    #[test]
    fn large_states_that_come_faster_than_they_are_freed_do_not_pile_up() {
        let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap();
        let mut retired = Reclaimer::default();
        for _ in 0..500 {
            let mut state = StoreState::new(Hashing::with_seed(5, SharedSeed::global_fixed()));
            for slot in 0..200_u32 {
                let place = SlotRef { space: 0, name: slot.wrapping_mul(0x9e37_79b1), slot };
                state.put(place, StoreEntry { raw: Arc::clone(object.raw()), labels: 0, slot });
            }
            retired.add(Arc::new(state));
        }
        let states = Arc::strong_count(object.raw()) / 200;
        assert!(states <= 2 * MOST + 2, "{states} are held");
    }
}
