//! The pure state machine of the queue, without clock, threads or wakers.

use std::time::Duration;

use super::delays::Delays;
use super::moment::Moment;
use super::outcome::Outcome;
use super::priority::Priority;
use super::rate_limit::{CustomWaits, Limiter, RateLimit};
use super::running::{Running, Timing};
use super::slots::{Cause, FoundSlot, Hashed, ItemState, List, Slots};

/// The state of a queue. Callers pass the current time with [`advance`](Self::advance) before each
/// call for which [time matters](Self::heeds_time).
///
/// Field order matters: fields that every step modifies are adjacent to the mutex, to minimize the
/// cache lines that are transferred between cores under contention.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Core<T> {
    ready: [List; Priority::COUNT],
    counts: Counts,
    /// Whether the item taken last was overdue.
    last_was_overdue: bool,
    phase: Phase,
    running: Running,
    slots: Slots<T>,
    delays: Delays,
    idle: List,
    /// Number of running items that were added again.
    added_while_running: usize,
    limiter: Limiter,
    longest_wait: Duration,
    /// Items that have left the queue.
    left: Vec<T>,
    now: Moment,
    /// When to release memory after a burst. While it is set the clock is read on every step, so
    /// that a new burst is detected and unsets it.
    trim_at: Option<Moment>,
}

/// Counters since the last [`Core::take_counts`]. They wrap if metrics never read them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) adds: u32,
    pub(super) retries: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Adds are ignored; a drain waits until all items are processed.
    Draining,
    /// Adds are ignored, and pending drains complete.
    ShutDown,
}

/// The item to take next.
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
    /// Nanoseconds since its run was requested.
    pub(super) waited: u64,
}

/// How long the failure count of an idle item (not ready, delayed or running) is kept.
const IDLE_KEPT_FOR: Duration = Duration::from_secs(3600);
/// Maximum number of idle items whose failure counts are kept.
const MAX_IDLE: usize = 16_384;
/// How long unused memory is kept after a burst. Releasing it immediately would make a queue that
/// fills and empties repeatedly page-fault it in again each time, a third of its total cost.
const TRIM_AFTER: Duration = Duration::from_secs(10);

impl<T: Eq> Core<T> {
    /// Adds an item. Like `add_after` and `retry`, moves it out of `item` only if it is new.
    #[inline]
    pub(super) fn add(&mut self, item: &mut Hashed<Option<T>>, priority: Priority, cause: Cause) {
        match self.find_to_add(item) {
            Some(FoundSlot::New(slot)) => self.add_new(slot, priority),
            Some(FoundSlot::Known(slot)) => self.add_slot(slot, priority, cause),
            None => {}
        }
    }

    pub(super) fn add_after(&mut self, item: &mut Hashed<Option<T>>, delay: Duration, priority: Priority) {
        if let Some(slot) = self.slot_to_add(item) {
            self.counts.retries = self.counts.retries.wrapping_add(1);
            self.delay(slot, delay, priority);
        }
    }

    /// Records a failure of an item and delays it accordingly.
    pub(super) fn retry(&mut self, item: &mut Hashed<Option<T>>, priority: Priority, custom: &CustomWaits) {
        if let Some(slot) = self.slot_to_add(item) {
            self.counts.retries = self.counts.retries.wrapping_add(1);
            let delay = self.fail(slot, custom);
            self.delay(slot, delay, priority);
        }
    }

    fn slot_to_add(&mut self, item: &mut Hashed<Option<T>>) -> Option<u32> {
        self.find_to_add(item).map(|(FoundSlot::New(slot) | FoundSlot::Known(slot))| slot)
    }

    #[inline]
    fn find_to_add(&mut self, item: &mut Hashed<Option<T>>) -> Option<FoundSlot> {
        if self.is_closed() { None } else { self.slots.find_or_insert(item) }
    }

    /// Resets the failure count of an item, nothing else.
    pub(super) fn forget(&mut self, item: Hashed<&T>) {
        let Some(number) = self.slots.find(item) else { return };
        let slot = self.slots.get_mut(number);
        slot.failures = 0;
        if slot.state == ItemState::Idle {
            self.idle.remove(&mut self.slots, number);
            self.remove(number);
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
            added_while_running: 0,
            limiter: Limiter::new(limit),
            longest_wait,
            left: Vec::new(),
            last_was_overdue: false,
            now: Moment::START,
            trim_at: None,
            phase: Phase::Open,
            counts: Counts::default(),
        }
    }

    /// Whether the queue's contents depend on the time. If not, adding a high-priority item, taking
    /// an item and ending an item that never failed do not either, and skip reading the clock.
    #[inline]
    pub(super) fn heeds_time(&self) -> bool {
        !self.delays.is_empty()
            || !self.idle.is_empty()
            || self.trim_at.is_some()
            || self.slots.are_mostly_free()
            || Priority::HELD_BACK.iter().any(|priority| !self.ready[*priority as usize].is_empty())
    }

    /// Sets the current time: due items become ready and expired failure counts are dropped.
    pub(super) fn advance(&mut self, now: Moment) {
        let now = now.max(self.now);
        while let Some((due, slot)) = self.delays.pop_due(now) {
            self.now = due.max(self.now);
            let later = self.slots.get(slot).delayed_priority;
            self.add_slot(slot, later, Cause::Fresh);
        }
        self.now = now;
        while let Some(slot) = self.idle.first().filter(|slot| self.slots.get(*slot).since.after(IDLE_KEPT_FOR) <= now)
        {
            self.idle.remove(&mut self.slots, slot);
            self.remove(slot);
        }
        self.trim();
    }

    /// Frees the slot of an item that is in no list.
    fn remove(&mut self, slot: u32) {
        let item = self.slots.remove(slot);
        self.left.extend(item);
    }

    /// Whether items have left the queue.
    #[inline]
    pub(super) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// The items that have left the queue. The caller drops them when it has unlocked the queue,
    /// because their `drop` may use it.
    pub(super) fn take_left(&mut self) -> Vec<T> {
        std::mem::take(&mut self.left)
    }

    /// Releases unused memory [`TRIM_AFTER`] after a burst.
    fn trim(&mut self) {
        if !self.slots.are_mostly_free() {
            self.trim_at = None;
        } else if *self.trim_at.get_or_insert(self.now.after(TRIM_AFTER)) <= self.now && self.running.is_empty() {
            self.trim_at = None;
            self.compact();
        }
    }

    /// Like `trim`, for a worker that ends one item and takes the next in one step: with workers
    /// that always do so, no other step would ever see `running` empty.
    #[inline]
    pub(super) fn trim_between_turns(&mut self) {
        if self.trim_at.is_some() {
            self.trim();
        }
    }

    /// Returns the item to take next.
    #[inline]
    pub(super) fn first(&self) -> Option<First> {
        let overdue = self.overdue().filter(|_| !self.last_was_overdue);
        let slot = overdue.or_else(|| Priority::DESCENDING.iter().find_map(|it| self.ready[*it as usize].first()))?;
        Some(First { slot, overdue: overdue.is_some() })
    }

    /// How often the item of a slot that is not free has failed.
    pub(super) fn slot_failures(&self, slot: u32) -> u32 {
        self.slots.get(slot).failures
    }

    #[inline]
    pub(super) fn item(&self, slot: u32) -> &T {
        self.slots.item(slot)
    }

    /// Takes the item returned by `first`. Always inlined, so that `Taken` is assembled in the
    /// caller: a wide load of a struct just written with narrower stores stalls store-to-load
    /// forwarding.
    #[inline(always)]
    pub(super) fn take(&mut self, first: First) -> Taken {
        self.last_was_overdue = first.overdue;
        let number = first.slot;
        let slot = self.slots.get_mut(number);
        let priority = std::mem::replace(&mut slot.priority, Priority::Low);
        let (failures, waited) = (slot.failures, self.now.nanos_since(slot.requested_at));
        (slot.state, slot.since) = (ItemState::Running, self.now);
        self.ready[priority as usize].remove_first(&mut self.slots);
        self.running.push(&mut self.slots, number);
        Taken { slot: number, priority, failures, waited }
    }

    /// Takes an item back with its outcome and the priority it was taken with. Returns how long it
    /// ran, in nanoseconds, and in `left` the item if its slot was freed.
    #[inline]
    pub(super) fn end(
        &mut self,
        number: u32,
        outcome: &Outcome,
        custom: &CustomWaits,
        priority: Priority,
        left: &mut Option<T>,
    ) -> u64 {
        self.running.remove(&mut self.slots, number);
        let slot = self.slots.get_mut(number);
        let worked = self.now.nanos_since(slot.since);
        slot.state = ItemState::Unlisted;
        let mut again = slot.added_again.take();
        self.added_while_running -= usize::from(again.is_some());
        if matches!(outcome, Outcome::Forget | Outcome::RevisitAfter(_)) {
            slot.failures = 0;
        }
        let delay = match outcome {
            Outcome::Done | Outcome::Forget => None,
            _ if self.is_closed() => None,
            Outcome::Retry | Outcome::Failed(_) => Some(self.fail(number, custom)),
            Outcome::RetryAfter(delay) | Outcome::RevisitAfter(delay) => Some(*delay),
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
        *left = self.free_or_idle(number);
        worked
    }

    /// Ignores further adds, drops delayed items and completes pending drains.
    pub(super) fn shut_down(&mut self) {
        self.close(Phase::ShutDown);
    }

    /// Like `shut_down`, but drains stay pending until all items are processed.
    pub(super) fn drain(&mut self) {
        self.close(Phase::Draining);
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether no item will ever be handed out again.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed() && self.ready() == 0 && self.added_while_running == 0
    }

    /// Whether a pending drain completes.
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

    /// client-go's `depth`: requested runs that are not delayed.
    pub(super) fn depth(&self) -> usize {
        self.ready() + self.added_while_running
    }

    /// How long the running items have been running: the sum and the maximum.
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
        (slot.priority, slot.requested_at) = (priority, self.now);
        self.counts.adds = self.counts.adds.wrapping_add(1);
        self.make_ready(number);
    }

    fn add_slot(&mut self, number: u32, priority: Priority, cause: Cause) {
        let slot = self.slots.get_mut(number);
        match slot.state {
            ItemState::Ready => return self.raise(number, priority),
            ItemState::Idle => self.idle.remove(&mut self.slots, number),
            ItemState::Unlisted | ItemState::Running => {
                let backs_off = slot.failures > 0 && self.delays.contains(number);
                if backs_off && cause == Cause::Repeat {
                    slot.delayed_priority = slot.delayed_priority.max(priority);
                    return;
                }
                self.delays.remove(number);
            }
        }
        let slot = self.slots.get_mut(number);
        slot.priority = slot.priority.max(priority);
        if slot.added_again.is_none() {
            slot.requested_at = self.now;
            self.counts.adds = self.counts.adds.wrapping_add(1);
        }
        if slot.state == ItemState::Running {
            self.added_while_running += usize::from(slot.added_again.is_none());
            slot.added_again = slot.added_again.max(Some(cause));
        } else {
            self.make_ready(number);
        }
    }

    /// Moves a ready item to the back of a higher priority's list. A priority is never lowered.
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
        (slot.state, slot.since) = (ItemState::Ready, self.now);
        self.ready[slot.priority as usize].push(&mut self.slots, number);
    }

    fn fail(&mut self, number: u32, custom: &CustomWaits) -> Duration {
        let slot = self.slots.get_mut(number);
        let delay = self.limiter.wait(slot.failures, custom, self.now);
        slot.failures = slot.failures.saturating_add(1);
        delay
    }

    fn delay(&mut self, number: u32, delay: Duration, priority: Priority) {
        if delay.is_zero() {
            return self.add_slot(number, priority, Cause::Fresh);
        }
        let slot = self.slots.get_mut(number);
        if slot.state == ItemState::Idle {
            slot.state = ItemState::Unlisted;
            self.idle.remove(&mut self.slots, number);
        }
        let slot = self.slots.get_mut(number);
        slot.delayed_priority =
            if self.delays.contains(number) { slot.delayed_priority.max(priority) } else { priority };
        self.delays.put(number, self.now.after(delay));
    }

    /// If an item is in no list and not delayed, frees its slot, or keeps it as idle if it has
    /// failures. Returns the item whose slot was freed.
    #[inline]
    fn free_or_idle(&mut self, number: u32) -> Option<T> {
        let slot = self.slots.get_mut(number);
        if slot.state != ItemState::Unlisted || self.delays.contains(number) {
            return None;
        }
        if slot.failures == 0 {
            return self.slots.remove(number);
        }
        (slot.state, slot.since) = (ItemState::Idle, self.now);
        self.idle.push(&mut self.slots, number);
        let oldest = self.idle.first().filter(|_| self.idle.len() > MAX_IDLE)?;
        self.idle.remove(&mut self.slots, oldest);
        self.slots.remove(oldest)
    }

    /// Returns the overdue item that has waited longest.
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
            let left = self.free_or_idle(slot);
            self.left.extend(left);
        }
    }

    /// Compacts the slots to release memory. No worker may hold a slot number.
    #[cold]
    fn compact(&mut self) {
        let [low, normal, high] = &mut self.ready;
        let numbers = self.slots.compact(&mut [low, normal, high, &mut self.idle]);
        self.delays.renumber(&numbers);
    }
}
