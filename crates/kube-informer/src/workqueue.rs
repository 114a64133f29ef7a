//! From events to work: items in, one worker per item, failed work back later.

mod builder;
mod core;
mod crowd;
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
pub use self::metrics::QueueMetrics;
pub use self::next::Next;
pub use self::outcome::Outcome;
pub use self::priority::Priority;
pub use self::rate_limit::RateLimit;
use self::shared::{Shared, Time};
use self::slots::Cause;
use crate::store::Origin;

/// A queue of items to be worked on: usually keys of objects, or anything that can be hashed. Clones are handles of the same queue.
///
/// ```
/// use kube_informer::{ObjectKey, RateLimit, WorkQueue};
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
/// # What it promises
///
/// 1. An item is with one worker at a time.
/// 2. An item that is added several times before its turn has one turn. Added while it is worked on, it has one more afterwards.
/// 3. An item that is [delayed](Self::add_after) twice keeps the earlier time.
/// 4. An item that is handed out stays handed out until the worker says how it went; if the worker cannot any more, it goes back as
///    failed. See [`Item`].
/// 5. Failed work waits as the queue's [`RateLimit`] says, before it comes back.
/// 6. Of equal [priority](Priority), what was added first goes first. Nothing is held back for ever.
/// 7. The queue holds each item once, however often it is added: its memory is bounded by the number of different items.
///    It takes no more than 100 bytes for each of a million (beside what the item itself has on the heap), and gives memory back
///    ten seconds after a flood, with the next thing that happens while nothing is being worked on.
///
/// These are client-go's rules. In some places it differs, because users suffer there:
///
/// - An item that waits for its time and is added runs now, instead of now and then. (An item that is ready or running and is added
///   with a delay does run twice.)
/// - Added because of a live event, an item that failed runs now and keeps its failures. Added because of a first list, a relist or
///   a resync, it waits for its next try. See [`add_from`](Self::add_from).
/// - [`drain`](Self::drain) waits for work that is queued, too, not only for work that runs.
/// - After the [shutdown](Self::shutdown) `next` gives None only when nothing can come any more, while client-go's workers may be
///   sent home while another one has an item that will come once more.
/// - Failures are counted whatever the rate limit. They are remembered as long as an item is queued, waiting or running, after that
///   for an hour, and of the last 16,384 such items. client-go remembers them for ever.
/// - Items that are due at the same moment come in the order in which they were delayed.
///
/// # Where it runs
///
/// The queue starts no task and no thread: the workers that wait for an item keep its time. It needs tokio's timers, once
/// something is delayed. Only with [metrics](QueueMetrics) a task reports unfinished work, until the last handle is gone.
#[doc(alias = "TypedInterface")]
#[doc(alias = "DelayingInterface")]
#[doc(alias = "TypedDelayingInterface")]
#[doc(alias = "RateLimitingInterface")]
#[doc(alias = "TypedRateLimitingInterface")]
#[doc(alias = "NewTypedRateLimitingQueue")]
#[doc(alias = "priorityqueue")]
#[doc(alias("Interface", "Type", "Typed"))]
pub struct WorkQueue<T> {
    shared: Arc<Shared<T>>,
}

impl<T> WorkQueue<T> {
    /// A queue whose failed work waits as `limit` says.
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

    /// A queue with other settings.
    pub fn builder() -> WorkQueueBuilder<T> {
        WorkQueueBuilder::new()
    }

    /// The name it was given.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.shared.name.as_deref()
    }

    /// How many items are ready to be taken. Neither those that run nor those that wait for their time count.
    #[must_use]
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.shared.look(core::Core::ready)
    }

    /// Whether no item is ready to be taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items wait for their time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
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

    /// How many items are with workers.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.look(core::Core::running)
    }

    /// From now on nothing is added any more, and what waits for its time is dropped. What is ready is still handed out, then
    /// [`next`](Self::next) gives None. Whoever waits for a [`drain`](Self::drain) waits no longer.
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
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

    /// Whether it has been shut down, or is being drained.
    #[must_use]
    #[doc(alias = "ShuttingDown")]
    pub fn is_shut_down(&self) -> bool {
        self.shared.look(core::Core::is_closed)
    }

    /// Shuts the queue down at once, and waits until all that was ready has been taken and all that was taken has its verdict.
    ///
    /// Somebody has to take what is ready: without workers it waits until [`shutdown`](Self::shutdown) is called. What fails does not
    /// come back. Dropping the future only means not to wait.
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
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

    fn from_shared(shared: Shared<T>) -> Self {
        Self { shared: Arc::new(shared) }
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueue<T> {
    /// Adds an item that should run soon, because something happened: with [`Priority::High`].
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::new(RateLimit::default());
    /// queue.add("a");
    /// queue.add("a"); // it waits already
    /// assert_eq!(queue.len(), 1);
    /// let item = queue.next().await.unwrap();
    /// queue.add("a"); // it is being worked on: once more, afterwards
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

    /// Adds an item with a priority. If it is ready already, it keeps the higher one.
    ///
    /// ```
    /// use kube_informer::{Priority, RateLimit, WorkQueue};
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

    /// Adds an item because of an event, as [`enqueue`](WorkQueue::enqueue) does: with the priority of the event's origin. If it
    /// failed and waits for its next try, only a live event makes it run now.
    ///
    /// ```
    /// use kube_informer::{Origin, RateLimit, WorkQueue};
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

    /// Adds an item after some time. If it waits already, the earlier time holds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
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

    /// Adds an item as one that has failed: it waits as the rate limit says. For an item that one has taken, see [`Item::retry`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
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
        self.shared.step(Time::Needed, |state| state.core.retry(&mut item, Priority::High));
    }

    /// Forgets the failures of an item. It still comes back if it waits for its time.
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
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

    /// How often an item has failed since it was last forgotten.
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
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

    /// The next item to work on, as soon as there is one. None if the queue is shut down and nothing is left.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::{RateLimit, WorkQueue};
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
    /// Dropped before it is ready, it has taken nothing: the item goes to another worker.
    #[doc(alias = "Get")]
    pub fn next(&self) -> Next<'_, T> {
        Next::new(&self.shared)
    }

    /// A worker: calls this function with one item after the other, and does with each what the function says ([`Outcome`]), until the queue
    /// is shut down and nothing is left. As many items are worked on at once as there are workers.
    ///
    /// ```
    /// use kube_informer::{RateLimit, WorkQueue};
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
    /// Work that panics has failed, and the worker goes on; a worker that is dropped while it works leaves a failure behind as well. (What panics
    /// beside the work, such as a listener of the queue's metrics, ends the worker, and loses no item.) Whoever needs to know
    /// more of an item than what it is, or to say how it went before the function ends, asks for it by [`next`](Self::next).
    #[doc(alias("Reconciler", "Reconcile", "MaxConcurrentReconciles", "processNextWorkItem", "runWorker"))]
    pub async fn work<F, W>(self, work: F)
    where
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
