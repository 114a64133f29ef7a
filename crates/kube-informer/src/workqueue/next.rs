//! Waiting for work.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::core::Taken;
use super::item::Item;
use super::moment::Moment;
use super::outcome::Outcome;
use super::platform::Sleep;
use super::priority::Priority;
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
    /// Of the item that it has taken, until it is handed out: who is woken or told in between may panic.
    slot: Option<u32>,
}

impl<'a, T> Next<'a, T> {
    pub(super) fn new(queue: &'a Arc<Shared<T>>) -> Self {
        Self { queue, ticket: None, sleep: None, slot: None }
    }
}

/// What a look at the queue found.
#[derive(Clone, Copy)]
enum Look {
    Found(Taken),
    /// Nothing will ever be found.
    Over,
    /// Nothing yet: it will be woken, and has to sleep no longer than until then.
    Wait(Option<Moment>),
}

impl<T: Clone> Next<'_, T> {
    /// Looks for an item once. What was found is put into `item` and from there into its place, with the lock or its release in between:
    /// moved at once, its halves would be read back as a whole before they are written, where a processor stalls.
    #[inline]
    fn look(&mut self, cx: &Context<'_>, item: &mut Option<T>) -> Look {
        self.queue.step(Time::IfQueueHeedsIt, |state| {
            if let Some(first) = state.core.first() {
                // Cloned before anything changes: it may panic.
                *item = Some(state.core.item(first.slot).clone());
                self.leave(&mut state.waiters);
                self.slot = Some(first.slot);
                return Look::Found(state.core.take(first));
            }
            if state.core.is_over() {
                self.leave(&mut state.waiters);
                return Look::Over;
            }
            let ticket = *self.ticket.get_or_insert_with(|| state.waiters.ticket());
            Look::Wait(state.waiters.wait(ticket, cx.waker().clone(), state.core.next_due()))
        })
    }
}

impl<T> Next<'_, T> {
    #[inline]
    fn leave(&mut self, waiters: &mut Waiters) {
        if let Some(ticket) = self.ticket.take() {
            waiters.leave(ticket);
        }
    }

    /// Keeps nobody's time any longer.
    pub(super) fn rest(&mut self) {
        self.sleep = None;
    }

    #[cold]
    fn give_back(&self, slot: u32) {
        let mut left = None;
        self.queue.step(Time::Needed, |state| state.core.end(slot, &Outcome::Retry, Priority::default(), &mut left));
    }
}

impl<T: Clone + Send + 'static> Next<'_, T> {
    /// Waits for an item, puts it into `item` and says how it was taken; nothing if the queue is over.
    #[inline]
    pub(super) fn poll_taken(&mut self, cx: &mut Context<'_>, item: &mut Option<T>) -> Poll<Option<Taken>> {
        // Work that is always there must not keep others from being polled.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        self.queue.keep_reporting();
        let taken = loop {
            match self.look(cx, item) {
                Look::Found(taken) => break Some(taken),
                Look::Over => break None,
                Look::Wait(None) => {
                    self.sleep = None;
                    return Poll::Pending;
                }
                Look::Wait(Some(due)) => {
                    let sleep = self.queue.clock.sleep_until(due);
                    if self.sleep.insert(sleep).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        };
        budget.made_progress();
        if let Some(taken) = &taken {
            self.queue.report_taken(taken.waited);
        }
        // From here on it is for whoever asked to give it back.
        self.slot = None;
        Poll::Ready(taken)
    }
}

impl<T: Clone + Send + 'static> Future for Next<'_, T> {
    type Output = Option<Item<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // For the item, if there is one: with the queue locked it would cost others, and right after that it would be waited for.
        let queue = Arc::clone(self.queue);
        let mut item = None;
        let taken = ready!(self.poll_taken(cx, &mut item));
        Poll::Ready(match (item, taken) {
            (Some(item), Some(taken)) => Some(Item::new(queue, item, taken)),
            _ => None,
        })
    }
}

impl<T> Drop for Next<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // It may have been woken for an item, or have kept the time: somebody else has to.
        if let Some(ticket) = self.ticket.take() {
            self.queue.step(Time::IfQueueHeedsIt, |state| state.waiters.leave(ticket));
        }
        if let Some(slot) = self.slot.take() {
            self.give_back(slot);
        }
    }
}

impl<T> fmt::Debug for Next<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("waits", &self.ticket.is_some()).finish_non_exhaustive()
    }
}
