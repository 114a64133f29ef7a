//! The builder of a queue.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::WorkQueue;
use super::core::Core;
use super::metrics::{QueueMetrics, default_metrics};
use super::rate_limit::RateLimit;
use super::running::Timing;
use super::shared::SharedQueue;

/// Builds a [`WorkQueue`]; every setting has a default.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::workqueue::RateLimit;
/// use kube_informer::{ObjectKey, WorkQueue};
///
/// let queue = WorkQueue::<ObjectKey>::builder()
///     .name("deployments")
///     .rate_limit(RateLimit::exponential(Duration::from_millis(50), Duration::from_secs(60)))
///     .longest_wait(Duration::from_secs(10))
///     .build();
/// assert_eq!(queue.name(), Some("deployments"));
/// ```
#[must_use]
#[doc(alias = "TypedQueueConfig")]
#[doc(alias = "TypedDelayingQueueConfig")]
#[doc(alias = "TypedRateLimitingQueueConfig")]
#[doc(alias("QueueConfig", "DelayingQueueConfig", "RateLimitingQueueConfig"))]
pub struct WorkQueueBuilder<T> {
    name: Option<Box<str>>,
    rate_limit: RateLimit,
    longest_wait: Duration,
    metrics: Option<Box<dyn QueueMetrics>>,
    items: PhantomData<fn(T)>,
}

impl<T> WorkQueueBuilder<T> {
    pub(super) fn new() -> Self {
        Self {
            name: None,
            rate_limit: RateLimit::default(),
            longest_wait: Duration::from_secs(30),
            metrics: None,
            items: PhantomData,
        }
    }

    /// Sets the name of the queue in metrics. None by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into().into_boxed_str());
        self
    }

    /// Sets how long failed items are delayed. [`RateLimit::default`] by default.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::builder().rate_limit(RateLimit::fast_slow(Duration::from_secs(1), Duration::from_secs(60), 3)).build();
    /// queue.retry("a");
    /// let begun = tokio::time::Instant::now();
    /// queue.next().await.unwrap().forget();
    /// assert_eq!(begun.elapsed().as_secs(), 1);
    /// # });
    /// ```
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.rate_limit = limit;
        self
    }

    /// Sets how long an item may wait because items of a higher [priority](super::Priority) are
    /// taken first. 30 s by default.
    ///
    /// After that the item is overdue. While any item is overdue, every second take returns the one
    /// that has waited longest: the n-th overdue item is taken after at most 2 n takes, however
    /// many items of a higher priority arrive. The other takes continue by priority, so that even a
    /// backlog of hours delays high-priority items by at most a factor of two.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::WorkQueue;
    /// use kube_informer::workqueue::Priority;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let queue = WorkQueue::builder().longest_wait(Duration::from_secs(10)).build();
    /// queue.add_with("resync", Priority::Low);
    /// tokio::time::sleep(Duration::from_secs(11)).await;
    /// queue.add("change");
    /// let turns = [queue.next().await.unwrap(), queue.next().await.unwrap()];
    /// assert!(turns.iter().any(|item| **item == "resync"), "it is overdue, and has its turn");
    /// # });
    /// ```
    pub fn longest_wait(mut self, wait: Duration) -> Self {
        self.longest_wait = wait;
        self
    }

    /// Sets the receiver of metrics.
    ///
    /// None by default, or with the feature `metrics` the `metrics` crate if the queue has a name.
    pub fn metrics(mut self, metrics: impl QueueMetrics) -> Self {
        self.metrics = Some(Box::new(metrics));
        self
    }

    /// Builds the queue.
    #[must_use]
    pub fn build(self) -> WorkQueue<T> {
        let metrics = self.metrics.or_else(|| self.name.as_deref().and_then(default_metrics));
        let timing = if metrics.is_some() { Timing::Wanted } else { Timing::NotWanted };
        let core = Core::new(self.rate_limit.clone(), self.longest_wait, timing);
        WorkQueue::from_shared(SharedQueue::new(core, &self.rate_limit, self.name, metrics))
    }
}

impl<T> fmt::Debug for WorkQueueBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, rate_limit, longest_wait, metrics: _, items: _ } = self;
        let mut debug = f.debug_struct("WorkQueueBuilder");
        debug.field("name", name).field("rate_limit", rate_limit).field("longest_wait", longest_wait);
        debug.finish_non_exhaustive()
    }
}
