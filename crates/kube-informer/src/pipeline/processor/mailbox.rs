//! The mailbox of one handler: filled by the controller, emptied by the handler's task.

use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task;
use tokio::time::Instant;

use super::backlog::{Backlog, Popped, Queue};
use crate::object::ObjectKey;
use crate::pipeline::platform::{Mutex, watch};
use crate::store::Event;

/// The queue of a handler and its progress. Filling it never waits.
///
/// Wakers are called and objects dropped after the lock is released: a dropped object may be the
/// last handle of a decoded body, which is the user's type.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    settle: Settle,
    stage: watch::Sender<Stage>,
    delivered_any: AtomicBool,
    panics: AtomicU64,
    /// How often the handler's task has begun and ended to run: odd while it runs.
    polls: AtomicU64,
    is_detached: AtomicBool,
    /// The task that runs the handler.
    task: OnceLock<task::Id>,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    /// The waker of the task that waits for the next event.
    waker: Option<Waker>,
    is_closed: bool,
    /// The object of the event that the handler was called with, until it has returned.
    handling: Option<ObjectKey>,
    /// How many events have been taken.
    taken: u64,
    /// Since when the queue has been continuously non-empty.
    behind_since: Option<Instant>,
}

/// The progress of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not received all initial objects yet.
    Initial,
    /// It has received all initial objects.
    Synced,
    /// It receives nothing more, and is not running any more.
    Ended,
}

/// The progress of a handler's task; if it does not change while the task is polled, the handler
/// blocks its thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) polls: u64,
    pub(crate) taken: u64,
}

impl Progress {
    pub(crate) fn is_polled(self) -> bool {
        self.polls % 2 == 1
    }
}

/// When the initial objects count as delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settle {
    /// When the last initial event has been returned by `poll_take`.
    AtOnce,
    /// At the next `poll_take` after that: the handler has processed the last initial event.
    OnReturn,
}

/// Queue statistics of a handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MailboxStats {
    pub(crate) waiting: usize,
    /// How long the queue has been continuously non-empty.
    pub(crate) lag: Duration,
    pub(crate) overflows: u64,
    pub(crate) panics: u64,
}

impl Mailbox {
    pub(crate) fn new(policy: Backlog, settle: Settle) -> Self {
        let queue = Queue::new(policy);
        let inner = Inner { queue, waker: None, is_closed: false, handling: None, taken: 0, behind_since: None };
        Self {
            inner: Mutex::new(inner),
            settle,
            stage: watch::Sender::new(Stage::Initial),
            delivered_any: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            polls: AtomicU64::new(0),
            is_detached: AtomicBool::new(false),
            task: OnceLock::new(),
        }
    }

    /// Queues what `fill` pushes, unless the mailbox is closed.
    pub(super) fn fill(&self, now: Instant, fill: impl FnOnce(&mut Queue)) {
        let mut inner = self.inner.lock();
        if inner.is_closed {
            return;
        }
        fill(&mut inner.queue);
        let synced = self.settles_at_once(&mut inner.queue);
        if inner.queue.len() > 0 {
            inner.behind_since.get_or_insert(now);
        }
        let waker = inner.waker.take();
        let _discarded = inner.queue.take_discarded();
        drop(inner);
        if synced {
            self.advance(Stage::Synced);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let (mut synced, mut taken, mut old_waker) = (false, Poll::Pending, None);
        let mut inner = self.inner.lock();
        inner.handling = None;
        while let Some(popped) = inner.queue.pop() {
            match popped {
                Popped::Synced => synced = true,
                Popped::Event(event) => {
                    inner.taken += 1;
                    if self.settle == Settle::OnReturn {
                        inner.handling = Some(event.key().clone());
                    }
                    taken = Poll::Ready(Some(event));
                    break;
                }
            }
        }
        if taken.is_ready() {
            synced |= self.settles_at_once(&mut inner.queue);
            self.delivered_any.store(true, Ordering::Relaxed);
        } else {
            inner.behind_since = None;
            if inner.is_closed {
                taken = Poll::Ready(None);
            } else if !inner.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                old_waker = inner.waker.replace(cx.waker().clone());
            }
        }
        let discarded = inner.queue.take_discarded();
        drop(inner);
        if synced {
            self.advance(Stage::Synced);
        }
        drop((discarded, old_waker));
        taken
    }

    /// Closes the mailbox; queued events are dropped.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.is_closed = true;
        let policy = inner.queue.policy();
        let dropped = std::mem::replace(&mut inner.queue, Queue::new(policy));
        inner.behind_since = None;
        let waker = inner.waker.take();
        drop(inner);
        drop(dropped);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.lock().is_closed
    }

    /// Closes the mailbox after the handler has finished.
    pub(crate) fn end(&self) {
        self.close();
        self.advance(Stage::Ended);
    }

    pub(crate) fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.inner.lock().queue.len()
    }

    pub(crate) fn stats(&self, now: Instant) -> MailboxStats {
        let inner = self.inner.lock();
        MailboxStats {
            waiting: inner.queue.len(),
            lag: inner.behind_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
            overflows: inner.queue.overflows(),
            panics: self.panics.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn has_delivered_any(&self) -> bool {
        self.delivered_any.load(Ordering::Relaxed)
    }

    /// Records the current task as the one that runs the handler.
    pub(crate) fn handled_here(&self) {
        if let Some(id) = task::try_id() {
            self.task.get_or_init(|| id);
        }
    }

    pub(crate) fn is_handled_here(&self) -> bool {
        task::try_id().is_some_and(|id| self.task.get() == Some(&id))
    }

    /// Polls the handler's task, and counts it.
    pub(crate) fn poll<F: Future>(&self, task: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        let polled = task.poll(cx);
        self.polls.fetch_add(1, Ordering::Relaxed);
        polled
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress { polls: self.polls.load(Ordering::Relaxed), taken: self.inner.lock().taken }
    }

    /// The object of the event that the handler is busy with.
    pub(crate) fn handling(&self) -> Option<ObjectKey> {
        self.inner.lock().handling.clone()
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.stage.borrow() == Stage::Ended
    }

    /// Its registration is gone, but the handler stays.
    pub(crate) fn detach(&self) {
        self.is_detached.store(true, Ordering::Relaxed);
    }

    /// Whether it is detached, and has not received all initial objects.
    pub(crate) fn is_detached_in_vain(&self) -> bool {
        self.is_detached.load(Ordering::Relaxed) && *self.stage.borrow() == Stage::Initial
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Counts and logs a panic of the handler of an event of this object.
    pub(crate) fn panicked(&self, kind: &str, key: &ObjectKey) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(kind, %key, "a handler panicked; it goes on with the next event");
    }

    /// Whether the last of the initial objects has just been taken, and settles the rest at once.
    fn settles_at_once(&self, queue: &mut Queue) -> bool {
        self.settle == Settle::AtOnce && queue.pop_synced()
    }

    fn advance(&self, to: Stage) {
        self.stage.send_if_modified(|stage| {
            let forward = *stage != Stage::Ended && *stage != to;
            if forward {
                *stage = to;
            }
            forward
        });
    }
}
