//! The queue behind its mutex.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::core::{Core, Counts, Taken};
use super::metrics::QueueMetrics;
use super::outcome::Outcome;
use super::platform::{Clock, Mutex};
use super::rate_limit::{CustomWaits, RateLimit};
use super::slots::Hashes;
use super::waiters::Waiters;

/// The state shared by all handles of a queue.
pub(super) struct SharedQueue<T> {
    state: Mutex<QueueState<T>>,
    pub(super) clock: Clock,
    pub(super) hashes: Hashes,
    pub(super) name: Option<Box<str>>,
    /// The rate limit, if it has functions of the user, which are called before the queue is
    /// locked.
    custom: Option<RateLimit>,
    metrics: Option<Metrics>,
}

pub(super) struct QueueState<T> {
    pub(super) core: Core<T>,
    pub(super) waiters: Waiters,
    /// The depth last reported to the metrics.
    depth: usize,
}

struct Metrics {
    to: Box<dyn QueueMetrics>,
    /// Whether the task that reports unfinished work has been started.
    reported: AtomicBool,
}

/// Whether a step needs the current time even if the queue's contents do not depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Needed,
    IfQueueHeedsIt,
}

/// The same period as in client-go.
const REPORT_UNFINISHED_EVERY: Duration = Duration::from_millis(500);

impl<T> SharedQueue<T> {
    pub(super) fn new(
        core: Core<T>,
        limit: &RateLimit,
        name: Option<Box<str>>,
        metrics: Option<Box<dyn QueueMetrics>>,
    ) -> Self {
        Self {
            state: Mutex::new(QueueState { core, waiters: Waiters::default(), depth: 0 }),
            clock: Clock::new(),
            hashes: Hashes::default(),
            name,
            custom: limit.is_custom().then(|| limit.clone()),
            metrics: metrics.map(|to| Metrics { to, reported: AtomicBool::new(false) }),
        }
    }

    /// Runs `step` on the locked queue at the current time, then wakes waiters, reports metrics and
    /// drops what has left the queue after unlocking: all of these may use the queue. Of the user's
    /// code only `eq` and `clone` of the items are called while the queue is locked.
    #[inline]
    pub(super) fn step<R>(&self, time: Time, step: impl FnOnce(&mut QueueState<T>) -> R) -> R {
        let mut state = self.state.lock();
        if time == Time::Needed || state.core.heeds_time() || self.metrics.is_some() {
            state.core.advance(self.clock.now());
        }
        let result = step(&mut state);
        let QueueState { core, waiters, depth } = &mut *state;
        let wake = waiters.wake(core);
        let has_left = core.has_left() || waiters.has_left();
        let _left = has_left.then(|| (core.take_left(), waiters.take_left()));
        let report = self.metrics.as_ref().map(|metrics| {
            let change = core.depth() as i64 - std::mem::replace(depth, core.depth()) as i64;
            (metrics, change, core.take_counts())
        });
        drop(state);
        wake.wake();
        if let Some((metrics, change, counts)) = report {
            metrics.report(change, counts);
        }
        result
    }

    /// Takes an item back from its worker and runs `then` with the same lock acquisition.
    #[inline]
    pub(super) fn end<R>(
        &self,
        Taken { slot, priority, failures, .. }: Taken,
        outcome: &Outcome,
        then: impl FnOnce(&mut QueueState<T>) -> R,
    ) -> R {
        let timeless = matches!(outcome, Outcome::Done | Outcome::Forget) && failures == 0;
        let time = if timeless { Time::IfQueueHeedsIt } else { Time::Needed };
        let failed = matches!(outcome, Outcome::Retry | Outcome::Failed(_));
        let custom = self.custom_waits(|core| failed.then(|| core.slot_failures(slot)));
        // Dropped after the queue is unlocked.
        let mut left = None;
        let (worked, result) = self.step(time, |state| {
            let worked = state.core.end(slot, outcome, &custom, priority, &mut left);
            (worked, then(state))
        });
        self.report_finished(worked);
        result
    }

    /// Calls the user's functions of the rate limit for an item that fails, if it has any and
    /// `failures` returns how often the item has failed before.
    #[inline]
    pub(super) fn custom_waits(&self, failures: impl FnOnce(&Core<T>) -> Option<u32>) -> CustomWaits {
        let Some(limit) = &self.custom else { return CustomWaits::default() };
        let failures = self.look(|core| if core.is_closed() { None } else { failures(core) });
        failures.map(|failures| limit.custom_waits(failures)).unwrap_or_default()
    }

    /// Reads the queue at the current time.
    pub(super) fn look<R>(&self, look: impl FnOnce(&Core<T>) -> R) -> R {
        self.step(Time::IfQueueHeedsIt, |state| look(&state.core))
    }

    #[inline]
    pub(super) fn report_taken(&self, waited_nanos: u64) {
        if let Some(metrics) = &self.metrics {
            metrics.to.taken(Duration::from_nanos(waited_nanos));
        }
    }

    #[inline]
    pub(super) fn report_finished(&self, worked_nanos: u64) {
        if let Some(metrics) = &self.metrics {
            metrics.to.finished(Duration::from_nanos(worked_nanos));
        }
    }

    /// Returns false once the queue is shut down; nothing is reported then.
    fn report_unfinished(&self) -> bool {
        let Some(metrics) = &self.metrics else { return false };
        let unfinished = self.look(|core| (!core.is_closed()).then(|| core.unfinished()));
        if let Some((all, longest)) = unfinished {
            metrics.to.unfinished(all, longest);
        }
        unfinished.is_some()
    }
}

impl Metrics {
    fn report(&self, change: i64, counts: Counts) {
        (0..counts.adds).for_each(|_| self.to.added());
        (0..counts.retries).for_each(|_| self.to.retried());
        if change != 0 {
            self.to.depth(change);
        }
    }
}

impl<T: Send + 'static> SharedQueue<T> {
    /// Starts the task that reports unfinished work, if the queue has metrics and the task is not
    /// yet running. The task ends when the queue is dropped or shut down.
    #[inline]
    pub(super) fn keep_reporting(self: &Arc<Self>) {
        if let Some(metrics) = &self.metrics {
            self.report_from_now_on(metrics);
        }
    }

    fn report_from_now_on(self: &Arc<Self>, metrics: &Metrics) {
        if metrics.reported.load(Ordering::Relaxed) || metrics.reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let queue: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(REPORT_UNFINISHED_EVERY).await;
                if !queue.upgrade().is_some_and(|queue| queue.report_unfinished()) {
                    break;
                }
            }
        });
    }
}
