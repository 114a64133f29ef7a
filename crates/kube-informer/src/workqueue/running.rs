//! The items that workers hold.

use super::moment::Moment;
use super::slots::{List, Slots};

/// Counts running items and, only with metrics, tracks their start times: most queues have no
/// metrics, and maintaining a list on each step is expensive.
#[derive(Debug)]
pub(super) struct Running {
    count: usize,
    times: Option<Box<Times>>,
}

/// Whether metrics need to know how long items have been running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    Wanted,
    NotWanted,
}

#[derive(Debug)]
struct Times {
    /// In the order in which they were taken.
    order: List,
    /// Sum of the times at which they were taken, in nanoseconds.
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

    /// Adds a slot whose `since` is the current time.
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

    /// Returns the total run time of all running items in nanoseconds, and when the first started.
    pub(super) fn unfinished<T>(&self, slots: &Slots<T>, now: Moment) -> (u128, Option<Moment>) {
        let Some(Times { order, taken_at }) = self.times.as_deref() else { return (0, None) };
        let all = (self.count as u128 * u128::from(now.nanos())).saturating_sub(*taken_at);
        (all, order.first().map(|slot| slots.get(slot).since))
    }
}
