//! The future that waits for a drain.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::shared::{SharedQueue, Time};
use super::waiters::Ticket;

pub(super) struct Drain<T> {
    queue: Arc<SharedQueue<T>>,
    ticket: Option<Ticket>,
}

impl<T> Drain<T> {
    pub(super) fn new(queue: Arc<SharedQueue<T>>) -> Self {
        Self { queue, ticket: None }
    }
}

impl<T> Future for Drain<T> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { queue, ticket } = &mut *self;
        queue.step(Time::IfQueueHeedsIt, |state| {
            if state.core.is_drained() {
                return Poll::Ready(());
            }
            let ticket = *ticket.get_or_insert_with(|| state.waiters.ticket());
            state.waiters.wait_for_end(ticket, cx.waker().clone());
            Poll::Pending
        })
    }
}

impl<T> Drop for Drain<T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.queue.step(Time::IfQueueHeedsIt, |state| state.waiters.leave(ticket));
        }
    }
}
