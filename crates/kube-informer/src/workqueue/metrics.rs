//! What a queue tells of itself.

use std::sync::Arc;
use std::time::Duration;

/// Hears what happens in a queue: what client-go's queues report, for whatever system of metrics one has.
///
/// Every method does nothing unless it is written. They are called right after what they tell of, outside the queue's lock,
/// possibly by several threads at once: so [`depth`](Self::depth) is told as changes, which may be added up in any order.
///
/// With the feature `metrics` every queue that has a name and is given no other listener reports to the recorder of the `metrics`
/// crate, under the names given below and with the label `name`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use kube_informer::{QueueMetrics, WorkQueue};
///
/// #[derive(Default)]
/// struct Adds(AtomicU64);
///
/// impl QueueMetrics for Adds {
///     fn added(&self) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// let adds = Arc::new(Adds::default());
/// let queue = WorkQueue::builder().metrics(Arc::clone(&adds)).build();
/// queue.add("a");
/// queue.add("a");
/// assert_eq!(adds.0.load(Ordering::Relaxed), 1);
/// ```
#[doc(alias = "MetricsProvider")]
#[doc(alias = "SetProvider")]
pub trait QueueMetrics: Send + Sync + 'static {
    /// `workqueue_depth`, a gauge: so many more, or fewer, runs wait for a worker, those added again while they run included.
    fn depth(&self, change: i64) {
        _ = change;
    }

    /// `workqueue_adds_total`, a counter: a run was asked for, and not only once more.
    fn added(&self) {}

    /// `workqueue_queue_duration_seconds`, a histogram: an item was taken, so long after its run was first asked for.
    fn taken(&self, waited: Duration) {
        _ = waited;
    }

    /// `workqueue_work_duration_seconds`, a histogram: a worker is done with an item that it had for so long.
    fn finished(&self, worked: Duration) {
        _ = worked;
    }

    /// `workqueue_unfinished_work_seconds` and `workqueue_longest_running_processor_seconds`, gauges: how long workers have had
    /// the items that they have now, added up, and the longest of them. Told every 500 ms from the first
    /// [`next`](super::WorkQueue::next) on, until the queue is shut down.
    fn unfinished(&self, total: Duration, longest: Duration) {
        _ = (total, longest);
    }

    /// `workqueue_retries_total`, a counter: an item was added for later, by a retry or with a delay.
    fn retried(&self) {}
}

impl<M: QueueMetrics + ?Sized> QueueMetrics for Arc<M> {
    fn depth(&self, change: i64) {
        (**self).depth(change);
    }

    fn added(&self) {
        (**self).added();
    }

    fn taken(&self, waited: Duration) {
        (**self).taken(waited);
    }

    fn finished(&self, worked: Duration) {
        (**self).finished(worked);
    }

    fn unfinished(&self, total: Duration, longest: Duration) {
        (**self).unfinished(total, longest);
    }

    fn retried(&self) {
        (**self).retried();
    }
}

/// What a named queue reports to if it is told of nothing else.
#[cfg(feature = "metrics")]
pub(super) fn default_metrics(name: &str) -> Option<Box<dyn QueueMetrics>> {
    Some(Box::new(facade::Recorded::new(name)))
}

#[cfg(not(feature = "metrics"))]
pub(super) fn default_metrics(_name: &str) -> Option<Box<dyn QueueMetrics>> {
    None
}

#[cfg(feature = "metrics")]
mod facade {
    use std::time::Duration;

    use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

    use super::QueueMetrics;

    pub(super) struct Recorded {
        depth: Gauge,
        adds: Counter,
        waited: Histogram,
        worked: Histogram,
        unfinished: Gauge,
        longest: Gauge,
        retries: Counter,
    }

    impl Recorded {
        pub(super) fn new(name: &str) -> Self {
            let name = name.to_owned();
            Self {
                depth: gauge!("workqueue_depth", "name" => name.clone()),
                adds: counter!("workqueue_adds_total", "name" => name.clone()),
                waited: histogram!("workqueue_queue_duration_seconds", "name" => name.clone()),
                worked: histogram!("workqueue_work_duration_seconds", "name" => name.clone()),
                unfinished: gauge!("workqueue_unfinished_work_seconds", "name" => name.clone()),
                longest: gauge!("workqueue_longest_running_processor_seconds", "name" => name.clone()),
                retries: counter!("workqueue_retries_total", "name" => name),
            }
        }
    }

    impl QueueMetrics for Recorded {
        fn depth(&self, change: i64) {
            self.depth.increment(change as f64);
        }

        fn added(&self) {
            self.adds.increment(1);
        }

        fn taken(&self, waited: Duration) {
            self.waited.record(waited);
        }

        fn finished(&self, worked: Duration) {
            self.worked.record(worked);
        }

        fn unfinished(&self, total: Duration, longest: Duration) {
            self.unfinished.set(total);
            self.longest.set(longest);
        }

        fn retried(&self) {
            self.retries.increment(1);
        }
    }
}
