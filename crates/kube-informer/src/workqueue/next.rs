//! The future that waits for an item.

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
use super::shared::{SharedQueue, Time};
use super::waiters::{Ticket, Waiters};

/// The future returned by [`WorkQueue::next`](super::WorkQueue::next).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use kube_informer::WorkQueue;
/// use kube_informer::workqueue::RateLimit;
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
    queue: &'a Arc<SharedQueue<T>>,
    /// Set from the first wait until the future completes.
    ticket: Option<Ticket>,
    /// Set while this is the timekeeper.
    sleep: Option<Sleep>,
    /// The slot of the taken item until the item is returned: a waker or a metrics callback that
    /// runs in between may panic.
    slot: Option<u32>,
}

impl<'a, T> Next<'a, T> {
    pub(super) fn new(queue: &'a Arc<SharedQueue<T>>) -> Self {
        Self { queue, ticket: None, sleep: None, slot: None }
    }
}

/// The result of one attempt to take an item.
#[derive(Clone, Copy)]
enum Look {
    FoundSlot(Taken),
    /// The queue is shut down and empty.
    Over,
    /// No item yet: the task will be woken, and sleeps at most until this time.
    Wait(Option<Moment>),
}

impl<T: Clone> Next<'_, T> {
    /// Tries once to take an item. The item is written to `item` and moved to its destination only
    /// after the lock is released: loading it whole right after it was stored in parts would stall
    /// store-to-load forwarding.
    #[inline]
    fn look(&mut self, cx: &Context<'_>, item: &mut Option<T>) -> Look {
        self.queue.step(Time::IfQueueHeedsIt, |state| {
            if let Some(first) = state.core.first() {
                // Cloned before any state changes, because `clone` may panic.
                *item = Some(state.core.item(first.slot).clone());
                self.leave(&mut state.waiters);
                self.slot = Some(first.slot);
                return Look::FoundSlot(state.core.take(first));
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

    /// Stops being the timekeeper.
    pub(super) fn stop_keeping_time(&mut self) {
        self.sleep = None;
    }

    #[cold]
    fn give_back(&self, slot: u32) {
        let custom = self.queue.custom_waits(|core| Some(core.slot_failures(slot)));
        let mut left = None;
        self.queue
            .step(Time::Needed, |state| state.core.end(slot, &Outcome::Retry, &custom, Priority::default(), &mut left));
    }
}

impl<T: Clone + Send + 'static> Next<'_, T> {
    /// Waits for an item, stores it in `item` and returns how it was taken; `None` if the queue is
    /// shut down and empty.
    #[inline]
    pub(super) fn poll_taken(&mut self, cx: &mut Context<'_>, item: &mut Option<T>) -> Poll<Option<Taken>> {
        // Yields to the scheduler: a queue that never runs empty must not starve other tasks.
        let budget = ready!(tokio::task::coop::poll_proceed(cx));
        self.queue.keep_reporting();
        let taken = loop {
            match self.look(cx, item) {
                Look::FoundSlot(taken) => break Some(taken),
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
        // From here on the caller is responsible for ending the item.
        self.slot = None;
        Poll::Ready(taken)
    }
}

impl<T: Clone + Send + 'static> Future for Next<'_, T> {
    type Output = Option<Item<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // Cloned here for the item: under the lock it would extend the critical section, and right
        // after it the clone's atomic increment would delay the caller.
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
        // This future may have been woken for an item, or be the timekeeper: another has to take
        // over.
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
