//! Working on one item after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use tokio::task::coop;

use super::core::Taken;
use super::next::Next;
use super::outcome::Outcome;
use super::shared::{Shared, State};

/// An item's turn with a worker that goes on to the next one. Ends with its outcome, wherever it is dropped.
struct Turn<'a, T> {
    queue: &'a Arc<Shared<T>>,
    /// Until it has ended.
    taken: Option<Taken>,
    /// As long as nothing is known, it has failed.
    outcome: Outcome,
}

impl<'a, T> Turn<'a, T> {
    fn new(queue: &'a Arc<Shared<T>>, taken: Taken) -> Self {
        Self { queue, taken: Some(taken), outcome: Outcome::Retry }
    }

    /// Ends it, and does something else in the same step.
    fn end(&mut self, then: impl FnOnce(&mut State<T>)) {
        if let Some(taken) = self.taken.take() {
            self.queue.end(taken, self.outcome, then);
        }
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.end(|_| ());
    }
}

/// Waits for the next turn. A worker that comes from one ends it and begins the next, if there is work, with the queue locked once: where
/// threads meet at the queue, each time costs more than what is done there.
struct NextTurn<'a, T> {
    before: Option<Turn<'a, T>>,
    next: Next<'a, T>,
    queue: &'a Arc<Shared<T>>,
}

impl<'a, T: Clone> NextTurn<'a, T> {
    /// Ends a turn and begins another, if there is work.
    fn change(mut before: Turn<'a, T>) -> Option<(T, Turn<'a, T>)> {
        let queue = before.queue;
        // Both are out here, so that the item goes back if whoever is woken panics.
        let (mut item, mut turn) = (None, None);
        before.end(|state| {
            state.core.trim_between_turns();
            let Some(first) = state.core.first() else { return };
            // One that cannot be cloned is left where it is: what has ended is yet to be told to those who wait.
            item = catch_unwind(AssertUnwindSafe(|| state.core.item(first.slot).clone())).ok();
            if item.is_some() {
                let taken = state.core.take(first);
                turn = Some((taken.waited, Turn::new(queue, taken)));
            }
        });
        let (waited, turn) = turn?;
        queue.report_taken(waited);
        Some((item?, turn))
    }
}

impl<'a, T: Clone + Send + 'static> Future for NextTurn<'a, T> {
    type Output = Option<(T, Turn<'a, T>)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(before) = self.before.take() {
            // Work that is always there must not keep others from being polled.
            let Poll::Ready(budget) = coop::poll_proceed(cx) else {
                drop(before);
                return Poll::Pending;
            };
            if let Some(turn) = Self::change(before) {
                budget.made_progress();
                return Poll::Ready(Some(turn));
            }
        }
        let mut item = None;
        let taken = std::task::ready!(self.next.poll_taken(cx, &mut item));
        let turn = taken.map(|taken| Turn::new(self.queue, taken));
        Poll::Ready(item.zip(turn))
    }
}

/// Works until the queue ends.
pub(super) async fn work<T, F, W>(queue: Arc<Shared<T>>, mut work: F)
where
    T: Clone + Send + 'static,
    F: FnMut(T) -> W,
    W: Future<Output: Into<Outcome>>,
{
    let mut before = None;
    loop {
        let next = NextTurn { before, next: Next::new(&queue), queue: &queue };
        let Some((item, mut turn)) = next.await else { break };
        let working = AssertUnwindSafe(async { work(item).await.into() });
        match working.catch_unwind().await {
            Ok(outcome) => turn.outcome = outcome,
            Err(_) => {
                let queue = queue.name.as_deref().unwrap_or_default();
                tracing::error!(queue, "work on an item panicked; it is tried again later");
            }
        }
        before = Some(turn);
    }
}
