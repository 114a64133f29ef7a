//! The mailbox of one handler: filled by the controller, emptied by whoever handles.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task;
use tokio::time::Instant;

use super::backlog::{Backlog, Queue, Told};
use crate::store::Event;

/// What waits for a handler, and how far it has come. Nobody ever waits to put something in.
#[derive(Debug)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    settle: Settle,
    stage: watch::Sender<Stage>,
    heard_anything: AtomicBool,
    panics: AtomicU64,
    /// The task that handles what is in here.
    task: OnceLock<task::Id>,
}

#[derive(Debug)]
struct Inner {
    queue: Queue,
    /// Of whoever waits for the next event.
    waker: Option<Waker>,
    gate: Gate,
    /// Since when something has been waiting all the time.
    behind_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    Closed,
}

/// How far a handler has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has yet to hear all that was there at the beginning.
    Beginning,
    /// It has heard that.
    Synced,
    /// It will never hear anything again, and does nothing any more.
    Ended,
}

/// When the beginning counts as heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settle {
    /// When its last event has been handed out.
    AtOnce,
    /// When something is asked for after that: the last event has been dealt with.
    OnReturn,
}

/// How a handler is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MailboxStats {
    pub(crate) waiting: usize,
    /// For how long it has not caught up.
    pub(crate) lag: Duration,
    pub(crate) overflows: u64,
    pub(crate) panics: u64,
}

impl Mailbox {
    pub(crate) fn new(policy: Backlog, settle: Settle) -> Self {
        let inner = Inner { queue: Queue::new(policy), waker: None, gate: Gate::Open, behind_since: None };
        Self {
            inner: Mutex::new(inner),
            settle,
            stage: watch::Sender::new(Stage::Beginning),
            heard_anything: AtomicBool::new(false),
            panics: AtomicU64::new(0),
            task: OnceLock::new(),
        }
    }

    /// Puts in what `fill` pushes, if anybody still wants it.
    pub(super) fn fill(&self, now: Instant, fill: impl FnOnce(&mut Queue)) {
        let mut inner = self.inner.lock();
        if inner.gate == Gate::Closed {
            return;
        }
        fill(&mut inner.queue);
        self.settle_at_once(&mut inner.queue);
        if inner.queue.len() > 0 {
            inner.behind_since.get_or_insert(now);
        }
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut inner = self.inner.lock();
        while let Some(told) = inner.queue.pop() {
            match told {
                Told::Synced => self.advance(Stage::Synced),
                Told::Event(event) => {
                    self.settle_at_once(&mut inner.queue);
                    self.heard_anything.store(true, Ordering::Relaxed);
                    return Poll::Ready(Some(event));
                }
            }
        }
        inner.behind_since = None;
        if inner.gate == Gate::Closed {
            return Poll::Ready(None);
        }
        if !inner.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            inner.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Takes nothing more in; what waits is not told any more.
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.gate = Gate::Closed;
        let policy = inner.queue.policy();
        let unheard = std::mem::replace(&mut inner.queue, Queue::new(policy));
        inner.behind_since = None;
        let waker = inner.waker.take();
        drop(inner);
        drop(unheard);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner.lock().gate == Gate::Closed
    }

    /// Closed, and nothing is being handled any more.
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

    pub(crate) fn standing(&self, now: Instant) -> MailboxStats {
        let inner = self.inner.lock();
        MailboxStats {
            waiting: inner.queue.len(),
            lag: inner.behind_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
            overflows: inner.queue.overflows(),
            panics: self.panics.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn has_heard_anything(&self) -> bool {
        self.heard_anything.load(Ordering::Relaxed)
    }

    /// This task handles what is in here.
    pub(crate) fn handled_here(&self) {
        if let Some(id) = task::try_id() {
            self.task.get_or_init(|| id);
        }
    }

    pub(crate) fn is_handled_here(&self) -> bool {
        task::try_id().is_some_and(|id| self.task.get() == Some(&id))
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(crate) fn panicked(&self) {
        tracing::error!("a handler panicked; it goes on with the next event");
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    fn settle_at_once(&self, queue: &mut Queue) {
        if self.settle == Settle::AtOnce && queue.pop_synced() {
            self.advance(Stage::Synced);
        }
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
