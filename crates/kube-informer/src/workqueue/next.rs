//! Waiting for work.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::core::Taken;
use super::item::Item;
use super::platform::Sleep;
use super::shared::{Shared, Time};
use super::waiters::Ticket;

/// The future of [`WorkQueue::next`](super::WorkQueue::next).
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'a, T> {
    queue: &'a Arc<Shared<T>>,
    /// Since it has waited for the first time, until it ends.
    ticket: Option<Ticket>,
    /// While it keeps the queue's time.
    sleep: Option<Sleep>,
}

enum Step<T> {
    Take(Taken<T>),
    End,
    Wait,
    WaitUntil(Sleep),
}

impl<'a, T> Next<'a, T> {
    pub(super) fn new(queue: &'a Arc<Shared<T>>) -> Self {
        Self { queue, ticket: None, sleep: None }
    }
}

impl<T: Clone> Next<'_, T> {
    fn step(&mut self, cx: &Context<'_>) -> Step<T> {
        let queue = self.queue;
        let ticket = &mut self.ticket;
        queue.step(Time::IfQueueHeedsIt, |state| {
            if let Some(taken) = state.core.take() {
                if let Some(ticket) = ticket.take() {
                    state.waiters.leave(ticket);
                }
                return Step::Take(taken);
            }
            if state.core.is_over() {
                if let Some(ticket) = ticket.take() {
                    state.waiters.leave(ticket);
                }
                return Step::End;
            }
            let ticket = *ticket.get_or_insert_with(|| state.waiters.ticket());
            match state.waiters.wait(ticket, cx.waker().clone(), state.core.next_due()) {
                Some(due) => Step::WaitUntil(queue.clock.sleep_until(due)),
                None => Step::Wait,
            }
        })
    }
}

impl<T: Clone + Send + 'static> Future for Next<'_, T> {
    type Output = Option<Item<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Work that is always there must not keep others from being polled.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        self.queue.keep_reporting();
        loop {
            match self.step(cx) {
                Step::Take(taken) => {
                    budget.made_progress();
                    self.queue.report_taken(taken.waited);
                    return Poll::Ready(Some(Item::new(Arc::clone(self.queue), taken)));
                }
                Step::End => {
                    budget.made_progress();
                    return Poll::Ready(None);
                }
                Step::Wait => {
                    self.sleep = None;
                    return Poll::Pending;
                }
                Step::WaitUntil(sleep) => {
                    if self.sleep.insert(sleep).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl<T> Drop for Next<'_, T> {
    fn drop(&mut self) {
        // It may have been woken for an item, or have kept the time: somebody else has to.
        if let Some(ticket) = self.ticket.take() {
            self.queue.step(Time::IfQueueHeedsIt, |state| state.waiters.leave(ticket));
        }
    }
}

impl<T> fmt::Debug for Next<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("waits", &self.ticket.is_some()).finish_non_exhaustive()
    }
}
