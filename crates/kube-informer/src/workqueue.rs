//! The work queue: deduplicates items, hands each to one worker at a time, and retries failed
//! items with backoff.

// A pure core (`core`, `slots`, `delays`) behind a mutex and its futures. Uses `object`, `body` and
// `store` for keys, owners, events and origins, and no other module.

mod builder;
mod core;
mod delays;
mod drain;
mod enqueue;
mod item;
mod metrics;
mod moment;
mod next;
mod outcome;
mod platform;
mod priority;
mod rate_limit;
mod running;
#[cfg(test)]
mod schedules;
mod shared;
mod slots;
mod waiters;
mod worker;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use self::builder::WorkQueueBuilder;
use self::drain::Drain;
pub use self::item::Item;
pub use self::metrics::{DURATION_BUCKETS, QueueMetrics};
pub use self::next::Next;
pub use self::outcome::Outcome;
pub use self::priority::Priority;
pub use self::rate_limit::RateLimit;
use self::shared::{SharedQueue, Time};
use self::slots::Cause;
use crate::store::Origin;

/// A deduplicating, delaying, rate-limited queue of items, usually object keys.
///
/// An item can be any type that is hashable. Its `eq` and `clone` are called while the queue is
/// locked, and must not use it; all other code of the user may. Clones of the queue are handles to
/// the same queue.
///
/// ```
/// use kube_informer::workqueue::RateLimit;
/// use kube_informer::{ObjectKey, WorkQueue};
///
/// # async fn reconcile(key: &ObjectKey) -> Result<(), std::io::Error> { Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
/// queue.add(ObjectKey::namespaced("kube-system", "coredns"));
/// # queue.shutdown();
///
/// while let Some(item) = queue.next().await {
///     match reconcile(&item).await {
///         Ok(()) => item.forget(),
///         Err(_) => item.retry(),
///     }
/// }
/// # });
/// ```
///
/// # Guarantees
///
/// 1. At most one worker processes an item at a time.
/// 2. Adds of an item that is already ready are coalesced into one run. An item that is added
///    while it runs runs once more afterwards.
/// 3. An item that is [delayed](Self::add_after) twice keeps the earlier deadline.
/// 4. An item that a worker has taken stays with that worker until the worker reports an outcome.
///    If the worker is dropped or panics, the item is requeued as failed. See [`Item`].
/// 5. A failed item is requeued after the delay that the queue's [`RateLimit`] computes.
/// 6. Items of equal [priority](Priority) run in first-in, first-out order. No item starves.
/// 7. The queue stores each item once, however often it is added: its memory is bounded by the
///    number of distinct items. It uses at most 100 bytes per item for a million items (excluding
///    heap memory owned by the item itself). It releases memory ten seconds after a burst, at the
///    next operation during which no item is running.
///
/// These are client-go's rules. It deviates where client-go's behaviour causes problems for users:
///
/// - An item that is delayed and then added runs immediately, and only once. (An item that is ready
///   or running and is added with a delay does run twice.)
/// - A failed item that is added because of a live event runs immediately and keeps its failure
///   count. Added because of an initial list, a relist or a resync, it waits for its next retry.
///   See [`add_from`](Self::add_from).
/// - [`drain`](Self::drain) also waits for items that are ready, not only for items that run.
/// - After [`shutdown`](Self::shutdown), `next` returns `None` only when no further item can
///   become ready. client-go may stop a worker while another worker still runs an item that was
///   added again.
/// - Failures are counted regardless of the rate limit. Counts are kept while an item is ready,
///   delayed or running, then for one hour, for the most recent 16,384 such items. client-go keeps
///   them indefinitely.
/// - Items due at the same time become ready in the order in which they were delayed.
///
/// # Runtime
///
/// The queue starts no task and no thread: one of the workers that wait for an item sleeps until
/// the next delayed item is due. It needs tokio's timers once an item is delayed. Only with
/// [metrics](QueueMetrics) a task reports unfinished work, until the last handle is dropped.
#[doc(alias = "TypedInterface")]
#[doc(alias = "DelayingInterface")]
#[doc(alias = "TypedDelayingInterface")]
#[doc(alias = "RateLimitingInterface")]
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "NewTypedRateLimitingQueue")]
#[doc(alias = "priorityqueue")]
#[doc(alias("Interface", "Type", "Typed"))]
pub struct WorkQueue<T> {
    shared: Arc<SharedQueue<T>>,
}

impl<T> WorkQueue<T> {
    /// Creates a queue that delays failed items according to `limit`.
    #[must_use]
    #[doc(alias(
        "NewNamed",
        "NewWithConfig",
        "NewTyped",
        "NewTypedWithConfig",
        "NewDelayingQueue",
        "NewNamedDelayingQueue",
        "NewDelayingQueueWithConfig",
        "NewDelayingQueueWithCustomClock",
        "NewDelayingQueueWithCustomQueue",
        "NewTypedDelayingQueue",
        "NewTypedDelayingQueueWithConfig",
        "TypedNewDelayingQueue",
        "NewRateLimitingQueue",
        "NewNamedRateLimitingQueue",
        "NewRateLimitingQueueWithConfig",
        "NewRateLimitingQueueWithDelayingInterface",
        "NewTypedRateLimitingQueueWithConfig"
    ))]
    pub fn new(limit: RateLimit) -> Self {
        Self::builder().rate_limit(limit).build()
    }

    /// Returns a builder for a queue with other settings.
    pub fn builder() -> WorkQueueBuilder<T> {
        WorkQueueBuilder::new()
    }

    /// Returns the name set by [`WorkQueueBuilder::name`].
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.shared.name.as_deref()
    }

    /// Returns the number of items that are ready, excluding running and delayed items.
    #[must_use]
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.look(core::Core::ready)
    }

    /// Returns whether no item is ready.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of delayed items.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add("now");
    /// queue.add_after("later", Duration::from_secs(60));
    /// let item = queue.next().await.unwrap();
    /// assert_eq!((queue.len(), queue.delayed(), queue.running()), (0, 1, 1));
    /// # item.forget();
    /// # });
    /// ```
    #[must_use]
    pub fn delayed(&self) -> usize {
        self.shared.look(core::Core::delayed)
    }

    /// Returns the number of items that workers currently hold.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.look(core::Core::running)
    }

    /// Shuts the queue down: further adds are ignored and delayed items are dropped.
    ///
    /// Ready items are still returned by [`next`](Self::next), then it returns `None`. Pending
    /// [`drain`](Self::drain) futures complete.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add(1);
    /// queue.shutdown();
    /// queue.add(2);
    /// assert_eq!(queue.next().await.map(|item| *item), Some(1));
    /// assert!(queue.next().await.is_none());
    /// # });
    /// ```
    #[doc(alias = "ShutDown")]
    pub fn shutdown(&self) {
        self.shared.step(Time::IfQueueHeedsIt, |state| state.core.shut_down());
    }

    /// Returns whether the queue has been shut down or is being drained.
    #[must_use]
    #[doc(alias = "ShuttingDown")]
    pub fn is_shut_down(&self) -> bool {
        self.shared.look(core::Core::is_closed)
    }

    /// Shuts the queue down and waits until all ready and running items have been processed.
    ///
    /// An item counts as processed once its worker has reported an outcome. Workers must keep
    /// taking items: without workers the future is pending until [`shutdown`](Self::shutdown) is
    /// called. Failed items are not requeued. Dropping the future only stops the wait.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// (0..10).for_each(|item| queue.add(item));
    /// let worker = queue.clone();
    /// let worker = tokio::spawn(async move {
    ///     while let Some(item) = worker.next().await {
    ///         item.forget();
    ///     }
    /// });
    /// queue.drain().await;
    /// assert!(queue.is_empty() && queue.running() == 0);
    /// # worker.await.unwrap();
    /// # });
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn drain(&self) -> impl Future<Output = ()> + Send + 'static + use<T>
    where
        T: Send + 'static,
    {
        self.shared.step(Time::IfQueueHeedsIt, |state| state.core.drain());
        Drain::new(Arc::clone(&self.shared))
    }

    fn from_shared(shared: SharedQueue<T>) -> Self {
        Self { shared: Arc::new(shared) }
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueue<T> {
    /// Adds an item with [`Priority::High`].
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add("a");
    /// queue.add("a"); // already ready: coalesced
    /// assert_eq!(queue.len(), 1);
    /// let item = queue.next().await.unwrap();
    /// queue.add("a"); // running: runs once more afterwards
    /// assert_eq!(queue.len(), 0);
    /// item.forget();
    /// assert_eq!(queue.len(), 1);
    /// # });
    /// ```
    #[doc(alias = "Add")]
    #[inline]
    pub fn add(&self, item: T) {
        self.add_as(item, Priority::High, Cause::Fresh);
    }

    /// Adds an item with the given priority; an item that is already ready keeps the higher one.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::{Priority, RateLimit};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add_with("resync", Priority::Low);
    /// queue.add_with("change", Priority::High);
    /// let item = queue.next().await.unwrap();
    /// assert_eq!((*item, item.priority()), ("change", Priority::High));
    /// # item.forget();
    /// # });
    /// ```
    #[doc(alias = "AddWithOpts")]
    pub fn add_with(&self, item: T, priority: Priority) {
        self.add_as(item, priority, Cause::Fresh);
    }

    /// Adds an item because of an event, with the priority that corresponds to the event's origin.
    ///
    /// [`enqueue`](WorkQueue::enqueue) adds items this way. If the item failed and waits for its
    /// next retry, only a live event makes it ready immediately.
    ///
    /// ```
    /// use kube_informer::workqueue::RateLimit;
    /// use kube_informer::{Origin, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.retry("a");
    /// queue.add_from("a", Origin::Resync);
    /// assert_eq!((queue.len(), queue.delayed()), (0, 1));
    /// queue.add_from("a", Origin::Live);
    /// assert_eq!((queue.len(), queue.delayed()), (1, 0));
    /// assert_eq!(queue.attempts(&"a"), 1);
    /// # });
    /// ```
    pub fn add_from(&self, item: T, origin: Origin) {
        self.add_as(item, origin.into(), origin.into());
    }

    /// Adds an item after `delay`; an item that is already delayed keeps the earlier deadline.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// let start = tokio::time::Instant::now();
    /// queue.add_after("a", Duration::from_secs(60));
    /// queue.add_after("a", Duration::from_secs(5));
    /// queue.next().await.unwrap().forget();
    /// assert_eq!(start.elapsed().as_secs(), 5);
    /// assert_eq!(queue.delayed(), 0);
    /// # });
    /// ```
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, item: T, delay: Duration) {
        let mut item = self.shared.hashes.to_add(item);
        self.shared.step(Time::Needed, |state| state.core.add_after(&mut item, delay, Priority::High));
    }

    /// Records a failure of an item and adds it after the delay that the rate limit computes.
    ///
    /// For an item that a worker holds, use [`Item::retry`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(60)));
    /// queue.retry("a");
    /// queue.retry("a");
    /// assert_eq!((queue.len(), queue.delayed(), queue.attempts(&"a")), (0, 1, 2));
    /// # });
    /// ```
    #[doc(alias = "AddRateLimited")]
    #[doc(alias = "When")]
    pub fn retry(&self, item: T) {
        let mut item = self.shared.hashes.to_add(item);
        let custom = self.shared.custom_waits(|core| Some(core.failures(item.as_ref()?)));
        self.shared.step(Time::Needed, |state| state.core.retry(&mut item, Priority::High, &custom));
    }

    /// Resets the failure count of an item. A delayed item still becomes ready when it is due.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.retry("a");
    /// queue.forget(&"a");
    /// assert_eq!((queue.attempts(&"a"), queue.delayed()), (0, 1));
    /// # });
    /// ```
    #[doc(alias = "Forget")]
    pub fn forget(&self, item: &T) {
        let item = self.shared.hashes.to_find(item);
        self.shared.step(Time::IfQueueHeedsIt, |state| state.core.forget(item));
    }

    /// Returns how often an item has failed since its failure count was last reset.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add("a");
    /// for _ in 0..3 {
    ///     queue.next().await.unwrap().retry();
    /// }
    /// assert_eq!(queue.attempts(&"a"), 3);
    /// queue.next().await.unwrap().forget();
    /// assert_eq!(queue.attempts(&"a"), 0);
    /// # });
    /// ```
    #[must_use]
    #[doc(alias = "NumRequeues")]
    pub fn attempts(&self, item: &T) -> u32 {
        let item = self.shared.hashes.to_find(item);
        self.shared.look(|core| core.failures(item))
    }

    /// Waits for the next item; returns `None` once the queue is shut down and empty.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// let impatient = tokio::time::timeout(Duration::from_secs(1), queue.next()).await;
    /// assert!(impatient.is_err(), "nothing to do");
    /// queue.add("a");
    /// let item = queue.next().await.unwrap();
    /// assert_eq!(*item, "a");
    /// item.forget();
    /// # });
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it completes takes no item: the item goes to another worker.
    #[doc(alias = "Get")]
    pub fn next(&self) -> Next<'_, T> {
        Next::new(&self.shared)
    }

    /// Runs a worker: calls `work` with one item after another and applies the returned
    /// [`Outcome`].
    ///
    /// Completes when the queue is shut down and empty. The number of workers is the number of
    /// items that are processed concurrently.
    ///
    /// ```
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    /// # use std::io;
    /// # async fn reconcile(name: &str) -> io::Result<()> { if name == "b" { Err(io::Error::other("busy")) } else { Ok(()) } }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// let workers: Vec<_> = (0..4)
    ///     .map(|_| tokio::spawn(queue.clone().work(|name: &'static str| async move { reconcile(name).await })))
    ///     .collect();
    /// ["a", "b", "c"].into_iter().for_each(|name| queue.add(name));
    /// # while queue.attempts(&"b") == 0 { tokio::task::yield_now().await; }
    /// assert_eq!(queue.attempts(&"b"), 1, "it failed, and will be tried again");
    ///
    /// queue.drain().await;
    /// for worker in workers {
    ///     worker.await?;
    /// }
    /// # Ok::<_, tokio::task::JoinError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// If `work` returns an error or panics, that is logged with the item, which counts as failed,
    /// and the worker continues. A worker that is
    /// dropped while it processes an item also records a failure. (A panic outside `work`, for
    /// example in a [`QueueMetrics`] implementation, ends the worker but loses no item.) Use
    /// [`next`](Self::next) to access the [`Item`] itself, or to report an outcome before the
    /// function returns.
    #[doc(alias("Reconciler", "Reconcile", "MaxConcurrentReconciles", "processNextWorkItem", "runWorker"))]
    pub async fn work<F, W>(self, work: F)
    where
        T: fmt::Debug,
        F: FnMut(T) -> W,
        W: Future<Output: Into<Outcome>>,
    {
        worker::work(self.shared, work).await;
    }

    #[inline]
    fn add_as(&self, item: T, priority: Priority, cause: Cause) {
        let time = if priority == Priority::High { Time::IfQueueHeedsIt } else { Time::Needed };
        let mut item = self.shared.hashes.to_add(item);
        self.shared.step(time, |state| state.core.add(&mut item, priority, cause));
    }
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        Self::new(RateLimit::default())
    }
}

impl<T> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ready, delayed, running) = self.shared.look(|core| (core.ready(), core.delayed(), core.running()));
        let mut debug = f.debug_struct("WorkQueue");
        debug.field("name", &self.name()).field("ready", &ready).field("delayed", &delayed).field("running", &running);
        debug.finish_non_exhaustive()
    }
}
