//! The queue behind its lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::core::{Core, Counts};
use super::inbox::{Inbox, Letter};
use super::metrics::QueueMetrics;
use super::platform::{Clock, Mutex, MutexGuard};
use super::slots::{Hashed, Hashes};
use super::waiters::Waiters;

/// What all handles of a queue share.
pub(super) struct Shared<T> {
    state: Mutex<State<T>>,
    inbox: Inbox<T>,
    pub(super) clock: Clock,
    pub(super) hashes: Hashes,
    pub(super) name: Option<Box<str>>,
    metrics: Option<Metrics>,
}

/// On lines of the cache of its own, so that nobody has it torn away by writing or reading what lies beside it.
#[repr(align(128))]
pub(super) struct State<T> {
    pub(super) core: Core<T>,
    pub(super) waiters: Waiters,
    /// What the inbox held is here while it is put into the queue, and then what the queue had already.
    batch: Vec<Letter<T>>,
    /// The depth that the metrics know of.
    depth: usize,
}

struct Metrics {
    to: Box<dyn QueueMetrics>,
    /// Whether somebody reports unfinished work from time to time.
    reported: AtomicBool,
}

/// Whether a step depends on the time even if nothing in the queue does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    Needed,
    IfQueueHeedsIt,
}

/// client-go's period.
const REPORT_UNFINISHED_EVERY: Duration = Duration::from_millis(500);

impl<T> Shared<T> {
    pub(super) fn new(core: Core<T>, name: Option<Box<str>>, metrics: Option<Box<dyn QueueMetrics>>) -> Self {
        Self {
            state: Mutex::new(State { core, waiters: Waiters::default(), batch: Vec::new(), depth: 0 }),
            inbox: Inbox::new(),
            clock: Clock::new(),
            hashes: Hashes::default(),
            name,
            metrics: metrics.map(|to| Metrics { to, reported: AtomicBool::new(false) }),
        }
    }

    /// Does something to the queue at the time it is, then wakes whom that concerns and reports it.
    #[inline]
    pub(super) fn step<R>(&self, time: Time, step: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut state = self.state.lock();
        let _doubles = self.empty_inbox(&mut state);
        self.go_on(state, time, step)
    }

    /// The same, by those whom it does not concern what is in the inbox.
    #[inline]
    pub(super) fn step_by_inbox<R>(&self, time: Time, step: impl FnOnce(&mut State<T>) -> R) -> R {
        self.go_on(self.state.lock(), time, step)
    }

    /// Puts what is in the inbox into the queue. Returns what is to be dropped once the queue is unlocked.
    #[inline]
    #[must_use]
    pub(super) fn empty_inbox(&self, state: &mut State<T>) -> Vec<Letter<T>> {
        if self.inbox.is_empty() { Vec::new() } else { self.take_in(state) }
    }

    #[inline(never)]
    fn take_in(&self, state: &mut State<T>) -> Vec<Letter<T>> {
        self.inbox.empty_into(&mut state.core, &mut state.batch);
        if state.batch.is_empty() { Vec::new() } else { std::mem::take(&mut state.batch) }
    }

    #[inline]
    fn go_on<R>(&self, mut state: MutexGuard<'_, State<T>>, time: Time, step: impl FnOnce(&mut State<T>) -> R) -> R {
        if time == Time::Needed || state.core.heeds_time() || self.metrics.is_some() {
            state.core.advance(self.clock.now());
        }
        let result = step(&mut state);
        let State { core, waiters, batch: _, depth } = &mut *state;
        let wake = waiters.wake(core);
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

    /// Sees to it that nothing is left in the inbox any more, where a worker that waits would not find it. False if something is there.
    pub(super) fn close_inbox(&self) -> bool {
        self.inbox.close_for_waiting()
    }

    /// Looks at the queue at the time it is.
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

    /// Returns false once the queue is shut down: nothing is reported then.
    fn report_unfinished(&self) -> bool {
        let Some(metrics) = &self.metrics else { return false };
        let unfinished = self.look(|core| (!core.is_closed()).then(|| core.unfinished()));
        if let Some((all, longest)) = unfinished {
            metrics.to.unfinished(all, longest);
        }
        unfinished.is_some()
    }
}

impl<T: Eq> Shared<T> {
    /// Adds an item because something happened, without waiting for the queue if that can be helped. Metrics want to know of each at once.
    #[inline]
    pub(super) fn add_fresh(&self, mut item: Hashed<Option<T>>) {
        let state = if self.inbox.is_empty() { self.state.try_lock() } else { None };
        match state {
            Some(state) => self.go_on(state, Time::IfQueueHeedsIt, |state| state.core.add_fresh(&mut item)),
            None => self.add_later(item),
        }
    }

    #[inline(never)]
    fn add_later(&self, item: Hashed<Option<T>>) {
        let put = if self.metrics.is_none() { self.inbox.put(item, Core::add_all) } else { Err(item) };
        let Err(mut item) = put else { return };
        self.step(Time::IfQueueHeedsIt, |state| {
            if !state.waiters.are_there() {
                self.inbox.open();
            }
            state.core.add_fresh(&mut item);
        });
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

impl<T: Send + 'static> Shared<T> {
    /// Sees to it that unfinished work is reported from now on, if anybody wants to know. The task ends with the queue.
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
