//! Who is due next.

use super::moment::Moment;

/// The slots that wait for their time, the earliest first, each at most once. Of those due at the same moment the one that was put
/// in first comes first.
///
/// A heap with four children to a node that knows where each slot is, so that a slot can be moved and removed.
#[derive(Debug, Default)]
pub(super) struct Delays {
    heap: Vec<Delay>,
    /// Where in the heap each slot is.
    places: Vec<u32>,
    /// Numbers delays, so that equal times keep their order. May wrap: numbers are compared by their distance.
    made: u32,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    due: Moment,
    number: u32,
    slot: u32,
}

const NOWHERE: u32 = u32::MAX;
const CHILDREN: usize = 4;

impl Delays {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.heap.first().map(|delay| delay.due)
    }

    #[inline]
    pub(super) fn contains(&self, slot: u32) -> bool {
        self.place(slot).is_some()
    }

    /// Sets a slot's time, unless it has an earlier one.
    pub(super) fn put(&mut self, slot: u32, due: Moment) {
        let delay = Delay { due, number: self.made, slot };
        match self.place(slot) {
            Some(place) if self.heap[place].due <= due => return,
            Some(place) => {
                self.heap[place] = delay;
                self.rise(place);
            }
            None => {
                let index = slot as usize;
                if self.places.len() <= index {
                    self.places.resize(index + 1, NOWHERE);
                }
                self.heap.push(delay);
                self.rise(self.heap.len() - 1);
            }
        }
        self.made = self.made.wrapping_add(1);
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(place) = self.place(slot) {
            self.remove_at(place, slot);
        }
    }

    fn remove_at(&mut self, place: usize, slot: u32) {
        self.places[slot as usize] = NOWHERE;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// Takes out the earliest, if its time has come.
    pub(super) fn pop_due(&mut self, now: Moment) -> Option<(Moment, u32)> {
        let Delay { due, slot, .. } = *self.heap.first().filter(|delay| delay.due <= now)?;
        self.remove(slot);
        Some((due, slot))
    }

    /// Takes out any one.
    pub(super) fn pop_any(&mut self) -> Option<u32> {
        let slot = self.heap.last()?.slot;
        self.remove(slot);
        Some(slot)
    }

    /// Gives slots their new numbers, and unused memory back.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        self.places = Vec::new();
        for (place, delay) in self.heap.iter_mut().enumerate() {
            delay.slot = numbers[delay.slot as usize];
            let index = delay.slot as usize;
            if self.places.len() <= index {
                self.places.resize(index + 1, NOWHERE);
            }
            self.places[index] = place as u32;
        }
        self.heap.shrink_to_fit();
    }

    #[inline]
    fn place(&self, slot: u32) -> Option<usize> {
        self.places.get(slot as usize).filter(|place| **place != NOWHERE).map(|place| *place as usize)
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let delay = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if !delay.is_before(&self.heap[parent]) {
                break;
            }
            self.set(place, self.heap[parent]);
            place = parent;
        }
        self.set(place, delay);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let delay = self.heap[place];
        loop {
            let first = place * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let earliest =
                children.reduce(|one, other| if self.heap[other].is_before(&self.heap[one]) { other } else { one });
            match earliest {
                Some(child) if self.heap[child].is_before(&delay) => {
                    self.set(place, self.heap[child]);
                    place = child;
                }
                _ => break,
            }
        }
        self.set(place, delay);
    }

    fn set(&mut self, place: usize, delay: Delay) {
        self.heap[place] = delay;
        self.places[delay.slot as usize] = place as u32;
    }
}

impl Delay {
    fn is_before(&self, other: &Self) -> bool {
        self.due < other.due || (self.due == other.due && self.number.wrapping_sub(other.number) > u32::MAX / 2)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::START.after(Duration::from_nanos(nanos))
    }

    /// The same, as a list that is sorted whenever it is looked at.
    #[derive(Default)]
    struct Sorted(Vec<(Moment, u32, u32)>, u32);

    impl Sorted {
        fn put(&mut self, slot: u32, due: Moment) {
            if self.0.iter().any(|(old, _, other)| *other == slot && *old <= due) {
                return;
            }
            self.0.retain(|(_, _, other)| *other != slot);
            self.0.push((due, self.1, slot));
            self.1 += 1;
        }

        fn pop_due(&mut self, now: Moment) -> Option<(Moment, u32)> {
            self.0.sort_unstable();
            let (due, _, slot) = *self.0.first().filter(|(due, ..)| *due <= now)?;
            self.0.remove(0);
            Some((due, slot))
        }
    }

    #[test]
    fn delays_come_out_as_from_a_sorted_list() {
        for seed in 0..300 {
            let mut random = Pcg64::seed_from_u64(seed);
            let (mut delays, mut sorted) = (Delays::default(), Sorted::default());
            // The numbers wrap in the middle of it.
            delays.made = u32::MAX - 50;
            for step in 0..400 {
                let slot = random.random_range(0..60);
                match random.random_range(0..6) {
                    0..=2 => {
                        let due = at(random.random_range(0..40));
                        delays.put(slot, due);
                        sorted.put(slot, due);
                    }
                    3 => {
                        delays.remove(slot);
                        sorted.0.retain(|(_, _, other)| *other != slot);
                    }
                    _ => {
                        let now = at(random.random_range(0..30));
                        assert_eq!(delays.pop_due(now), sorted.pop_due(now), "seed {seed}, step {step}");
                    }
                }
                assert_eq!(delays.len(), sorted.0.len(), "seed {seed}, step {step}");
                assert_eq!(delays.contains(slot), sorted.0.iter().any(|(_, _, other)| *other == slot));
                assert_eq!(delays.next_due(), sorted.0.iter().map(|(due, ..)| *due).min());
            }
        }
    }

    #[test]
    fn slots_can_be_renumbered() {
        let mut delays = Delays::default();
        (0..10).for_each(|slot| delays.put(slot, at(u64::from(10 - slot))));
        (0..5).for_each(|slot| delays.remove(slot));
        delays.renumber(&[9, 9, 9, 9, 9, 4, 3, 2, 1, 0]);
        let slots: Vec<_> = std::iter::from_fn(|| delays.pop_due(at(u64::MAX))).map(|(_, slot)| slot).collect();
        assert_eq!(slots, [0, 1, 2, 3, 4]);
    }
}
