//! Waiting for work.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::item::Item;
use super::moment::Moment;
use super::platform::Sleep;
use super::shared::{Shared, Time};
use super::waiters::{Ticket, Waiters};

/// The future of [`WorkQueue::next`](super::WorkQueue::next).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use kube_informer::{RateLimit, WorkQueue};
///
/// let queue = WorkQueue::new(RateLimit::default());
/// queue.add("a");
/// let item = queue.next().await.unwrap();
/// assert_eq!(*item, "a");
/// item.forget();
/// # }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Next<'a, T> {
    queue: &'a Arc<Shared<T>>,
    /// Since it has waited for the first time, until it ends.
    ticket: Option<Ticket>,
    /// While it keeps the queue's time.
    sleep: Option<Sleep>,
}

impl<'a, T> Next<'a, T> {
    pub(super) fn new(queue: &'a Arc<Shared<T>>) -> Self {
        Self { queue, ticket: None, sleep: None }
    }
}

impl<T: Clone> Next<'_, T> {
    /// Looks for an item once. If there is none, it will be woken, or has to sleep until the moment returned.
    #[inline]
    fn look(&mut self, cx: &Context<'_>, found: &mut Poll<Option<Item<T>>>) -> Option<Moment> {
        let queue = self.queue;
        let mut waited = None;
        let sleep_until = queue.step(Time::IfQueueHeedsIt, |state| {
            if let Some(first) = state.core.first() {
                // Cloned before anything changes: it may panic.
                let item = state.core.item(first.slot).clone();
                self.leave(&mut state.waiters);
                let taken = state.core.take(first);
                waited = Some(taken.waited);
                *found = Poll::Ready(Some(Item::new(Arc::clone(queue), item, taken)));
                return None;
            }
            if state.core.is_over() {
                self.leave(&mut state.waiters);
                *found = Poll::Ready(None);
                return None;
            }
            let ticket = *self.ticket.get_or_insert_with(|| state.waiters.ticket());
            state.waiters.wait(ticket, cx.waker().clone(), state.core.next_due())
        });
        if let Some(waited) = waited {
            queue.report_taken(waited);
        }
        sleep_until
    }
}

impl<T> Next<'_, T> {
    #[inline]
    fn leave(&mut self, waiters: &mut Waiters) {
        if let Some(ticket) = self.ticket.take() {
            waiters.leave(ticket);
        }
    }
}

impl<T: Clone + Send + 'static> Future for Next<'_, T> {
    type Output = Option<Item<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Work that is always there must not keep others from being polled.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        self.queue.keep_reporting();
        let mut found = Poll::Pending;
        while let Some(due) = self.look(cx, &mut found) {
            let sleep = self.queue.clock.sleep_until(due);
            if self.sleep.insert(sleep).poll(cx).is_pending() {
                return found;
            }
        }
        self.sleep = None;
        if found.is_ready() {
            budget.made_progress();
        }
        found
    }
}

impl<T> Drop for Next<'_, T> {
    #[inline]
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
