//! An item at work.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::core::Taken;
use super::outcome::Outcome;
use super::priority::Priority;
use super::shared::Shared;

/// An item that is ours until we say how it went.
///
/// No other worker gets the item meanwhile; adds of it are remembered and run once more afterwards. Each verdict consumes the item.
/// Dropped without one, by a panic, a cancelled task or a `?`, it goes back as if it had [failed](Self::retry), so that a worker can
/// neither block nor lose an item.
///
/// ```
/// use kube_informer::{RateLimit, WorkQueue};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let queue = WorkQueue::new(RateLimit::default());
/// queue.add("kube-system/coredns".to_owned());
///
/// let item = queue.next().await.unwrap();
/// assert_eq!((item.as_str(), item.attempts()), ("kube-system/coredns", 0));
/// drop(item);
///
/// let item = queue.next().await.unwrap();
/// assert_eq!((item.as_str(), item.attempts()), ("kube-system/coredns", 1));
/// item.forget();
/// assert!(queue.is_empty());
/// # });
/// ```
#[must_use = "an item that is dropped without a verdict goes back as failed"]
#[doc(alias = "Get")]
#[doc(alias = "Done")]
pub struct Item<T> {
    /// Until it has its verdict.
    queue: Option<Arc<Shared<T>>>,
    item: T,
    slot: u32,
    failures: u32,
    /// A [`Priority`], as a word. Every value of a word means something, so an `Option<Item>` has its mark apart. Within the item (where
    /// an enum or a bool has values to spare) the mark would have items copied in pieces that overlap, and processors stall there.
    priority: u64,
}

impl<T> Item<T> {
    #[inline]
    pub(super) fn new(queue: Arc<Shared<T>>, item: T, taken: Taken) -> Self {
        let Taken { slot, priority, failures, waited: _ } = taken;
        Self { queue: Some(queue), item, slot, failures, priority: priority as u64 }
    }

    /// How often it had failed, when it was taken, since it was last forgotten.
    #[must_use]
    #[doc(alias = "NumRequeues")]
    pub fn attempts(&self) -> u32 {
        self.failures
    }

    /// The priority it was taken with.
    ///
    /// ```
    /// use kube_informer::{Origin, Priority, RateLimit, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add_from("a", Origin::Resync);
    /// let item = queue.next().await.unwrap();
    /// assert_eq!(item.priority(), Priority::Low);
    /// # item.forget();
    /// # });
    /// ```
    #[must_use]
    pub fn priority(&self) -> Priority {
        Priority::from_word(self.priority)
    }

    /// It is done. Its failures are remembered, as client-go does: usually [`forget`](Self::forget) is meant.
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.retry("a");
    /// queue.next().await.unwrap().done();
    /// assert_eq!((queue.attempts(&"a"), queue.delayed()), (1, 0));
    /// # });
    /// ```
    pub fn done(mut self) {
        self.end(Outcome::Done);
    }

    /// It is done, and its failures are forgotten.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        self.end(Outcome::Forget);
    }

    /// It failed: it comes back when the queue's rate limit lets it, at once if it was added meanwhile because something happened.
    ///
    /// Once the queue is shut down it does not come back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(60)));
    /// queue.add("a");
    /// queue.next().await.unwrap().retry();
    /// let item = queue.next().await.unwrap(); // a second later
    /// assert_eq!(item.attempts(), 1);
    /// # item.forget();
    /// # });
    /// ```
    #[doc(alias = "AddRateLimited")]
    pub fn retry(mut self) {
        self.end(Outcome::Retry);
    }

    /// It comes back after so long, at once if it was added meanwhile. This is no failure, and forgets none.
    ///
    /// Once the queue is shut down it does not come back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add("certificate");
    /// queue.next().await.unwrap().retry_after(Duration::from_secs(3600)); // look again in an hour
    /// assert_eq!((queue.delayed(), queue.attempts(&"certificate")), (1, 0));
    /// # });
    /// ```
    #[doc(alias = "AddAfter")]
    pub fn retry_after(mut self, delay: Duration) {
        self.end(Outcome::RetryAfter(delay));
    }

    /// It is done, and comes back after a while to be looked at again: its failures are [forgotten](Self::forget), as after any other success.
    ///
    /// Once the queue is shut down it does not come back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.retry("certificate"); // it failed once
    /// queue.next().await.unwrap().revisit_after(Duration::from_secs(3600)); // now it is good for an hour
    /// assert_eq!((queue.delayed(), queue.attempts(&"certificate")), (1, 0));
    /// # });
    /// ```
    #[doc(alias = "RequeueAfter")]
    pub fn revisit_after(mut self, delay: Duration) {
        self.end(Outcome::RevisitAfter(delay));
    }

    #[inline]
    fn end(&mut self, outcome: Outcome) {
        if let Some(queue) = self.queue.take() {
            let taken = Taken { slot: self.slot, priority: self.priority(), failures: self.failures, waited: 0 };
            queue.end(taken, &outcome, |_| ());
        }
    }
}

impl<T> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T> Drop for Item<T> {
    fn drop(&mut self) {
        self.end(Outcome::Retry);
    }
}

impl<T: fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Item");
        debug.field("item", &self.item).field("attempts", &self.failures).field("priority", &self.priority());
        debug.finish_non_exhaustive()
    }
}
