//! The rules of the queue, without a clock, a thread or a waker.

use std::time::Duration;

use super::delays::Delays;
use super::moment::Moment;
use super::outcome::Outcome;
use super::priority::Priority;
use super::rate_limit::{Limiter, RateLimit};
use super::running::{Running, Timing};
use super::slots::{Cause, Found, Hashed, List, Place, Slots};

/// The state of a queue. Whoever calls it says what time it is, by [`advance`](Self::advance), before each call for which
/// [time matters](Self::heeds_time).
///
/// In this order, so that what every step changes lies together behind the lock: each line of it is fetched from the processor that had
/// the queue before.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Core<T> {
    ready: [List; Priority::COUNT],
    counts: Counts,
    /// Whether the last turn went to work that was overdue.
    overdue_had_its_turn: bool,
    phase: Phase,
    running: Running,
    slots: Slots<T>,
    delays: Delays,
    idle: List,
    /// How many of those that run were added again.
    agains: usize,
    limiter: Limiter,
    longest_wait: Duration,
    now: Moment,
    /// When memory is given back that a flood has left. As long as it is set time matters, so that the next flood is noticed, which unsets it.
    trim_at: Option<Moment>,
}

/// What has been counted since it was last asked for. Wraps, if nobody ever asks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) adds: u32,
    pub(super) retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing more is added; somebody waits until all work is done.
    Draining,
    /// Nothing more is added, and nobody waits.
    ShutDown,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct First {
    pub(super) slot: u32,
    overdue: bool,
}

/// An item handed to a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) slot: u32,
    pub(super) priority: Priority,
    pub(super) failures: u32,
    /// How long ago it was asked for, in nanoseconds.
    pub(super) waited: u64,
}

/// The failures of an item that is neither queued, waiting nor running are remembered for so long,
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);
/// and of no more items than this.
const REMEMBERED: usize = 16_384;
/// Memory that a flood has left is kept for the next one for so long. Without that, a queue that fills and empties again and again would
/// get it page by page each time, which takes a third of all it does.
const KEPT_FOR: Duration = Duration::from_secs(10);

impl<T: Eq> Core<T> {
    /// Adds an item. This and the next two take it only if it is new.
    #[inline]
    pub(super) fn add(&mut self, item: &mut Hashed<Option<T>>, priority: Priority, cause: Cause) {
        match self.find_to_add(item) {
            Some(Found::New(slot)) => self.add_new(slot, priority),
            Some(Found::Known(slot)) => self.add_slot(slot, priority, cause),
            None => {}
        }
    }

    pub(super) fn add_after(&mut self, item: &mut Hashed<Option<T>>, delay: Duration, priority: Priority) {
        if let Some(slot) = self.slot_to_add(item) {
            self.counts.retries = self.counts.retries.wrapping_add(1);
            self.delay(slot, delay, priority);
        }
    }

    /// Adds an item as one that has failed.
    pub(super) fn retry(&mut self, item: &mut Hashed<Option<T>>, priority: Priority) {
        if let Some(slot) = self.slot_to_add(item) {
            self.counts.retries = self.counts.retries.wrapping_add(1);
            let delay = self.fail(slot);
            self.delay(slot, delay, priority);
        }
    }

    fn slot_to_add(&mut self, item: &mut Hashed<Option<T>>) -> Option<u32> {
        self.find_to_add(item).map(|(Found::New(slot) | Found::Known(slot))| slot)
    }

    #[inline]
    fn find_to_add(&mut self, item: &mut Hashed<Option<T>>) -> Option<Found> {
        if self.is_closed() { None } else { self.slots.find_or_insert(item) }
    }

    /// Forgets the failures of an item, nothing else.
    pub(super) fn forget(&mut self, item: Hashed<&T>) {
        let Some(number) = self.slots.find(item) else { return };
        let slot = self.slots.get_mut(number);
        slot.failures = 0;
        if slot.place == Place::Idle {
            self.idle.remove(&mut self.slots, number);
            self.slots.remove(number);
        }
    }

    pub(super) fn failures(&self, item: Hashed<&T>) -> u32 {
        self.slots.find(item).map_or(0, |slot| self.slots.get(slot).failures)
    }
}

impl<T> Core<T> {
    pub(super) fn new(limit: RateLimit, longest_wait: Duration, timing: Timing) -> Self {
        Self {
            slots: Slots::new(),
            delays: Delays::default(),
            ready: [const { List::new() }; Priority::COUNT],
            running: Running::new(timing),
            idle: List::new(),
            agains: 0,
            limiter: Limiter::new(limit),
            longest_wait,
            overdue_had_its_turn: false,
            now: Moment::START,
            trim_at: None,
            phase: Phase::Open,
            counts: Counts::default(),
        }
    }

    /// Whether what is in the queue depends on the time. If not, adding fresh work, taking work and ending work that never failed
    /// do not either, and need not pay for a look at the clock.
    #[inline]
    pub(super) fn heeds_time(&self) -> bool {
        !self.delays.is_empty()
            || !self.idle.is_empty()
            || self.trim_at.is_some()
            || self.slots.are_mostly_free()
            || Priority::HELD_BACK.iter().any(|priority| !self.ready[*priority as usize].is_empty())
    }

    /// Tells the time; what is due becomes ready, and what was kept for too long goes.
    pub(super) fn advance(&mut self, now: Moment) {
        let now = now.max(self.now);
        while let Some((due, slot)) = self.delays.pop_due(now) {
            self.now = due.max(self.now);
            let later = self.slots.get(slot).later;
            self.add_slot(slot, later, Cause::Fresh);
        }
        self.now = now;
        while let Some(slot) = self.idle.first().filter(|slot| self.slots.get(*slot).since.after(REMEMBERED_FOR) <= now)
        {
            self.idle.remove(&mut self.slots, slot);
            self.slots.remove(slot);
        }
        self.trim();
    }

    /// Gives memory back that a flood has left some time ago.
    fn trim(&mut self) {
        if !self.slots.are_mostly_free() {
            self.trim_at = None;
        } else if *self.trim_at.get_or_insert(self.now.after(KEPT_FOR)) <= self.now && self.running.is_empty() {
            self.trim_at = None;
            self.compact();
        }
    }

    /// The same, for a worker that goes from one item to the next: nobody else may ever find it between two.
    #[inline]
    pub(super) fn trim_between_turns(&mut self) {
        if self.trim_at.is_some() {
            self.trim();
        }
    }

    /// The item whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<First> {
        let overdue = self.overdue().filter(|_| !self.overdue_had_its_turn);
        let slot = overdue.or_else(|| Priority::DESCENDING.iter().find_map(|it| self.ready[*it as usize].first()))?;
        Some(First { slot, overdue: overdue.is_some() })
    }

    #[inline]
    pub(super) fn item(&self, slot: u32) -> &T {
        self.slots.item(slot)
    }

    /// Hands out the item whose turn it is. What it says of it is put together where it is wanted: read as a whole right after it was written
    /// in parts, a processor would stall on it.
    #[inline(always)]
    pub(super) fn take(&mut self, first: First) -> Taken {
        self.overdue_had_its_turn = first.overdue;
        let number = first.slot;
        let slot = self.slots.get_mut(number);
        let priority = std::mem::replace(&mut slot.priority, Priority::Low);
        let (failures, waited) = (slot.failures, self.now.nanos_since(slot.asked));
        (slot.place, slot.since) = (Place::Running, self.now);
        self.ready[priority as usize].remove_first(&mut self.slots);
        self.running.push(&mut self.slots, number);
        Taken { slot: number, priority, failures, waited }
    }

    /// Takes an item back, with what the worker says about it and the priority it was taken with. Returns how long it ran, in
    /// nanoseconds, and in `left` the item if nothing is left to know about it.
    #[inline]
    pub(super) fn end(&mut self, number: u32, outcome: &Outcome, priority: Priority, left: &mut Option<T>) -> u64 {
        self.running.remove(&mut self.slots, number);
        let slot = self.slots.get_mut(number);
        let worked = self.now.nanos_since(slot.since);
        slot.place = Place::Nowhere;
        let mut again = slot.again.take();
        self.agains -= usize::from(again.is_some());
        if matches!(outcome, Outcome::Forget | Outcome::RevisitAfter(_)) {
            slot.failures = 0;
        }
        let delay = match *outcome {
            Outcome::Done | Outcome::Forget => None,
            _ if self.is_closed() => None,
            Outcome::Retry => Some(self.fail(number)),
            Outcome::RetryAfter(delay) | Outcome::RevisitAfter(delay) => Some(delay),
        };
        if let Some(delay) = delay {
            self.counts.retries = self.counts.retries.wrapping_add(1);
            let slot = self.slots.get_mut(number);
            slot.priority = slot.priority.max(priority);
            if again == Some(Cause::Repeat) && slot.failures > 0 {
                again = None;
            }
            if again.is_none() {
                let priority = std::mem::replace(&mut slot.priority, Priority::Low);
                self.delay(number, delay, priority);
            }
        }
        if again.is_some() {
            self.make_ready(number);
        }
        *left = self.rest(number);
        worked
    }

    /// Takes nothing more, forgets what waits for its time, and lets nobody wait for the rest any longer.
    pub(super) fn shut_down(&mut self) {
        self.close(Phase::ShutDown);
    }

    /// The same, but somebody will wait for the rest.
    pub(super) fn drain(&mut self) {
        self.close(Phase::Draining);
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Nothing will ever be handed out again.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed() && self.ready() == 0 && self.agains == 0
    }

    /// Nobody has to wait for work to be done.
    pub(super) fn is_drained(&self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Draining => self.ready() == 0 && self.running() == 0,
            Phase::ShutDown => true,
        }
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.delays.next_due()
    }

    #[inline]
    pub(super) fn ready(&self) -> usize {
        self.ready.iter().map(List::len).sum()
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn delayed(&self) -> usize {
        self.delays.len()
    }

    /// What client-go calls the depth: the runs that have been asked for and can be had without waiting for a time.
    pub(super) fn depth(&self) -> usize {
        self.ready() + self.agains
    }

    /// How long those that run have been running: all together, and the longest.
    pub(super) fn unfinished(&self) -> (Duration, Duration) {
        let (all, first) = self.running.unfinished(&self.slots, self.now);
        let longest = first.map(|since| self.now.since(since));
        (Duration::from_nanos(u64::try_from(all).unwrap_or(u64::MAX)), longest.unwrap_or_default())
    }

    pub(super) fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    #[inline]
    fn add_new(&mut self, number: u32, priority: Priority) {
        let slot = self.slots.get_mut(number);
        (slot.priority, slot.asked) = (priority, self.now);
        self.counts.adds = self.counts.adds.wrapping_add(1);
        self.make_ready(number);
    }

    fn add_slot(&mut self, number: u32, priority: Priority, cause: Cause) {
        let slot = self.slots.get_mut(number);
        match slot.place {
            Place::Ready => return self.raise(number, priority),
            Place::Idle => self.idle.remove(&mut self.slots, number),
            Place::Nowhere | Place::Running => {
                let backs_off = slot.failures > 0 && self.delays.contains(number);
                if backs_off && cause == Cause::Repeat {
                    slot.later = slot.later.max(priority);
                    return;
                }
                self.delays.remove(number);
            }
        }
        let slot = self.slots.get_mut(number);
        slot.priority = slot.priority.max(priority);
        if slot.again.is_none() {
            slot.asked = self.now;
            self.counts.adds = self.counts.adds.wrapping_add(1);
        }
        if slot.place == Place::Running {
            self.agains += usize::from(slot.again.is_none());
            slot.again = slot.again.max(Some(cause));
        } else {
            self.make_ready(number);
        }
    }

    /// An item that is ready moves behind the work of the priority it is raised to; none is ever lowered.
    fn raise(&mut self, number: u32, priority: Priority) {
        let slot = self.slots.get_mut(number);
        if priority > slot.priority {
            let old = std::mem::replace(&mut slot.priority, priority);
            slot.since = self.now;
            self.ready[old as usize].remove(&mut self.slots, number);
            self.ready[priority as usize].push(&mut self.slots, number);
        }
    }

    #[inline]
    fn make_ready(&mut self, number: u32) {
        let slot = self.slots.get_mut(number);
        (slot.place, slot.since) = (Place::Ready, self.now);
        self.ready[slot.priority as usize].push(&mut self.slots, number);
    }

    fn fail(&mut self, number: u32) -> Duration {
        let slot = self.slots.get_mut(number);
        let delay = self.limiter.wait(slot.failures, self.now);
        slot.failures = slot.failures.saturating_add(1);
        delay
    }

    fn delay(&mut self, number: u32, delay: Duration, priority: Priority) {
        if delay.is_zero() {
            return self.add_slot(number, priority, Cause::Fresh);
        }
        let slot = self.slots.get_mut(number);
        if slot.place == Place::Idle {
            slot.place = Place::Nowhere;
            self.idle.remove(&mut self.slots, number);
        }
        let slot = self.slots.get_mut(number);
        slot.later = if self.delays.contains(number) { slot.later.max(priority) } else { priority };
        self.delays.put(number, self.now.after(delay));
    }

    /// Finds a place for an item that may have none: only its failures are kept, or nothing at all.
    #[inline]
    fn rest(&mut self, number: u32) -> Option<T> {
        let slot = self.slots.get_mut(number);
        if slot.place != Place::Nowhere || self.delays.contains(number) {
            return None;
        }
        if slot.failures == 0 {
            return self.slots.remove(number);
        }
        (slot.place, slot.since) = (Place::Idle, self.now);
        self.idle.push(&mut self.slots, number);
        let oldest = self.idle.first().filter(|_| self.idle.len() > REMEMBERED)?;
        self.idle.remove(&mut self.slots, oldest);
        self.slots.remove(oldest)
    }

    /// The item that has waited longest of those that have waited for too long.
    #[inline]
    fn overdue(&self) -> Option<u32> {
        let first = |priority: &Priority| self.ready[*priority as usize].first();
        let since = |slot: &u32| self.slots.get(*slot).since;
        let oldest = Priority::HELD_BACK.iter().filter_map(first).min_by_key(since)?;
        (since(&oldest).after(self.longest_wait) <= self.now).then_some(oldest)
    }

    fn close(&mut self, phase: Phase) {
        self.phase = phase;
        while let Some(slot) = self.delays.pop_any() {
            self.rest(slot);
        }
    }

    /// Gives memory back, at a time when nobody holds the number of a slot.
    #[cold]
    fn compact(&mut self) {
        let [low, normal, high] = &mut self.ready;
        let numbers = self.slots.compact(&mut [low, normal, high, &mut self.idle]);
        self.delays.renumber(&numbers);
    }
}
