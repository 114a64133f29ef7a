//! The loop of a worker.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use tokio::task::coop;

use super::core::Taken;
use super::next::Next;
use super::outcome::Outcome;
use super::shared::SharedQueue;

/// A worker that processes one item after another. If it is dropped, the item it holds is requeued
/// as failed.
///
/// Its fields are updated in place from step to step: passing a `Taken` by value would load it
/// whole right after it was stored in parts, which stalls store-to-load forwarding.
struct Worker<'a, T> {
    queue: &'a Arc<SharedQueue<T>>,
    next: Next<'a, T>,
    /// The item taken, until it is passed to the function.
    item: Option<T>,
    /// How the item was taken, until its outcome is reported.
    taken: Option<Taken>,
    /// Valid once the function has returned.
    outcome: Outcome,
}

impl<'a, T> Worker<'a, T> {
    fn new(queue: &'a Arc<SharedQueue<T>>) -> Self {
        Self { queue, next: Next::new(queue), item: None, taken: None, outcome: Outcome::Retry }
    }

    /// Reports the outcome of the current item.
    fn end(&mut self, outcome: &Outcome) {
        if let Some(taken) = self.taken.take() {
            self.queue.end(taken, outcome, |_| ());
        }
    }
}

impl<T: Clone + fmt::Debug> Worker<'_, T> {
    /// Logs that the function has failed, or panicked if there is no error.
    fn log_failure(&self, error: Option<&str>) {
        let Some(taken) = &self.taken else { return };
        let queue = self.queue.name.as_deref().unwrap_or_default();
        // The worker has passed its own item to the function.
        let logged = catch_unwind(AssertUnwindSafe(|| {
            let (item, attempts) = (self.queue.look(|core| core.item(taken.slot).clone()), taken.failures + 1);
            match error {
                Some(error) => {
                    tracing::warn!(queue, ?item, attempts, error, "work on an item failed; it is tried again");
                }
                None => tracing::error!(queue, ?item, attempts, "work on an item panicked; it is tried again"),
            }
        }));
        if logged.is_err() {
            tracing::error!(queue, "work on an item failed, and its `clone` or `fmt` panicked");
        }
    }
}

impl<T: Clone> Worker<'_, T> {
    /// Reports the outcome of the current item and takes the next one, if any, with a single lock
    /// acquisition: under contention each acquisition costs more than the critical section.
    fn end_and_take(&mut self) {
        let Some(before) = self.taken.take() else { return };
        // The next item is stored before the queue is unlocked, so that it is requeued if a waker
        // called after that panics.
        self.queue.end(before, &self.outcome, |state| {
            state.core.trim_between_turns();
            let Some(first) = state.core.first() else { return };
            // An item whose `clone` panics stays in the queue: waiters must still be woken for the
            // item that has ended.
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
    /// Waits for the next item; returns false once the queue is shut down and empty.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.taken.is_some() {
            // Yields to the scheduler: a queue that never runs empty must not starve other tasks.
            let Poll::Ready(budget) = coop::poll_proceed(cx) else {
                let outcome = mem::replace(&mut self.outcome, Outcome::Retry);
                self.end(&outcome);
                return Poll::Pending;
            };
            self.end_and_take();
            if self.taken.is_some() {
                budget.made_progress();
                return Poll::Ready(true);
            }
        }
        self.taken = ready!(self.next.poll_taken(cx, &mut self.item));
        self.next.stop_keeping_time();
        Poll::Ready(self.taken.is_some())
    }
}

impl<T> Drop for Worker<'_, T> {
    fn drop(&mut self) {
        self.end(&Outcome::Retry);
    }
}

/// Processes items until the queue is shut down and empty.
pub(super) async fn work<T, F, W>(queue: Arc<SharedQueue<T>>, mut work: F)
where
    T: Clone + fmt::Debug + Send + 'static,
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
        match (working.catch_unwind().await, &worker.outcome) {
            (Ok(()), Outcome::Failed(error)) => worker.log_failure(Some(error)),
            (Ok(()), _) => {}
            (Err(_), _) => worker.log_failure(None),
        }
    }
}
