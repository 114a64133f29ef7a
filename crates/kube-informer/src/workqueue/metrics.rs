//! The metrics of a queue.

use std::sync::Arc;
use std::time::Duration;

/// The upper bounds in seconds of buckets for the two histograms of a queue, 10 ns to 1,000 s,
/// which include those of client-go's programs.
///
/// A recorder for Prometheus has to be given them: see `pipeline::Facade`.
pub const DURATION_BUCKETS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1_000.0];

/// Receives the metrics of a queue: the same ones that client-go's queues report.
///
/// Every method does nothing by default. Methods are called right after the event they report,
/// outside the queue's lock, possibly by several threads concurrently: [`depth`](Self::depth)
/// therefore receives changes, which can be summed in any order.
///
/// With the feature `metrics` every queue that has a name and no other receiver reports to the
/// recorder of the `metrics` crate, under the names given below and with the label `name`.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use kube_informer::WorkQueue;
/// use kube_informer::workqueue::QueueMetrics;
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
    /// `workqueue_depth`, a gauge: the change in the number of runs that wait for a worker,
    /// including running items that were added again.
    fn depth(&self, change: i64) {
        _ = change;
    }

    /// `workqueue_adds_total`, a counter: a run was requested that was not already pending.
    fn added(&self) {}

    /// `workqueue_queue_duration_seconds`, a histogram: an item was taken `waited` after its run
    /// was first requested.
    fn taken(&self, waited: Duration) {
        _ = waited;
    }

    /// `workqueue_work_duration_seconds`, a histogram: a worker ended an item after `worked`.
    fn finished(&self, worked: Duration) {
        _ = worked;
    }

    /// `workqueue_unfinished_work_seconds` and `workqueue_longest_running_processor_seconds`,
    /// gauges: how long the running items have been running, in total and at most. Reported every
    /// 500 ms from the first [`next`](super::WorkQueue::next) until the queue is shut down.
    fn unfinished(&self, total: Duration, longest: Duration) {
        _ = (total, longest);
    }

    /// `workqueue_retries_total`, a counter: an item was retried or added with a delay.
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

/// The default metrics of a named queue.
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
    use metrics::{describe_counter, describe_gauge, describe_histogram};

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
            describe();
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

    fn describe() {
        describe_gauge!("workqueue_depth", "Number of items that wait for a worker.");
        describe_counter!("workqueue_adds_total", "Number of runs that were requested, without those already pending.");
        describe_histogram!("workqueue_queue_duration_seconds", "Seconds that an item waited for a worker.");
        describe_histogram!("workqueue_work_duration_seconds", "Seconds that a worker took for an item.");
        describe_gauge!("workqueue_unfinished_work_seconds", "Seconds that the running items have run, in total.");
        describe_gauge!(
            "workqueue_longest_running_processor_seconds",
            "Seconds that the longest running item has run."
        );
        describe_counter!("workqueue_retries_total", "Number of items that were retried or added with a delay.");
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
