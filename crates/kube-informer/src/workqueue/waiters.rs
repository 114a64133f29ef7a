//! The tasks that wait for the queue, and which of them to wake.

use std::collections::VecDeque;
use std::task::Waker;

use super::core::Core;
use super::moment::Moment;

/// The workers that wait for an item, and the tasks that wait for a drain.
///
/// One waiting worker, the timekeeper, also sleeps until the next item is due, so that the queue
/// needs no task of its own. A task is removed here when it is woken. It registers again if it
/// finds no item; a task that gives up [leaves](Self::leave), so that another one is woken in its
/// place.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    workers: VecDeque<(Ticket, Waker)>,
    timekeeper: Option<(Ticket, Waker, Moment)>,
    drains: Vec<(Ticket, Waker)>,
    last_ticket: u64,
    /// The wakers of those that no longer wait.
    left: Vec<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

/// The tasks to wake after the lock is released.
#[derive(Debug)]
#[must_use]
pub(super) enum Wake {
    NoWaiter,
    One(Waker),
    All(Vec<Waker>),
}

impl Waiters {
    pub(super) fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Registers a worker that waits for an item. If an item is due in the future and there is no
    /// timekeeper, the worker becomes the timekeeper and has to sleep until the returned time.
    pub(super) fn wait(&mut self, ticket: Ticket, waker: Waker, next_due: Option<Moment>) -> Option<Moment> {
        self.leave(ticket);
        if let Some(due) = next_due.filter(|_| self.timekeeper.is_none()) {
            self.timekeeper = Some((ticket, waker, due));
            return Some(due);
        }
        self.workers.push_back((ticket, waker));
        None
    }

    /// Registers a task that waits for a drain.
    pub(super) fn wait_for_end(&mut self, ticket: Ticket, waker: Waker) {
        self.leave(ticket);
        self.drains.push((ticket, waker));
    }

    pub(super) fn leave(&mut self, ticket: Ticket) {
        let timekeeper = self.timekeeper.take_if(|(holder, ..)| *holder == ticket);
        self.left.extend(timekeeper.map(|(_, waker, _)| waker));
        let worker = self.workers.iter().position(|(other, _)| *other == ticket);
        self.left.extend(worker.and_then(|at| self.workers.remove(at)).map(|(_, waker)| waker));
        let drains = self.drains.extract_if(.., |(other, _)| *other == ticket);
        self.left.extend(drains.map(|(_, waker)| waker));
    }

    /// Whether workers have ceased to wait.
    #[inline]
    pub(super) fn has_left(&self) -> bool {
        !self.left.is_empty()
    }

    /// The wakers of those that no longer wait. The caller drops them when it has unlocked the
    /// queue: the last waker of a task may drop the task.
    pub(super) fn take_left(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.left)
    }

    /// Selects the tasks to wake; called after every change of the queue or the waiters. Wakes only
    /// one worker, whose own step wakes the next one after it has taken its item.
    #[inline]
    pub(super) fn wake<T>(&mut self, core: &Core<T>) -> Wake {
        if self.workers.is_empty() && self.timekeeper.is_none() && self.drains.is_empty() {
            return Wake::NoWaiter;
        }
        self.select(core)
    }

    fn select<T>(&mut self, core: &Core<T>) -> Wake {
        if core.is_closed() {
            return self.wake_when_closed(core);
        }
        if core.ready() > 0 {
            return self.any_worker().into();
        }
        let Some(next_due) = core.next_due() else { return Wake::NoWaiter };
        match &self.timekeeper {
            None => self.any_worker().into(),
            Some((.., awaited)) if next_due < *awaited => self.timekeeper.take().map(|(_, waker, _)| waker).into(),
            Some(_) => Wake::NoWaiter,
        }
    }

    fn wake_when_closed<T>(&mut self, core: &Core<T>) -> Wake {
        let mut all = Vec::new();
        if core.is_drained() {
            all.extend(self.drains.drain(..).map(|(_, waker)| waker));
        }
        if core.is_over() {
            all.extend(std::iter::from_fn(|| self.any_worker()));
        } else if core.ready() > 0 {
            all.extend(self.any_worker());
        }
        Wake::All(all)
    }

    /// Prefers workers to the timekeeper, which would have to be replaced.
    fn any_worker(&mut self) -> Option<Waker> {
        let worker = self.workers.pop_front().map(|(_, waker)| waker);
        worker.or_else(|| self.timekeeper.take().map(|(_, waker, _)| waker))
    }
}

impl Wake {
    #[inline]
    pub(super) fn wake(self) {
        match self {
            Self::NoWaiter => {}
            Self::One(waker) => waker.wake(),
            Self::All(wakers) => wakers.into_iter().for_each(Waker::wake),
        }
    }
}

impl From<Option<Waker>> for Wake {
    fn from(waker: Option<Waker>) -> Self {
        waker.map_or(Self::NoWaiter, Self::One)
    }
}
