//! Those that workers have.

use super::moment::Moment;
use super::slots::{List, Slots};

/// How many items are with workers and, only if somebody wants to know, since when: most queues have no metrics, and lists are dear.
#[derive(Debug)]
pub(super) struct Running {
    count: usize,
    times: Option<Box<Times>>,
}

/// Whether anybody will ask how long items have been running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    Wanted,
    NotWanted,
}

#[derive(Debug)]
struct Times {
    /// In the order in which they were taken.
    order: List,
    /// The sum of the moments at which they were.
    taken_at: u128,
}

impl Running {
    pub(super) fn new(timing: Timing) -> Self {
        let times = (timing == Timing::Wanted).then(|| Box::new(Times { order: List::new(), taken_at: 0 }));
        Self { count: 0, times }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A slot whose `since` says that it was taken now.
    #[inline]
    pub(super) fn push<T>(&mut self, slots: &mut Slots<T>, number: u32) {
        self.count += 1;
        if let Some(Times { order, taken_at }) = self.times.as_deref_mut() {
            *taken_at += u128::from(slots.get(number).since.nanos());
            order.push(slots, number);
        }
    }

    #[inline]
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, number: u32) {
        self.count -= 1;
        if let Some(Times { order, taken_at }) = self.times.as_deref_mut() {
            *taken_at -= u128::from(slots.get(number).since.nanos());
            order.remove(slots, number);
        }
    }

    /// For how many nanoseconds they have been running, all together, and since when the first one.
    pub(super) fn unfinished<T>(&self, slots: &Slots<T>, now: Moment) -> (u128, Option<Moment>) {
        let Some(Times { order, taken_at }) = self.times.as_deref() else { return (0, None) };
        let all = (self.count as u128 * u128::from(now.nanos())).saturating_sub(*taken_at);
        (all, order.first().map(|slot| slots.get(slot).since))
    }
}
