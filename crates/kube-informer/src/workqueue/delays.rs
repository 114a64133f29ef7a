//! The priority queue of delayed items.

use super::moment::Moment;

/// The delayed slots ordered by due time, each at most once. Slots with equal due times keep
/// insertion order.
///
/// An indexed 4-ary min-heap: it stores the position of each slot, so that a slot can be moved and
/// removed in O(log n).
#[derive(Debug, Default)]
pub(super) struct Delays {
    heap: Vec<Delay>,
    /// Position in the heap of each slot.
    positions: Vec<u32>,
    /// Sequence number of the next delay, to order equal due times. May wrap: numbers are compared
    /// by their distance.
    next_sequence: u32,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    due: Moment,
    sequence: u32,
    slot: u32,
}

const NOT_IN_HEAP: u32 = u32::MAX;
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
        self.position(slot).is_some()
    }

    /// Sets the due time of a slot, unless it has an earlier one.
    pub(super) fn put(&mut self, slot: u32, due: Moment) {
        let delay = Delay { due, sequence: self.next_sequence, slot };
        match self.position(slot) {
            Some(position) if self.heap[position].due <= due => return,
            Some(position) => {
                self.heap[position] = delay;
                self.sift_up(position);
            }
            None => {
                let index = slot as usize;
                if self.positions.len() <= index {
                    self.positions.resize(index + 1, NOT_IN_HEAP);
                }
                self.heap.push(delay);
                self.sift_up(self.heap.len() - 1);
            }
        }
        self.next_sequence = self.next_sequence.wrapping_add(1);
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(position) = self.position(slot) {
            self.remove_at(position, slot);
        }
    }

    fn remove_at(&mut self, position: usize, slot: u32) {
        self.positions[slot as usize] = NOT_IN_HEAP;
        self.heap.swap_remove(position);
        if position < self.heap.len() {
            let position = self.sift_up(position);
            self.sift_down(position);
        }
    }

    /// Removes the earliest slot if it is due.
    pub(super) fn pop_due(&mut self, now: Moment) -> Option<(Moment, u32)> {
        let Delay { due, slot, .. } = *self.heap.first().filter(|delay| delay.due <= now)?;
        self.remove(slot);
        Some((due, slot))
    }

    /// Removes an arbitrary slot.
    pub(super) fn pop_any(&mut self) -> Option<u32> {
        let slot = self.heap.last()?.slot;
        self.remove(slot);
        Some(slot)
    }

    /// Applies the new slot numbers after a compaction and releases unused memory.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        self.positions = Vec::new();
        for (position, delay) in self.heap.iter_mut().enumerate() {
            delay.slot = numbers[delay.slot as usize];
            let index = delay.slot as usize;
            if self.positions.len() <= index {
                self.positions.resize(index + 1, NOT_IN_HEAP);
            }
            self.positions[index] = position as u32;
        }
        self.heap.shrink_to_fit();
    }

    #[inline]
    fn position(&self, slot: u32) -> Option<usize> {
        self.positions
            .get(slot as usize)
            .filter(|position| **position != NOT_IN_HEAP)
            .map(|position| *position as usize)
    }

    fn sift_up(&mut self, mut position: usize) -> usize {
        let delay = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if !delay.is_before(&self.heap[parent]) {
                break;
            }
            self.set(position, self.heap[parent]);
            position = parent;
        }
        self.set(position, delay);
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        let delay = self.heap[position];
        loop {
            let first = position * CHILDREN + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let earliest =
                children.reduce(|one, other| if self.heap[other].is_before(&self.heap[one]) { other } else { one });
            match earliest {
                Some(child) if self.heap[child].is_before(&delay) => {
                    self.set(position, self.heap[child]);
                    position = child;
                }
                _ => break,
            }
        }
        self.set(position, delay);
    }

    fn set(&mut self, position: usize, delay: Delay) {
        self.heap[position] = delay;
        self.positions[delay.slot as usize] = position as u32;
    }
}

impl Delay {
    fn is_before(&self, other: &Self) -> bool {
        self.due < other.due || (self.due == other.due && self.sequence.wrapping_sub(other.sequence) > u32::MAX / 2)
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

    /// Reference model: a list that is sorted on every access.
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
            // Sequence numbers wrap during the test.
            delays.next_sequence = u32::MAX - 50;
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
