//! An item held by a worker.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::core::Taken;
use super::outcome::Outcome;
use super::priority::Priority;
use super::shared::SharedQueue;

/// An item held by a worker until the worker reports an outcome.
///
/// No other worker receives the item meanwhile; if it is added again, it runs once more afterwards.
/// Each outcome method consumes the item. An item dropped without an outcome, because of a panic, a
/// cancelled task or a `?`, is requeued as [failed](Self::retry), so that a worker can neither
/// block nor lose an item.
///
/// ```
/// use kube_informer::WorkQueue;
/// use kube_informer::workqueue::RateLimit;
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
    /// `None` once the outcome is reported.
    queue: Option<Arc<SharedQueue<T>>>,
    item: T,
    slot: u32,
    failures: u32,
    /// A [`Priority`] as a `u64`. A `u64` has no niche, so `Option<Item>` has a separate
    /// discriminant. With a niche inside the item (in an enum or a bool) the compiler copies items
    /// in overlapping pieces, which stalls store-to-load forwarding.
    priority: u64,
}

impl<T> Item<T> {
    #[inline]
    pub(super) fn new(queue: Arc<SharedQueue<T>>, item: T, taken: Taken) -> Self {
        let Taken { slot, priority, failures, waited: _ } = taken;
        Self { queue: Some(queue), item, slot, failures, priority: priority as u64 }
    }

    /// Returns how often the item had failed when it was taken, since its failure count was last
    /// reset.
    #[must_use]
    #[doc(alias = "NumRequeues")]
    pub fn attempts(&self) -> u32 {
        self.failures
    }

    /// Returns the priority with which the item was taken.
    ///
    /// ```
    /// use kube_informer::workqueue::{Priority, RateLimit};
    /// use kube_informer::{Origin, WorkQueue};
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

    /// Sets the priority with which the item is requeued, if it is: with that at least.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::{Priority, RateLimit};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add("certificate");
    /// // Looks again in an hour, and then not before what has just changed.
    /// queue.next().await.unwrap().with_priority(Priority::Low).revisit_after(Duration::from_secs(3600));
    /// let item = queue.next().await.unwrap();
    /// assert_eq!(item.priority(), Priority::Low);
    /// # item.forget();
    /// # });
    /// ```
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = priority as u64;
        self
    }

    /// Ends the item but keeps its failure count, as client-go's `Done` does.
    ///
    /// In most cases [`forget`](Self::forget) is the right choice.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.retry("a");
    /// queue.next().await.unwrap().done();
    /// assert_eq!((queue.attempts(&"a"), queue.delayed()), (1, 0));
    /// # });
    /// ```
    pub fn done(mut self) {
        self.end(&Outcome::Done);
    }

    /// Ends the item and resets its failure count.
    #[doc(alias = "Forget")]
    pub fn forget(mut self) {
        self.end(&Outcome::Forget);
    }

    /// Ends the item as failed: it is requeued after the delay that the rate limit computes.
    ///
    /// It is requeued immediately if it was added meanwhile, unless only because of an initial
    /// list, a relist or a resync. Once the queue is shut down it is not requeued.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
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
        self.end(&Outcome::Retry);
    }

    /// Ends the item and requeues it after `delay`, immediately if it was added meanwhile.
    ///
    /// This neither counts as a failure nor resets the failure count. Once the queue is shut down
    /// the item is not requeued.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
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
        self.end(&Outcome::RetryAfter(delay));
    }

    /// Ends the item, resets its failure count and requeues it after `delay`.
    ///
    /// Like any other success it [forgets](Self::forget) failures. Once the queue is shut down the
    /// item is not requeued.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
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
        self.end(&Outcome::RevisitAfter(delay));
    }

    #[inline]
    fn end(&mut self, outcome: &Outcome) {
        if let Some(queue) = self.queue.take() {
            let taken = Taken { slot: self.slot, priority: self.priority(), failures: self.failures, waited: 0 };
            queue.end(taken, outcome, |_| ());
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
        self.end(&Outcome::Retry);
    }
}

impl<T: fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Item");
        debug.field("item", &self.item).field("attempts", &self.failures).field("priority", &self.priority());
        debug.finish_non_exhaustive()
    }
}
