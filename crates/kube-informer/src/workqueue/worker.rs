//! Working on one item after the other.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use tokio::task::coop;

use super::core::Taken;
use super::next::Next;
use super::outcome::Outcome;
use super::shared::Shared;

/// A worker that goes from one item to the next. Wherever it is dropped, the item it has goes back as failed.
///
/// What it has stays here from step to step: passed from hand to hand it would be read as a whole right after it was written in parts, on
/// which a processor stalls.
struct Worker<'a, T> {
    queue: &'a Arc<Shared<T>>,
    next: Next<'a, T>,
    /// The item whose turn it is, until the work gets it.
    item: Option<T>,
    /// How it was taken, until it has ended.
    taken: Option<Taken>,
    /// Once the work has ended.
    outcome: Outcome,
}

impl<'a, T> Worker<'a, T> {
    fn new(queue: &'a Arc<Shared<T>>) -> Self {
        Self { queue, next: Next::new(queue), item: None, taken: None, outcome: Outcome::Retry }
    }

    /// Ends the turn of the item it has.
    fn end(&mut self, outcome: Outcome) {
        if let Some(taken) = self.taken.take() {
            self.queue.end(taken, &outcome, |_| ());
        }
    }
}

impl<T: Clone> Worker<'_, T> {
    /// Ends the turn of the item it has and begins another, if there is work, with the queue locked once: where threads meet at the queue,
    /// each time costs more than what is done there.
    fn change(&mut self) {
        let Some(before) = self.taken.take() else { return };
        // What comes next is in its place when the queue is unlocked, so that it goes back if whoever is woken then panics.
        self.queue.end(before, &self.outcome, |state| {
            state.core.trim_between_turns();
            let Some(first) = state.core.first() else { return };
            // One that cannot be cloned is left where it is: what has ended is yet to be told to those who wait.
            self.item = catch_unwind(AssertUnwindSafe(|| state.core.item(first.slot).clone())).ok();
            if self.item.is_some() {
                self.taken = Some(state.core.take(first));
            }
        });
        if let Some(taken) = &self.taken {
            self.queue.report_taken(taken.waited);
        }
    }
}

impl<T: Clone + Send + 'static> Worker<'_, T> {
    /// Waits for the next item; says whether there is one.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.taken.is_some() {
            // Work that is always there must not keep others from being polled.
            let Poll::Ready(budget) = coop::poll_proceed(cx) else {
                self.end(self.outcome);
                return Poll::Pending;
            };
            self.change();
            if self.taken.is_some() {
                budget.made_progress();
                return Poll::Ready(true);
            }
        }
        self.taken = ready!(self.next.poll_taken(cx, &mut self.item));
        self.next.rest();
        Poll::Ready(self.taken.is_some())
    }
}

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        self.end(Outcome::Retry);
    }
}

/// Works until the queue ends.
pub(super) async fn work<T, F, W>(queue: Arc<Shared<T>>, mut work: F)
where
    T: Clone + Send + 'static,
    F: FnMut(T) -> W,
    W: Future<Output: Into<Outcome>>,
{
    let mut worker = Worker::new(&queue);
    while poll_fn(|cx| worker.poll_turn(cx)).await {
        let working = AssertUnwindSafe(async {
            worker.outcome = Outcome::Retry;
            if let Some(item) = worker.item.take() {
                worker.outcome = work(item).await.into();
            }
        });
        if working.catch_unwind().await.is_err() {
            let queue = queue.name.as_deref().unwrap_or_default();
            tracing::error!(queue, "work on an item panicked; it is tried again later");
        }
    }
}
