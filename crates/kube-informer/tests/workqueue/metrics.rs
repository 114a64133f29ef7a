//! Metrics of a work queue, with client-go's semantics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_informer::workqueue::{Item, QueueMetrics, RateLimit};
use kube_informer::{Origin, WorkQueue};
use parking_lot::Mutex;
use tokio::time::advance;

const MS: Duration = Duration::from_millis(1);

#[derive(Debug, Default, Clone, PartialEq)]
struct Seen {
    depth: i64,
    adds: u64,
    retries: u64,
    waited: Vec<Duration>,
    worked: Vec<Duration>,
    unfinished: Vec<(Duration, Duration)>,
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Seen>>);

impl Recorder {
    fn seen(&self) -> Seen {
        self.0.lock().clone()
    }
}

impl QueueMetrics for Recorder {
    fn depth(&self, change: i64) {
        self.0.lock().depth += change;
    }

    fn added(&self) {
        self.0.lock().adds += 1;
    }

    fn taken(&self, waited: Duration) {
        self.0.lock().waited.push(waited);
    }

    fn finished(&self, worked: Duration) {
        self.0.lock().worked.push(worked);
    }

    fn unfinished(&self, total: Duration, longest: Duration) {
        self.0.lock().unfinished.push((total, longest));
    }

    fn retried(&self) {
        self.0.lock().retries += 1;
    }
}

fn queue() -> (WorkQueue<&'static str>, Recorder) {
    let recorder = Recorder::default();
    (WorkQueue::builder().rate_limit(RateLimit::exponential(MS, MS)).metrics(recorder.clone()).build(), recorder)
}

#[tokio::test(start_paused = true)]
async fn depth_adds_latency_and_duration_are_exact() {
    let (queue, recorder) = queue();
    queue.add("foo");
    assert_eq!((recorder.seen().depth, recorder.seen().adds), (1, 1));
    advance(50 * MS).await;
    let item = queue.next().await.unwrap();
    assert_eq!((recorder.seen().depth, recorder.seen().waited), (0, vec![50 * MS]));

    // An item added while it runs counts immediately, and only once.
    queue.add("foo");
    queue.add("foo");
    assert_eq!((recorder.seen().depth, recorder.seen().adds), (1, 2));
    advance(25 * MS).await;
    item.done();
    assert_eq!((recorder.seen().depth, recorder.seen().worked), (1, vec![25 * MS]));
    advance(10 * MS).await;
    let item = queue.next().await.unwrap();
    assert_eq!((recorder.seen().depth, recorder.seen().waited), (0, vec![50 * MS, 35 * MS]));
    advance(5 * MS).await;
    item.forget();
    assert_eq!(recorder.seen().worked, [25 * MS, 5 * MS]);
    assert_eq!(recorder.seen().retries, 0);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_added_for_later_is_a_retry_and_an_add_when_its_time_comes() {
    let (queue, recorder) = queue();
    queue.add_after("foo", MS);
    queue.retry("bar");
    queue.add_after("baz", Duration::ZERO);
    assert_eq!((recorder.seen().retries, recorder.seen().adds, recorder.seen().depth), (3, 1, 1));
    advance(3 * MS).await;
    assert_eq!(queue.len(), 3);
    assert_eq!((recorder.seen().retries, recorder.seen().adds, recorder.seen().depth), (3, 3, 3));
    drop(queue.next().await);
    assert_eq!((recorder.seen().retries, recorder.seen().depth), (4, 2));
    queue.next().await.unwrap().forget();
    assert_eq!(recorder.seen().waited[1], 2 * MS, "it waits since it was due, even without a worker");
}

#[tokio::test(start_paused = true)]
async fn an_add_that_is_merged_into_a_backoff_leaves_the_depth() {
    let (queue, recorder) = queue();
    queue.add("foo");
    let item = queue.next().await.unwrap();
    queue.add_from("foo", Origin::Resync);
    assert_eq!(recorder.seen().depth, 1);
    item.retry();
    assert_eq!(recorder.seen().depth, 0);
}

#[tokio::test(start_paused = true)]
async fn unfinished_work_and_the_longest_run_are_reported_every_500_ms_until_the_shutdown() {
    let (queue, recorder) = queue();
    queue.add("foo");
    queue.add("bar");
    let foo = queue.next().await.unwrap();
    tokio::time::sleep(100 * MS).await;
    let _bar = queue.next().await.unwrap();
    tokio::time::sleep(450 * MS).await;
    assert_eq!(recorder.seen().unfinished, [(900 * MS, 500 * MS)]);
    foo.done();
    tokio::time::sleep(500 * MS).await;
    assert_eq!(recorder.seen().unfinished[1..], [(900 * MS, 900 * MS)]);
    queue.shutdown();
    tokio::time::sleep(10_000 * MS).await;
    assert_eq!(recorder.seen().unfinished.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn reporting_does_not_keep_a_queue_alive() {
    let (queue, recorder) = queue();
    queue.add("foo");
    queue.next().await.unwrap().forget();
    drop(queue);
    tokio::time::sleep(10_000 * MS).await;
    assert!(recorder.seen().unfinished.is_empty());
    assert_eq!(Arc::strong_count(&recorder.0), 1);
}

/// Panics when the first item is taken, in `depth` or in `taken`.
struct PanicOnce {
    by_depth: bool,
    panicked: AtomicBool,
}

impl PanicOnce {
    fn panic_once(&self) {
        assert!(self.panicked.swap(true, Ordering::Relaxed), "clumsy");
    }
}

impl QueueMetrics for PanicOnce {
    fn depth(&self, change: i64) {
        if self.by_depth && change < 0 {
            self.panic_once();
        }
    }

    fn taken(&self, _: Duration) {
        if !self.by_depth {
            self.panic_once();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_is_not_lost_with_a_listener_that_panics() {
    for by_depth in [false, true] {
        let clumsy = PanicOnce { by_depth, panicked: AtomicBool::new(false) };
        let queue = WorkQueue::builder().rate_limit(RateLimit::exponential(MS, MS)).metrics(clumsy).build();
        queue.add("foo");
        let worker = queue.clone();
        let panicked = tokio::spawn(async move { worker.next().await.map(Item::forget) }).await.unwrap_err();
        assert!(panicked.is_panic());
        let item = tokio::time::timeout(1_000 * MS, queue.next()).await.expect("it comes back").unwrap();
        assert_eq!((*item, item.attempts()), ("foo", 1));
        item.forget();
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_is_not_lost_with_a_listener_that_panics_between_two_turns_of_a_function() {
    for by_depth in [false, true] {
        // Does not panic for the first item, but for the second.
        let clumsy = PanicOnce { by_depth, panicked: AtomicBool::new(true) };
        let panicked = Arc::new(clumsy);
        let queue =
            WorkQueue::builder().rate_limit(RateLimit::exponential(MS, MS)).metrics(Arc::clone(&panicked)).build();
        ["foo", "bar"].into_iter().for_each(|item| queue.add(item));
        let trip = Arc::clone(&panicked);
        let worker = tokio::spawn(queue.clone().work(move |_| {
            trip.panicked.store(false, Ordering::Relaxed);
            async {}
        }));
        assert!(worker.await.unwrap_err().is_panic());
        let item = tokio::time::timeout(1_000 * MS, queue.next()).await.expect("it comes back").unwrap();
        assert_eq!((*item, item.attempts()), ("bar", 1));
        item.forget();
        assert_eq!((queue.running(), queue.delayed(), queue.attempts(&"foo")), (0, 0, 0));
    }
}

/// Metrics that a named queue reports to the `metrics` crate, if that feature is enabled.
#[cfg(feature = "metrics")]
mod facade {
    use kube_informer::WorkQueue;
    use kube_informer::workqueue::RateLimit;
    use metrics::{
        Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString,
        Unit,
    };
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use parking_lot::Mutex;

    type Values = Arc<Mutex<BTreeMap<String, f64>>>;

    #[derive(Default)]
    struct Memory(Values);

    /// One metric of the recorder.
    struct SingleMetric(Values, String);

    impl SingleMetric {
        fn new(memory: &Memory, key: &Key) -> Arc<Self> {
            let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            let name = format!("{}{{{}}}", key.name(), labels.join(","));
            memory.0.lock().insert(name.clone(), 0.0);
            Arc::new(Self(Arc::clone(&memory.0), name))
        }

        fn add(&self, value: f64) {
            *self.0.lock().entry(self.1.clone()).or_default() += value;
        }
    }

    impl CounterFn for SingleMetric {
        fn increment(&self, value: u64) {
            self.add(value as f64);
        }

        fn absolute(&self, _: u64) {}
    }

    impl GaugeFn for SingleMetric {
        fn increment(&self, value: f64) {
            self.add(value);
        }

        fn decrement(&self, value: f64) {
            self.add(-value);
        }

        fn set(&self, value: f64) {
            self.0.lock().insert(self.1.clone(), value);
        }
    }

    impl HistogramFn for SingleMetric {
        fn record(&self, _: f64) {
            self.add(1.0);
        }
    }

    impl Recorder for Memory {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(SingleMetric::new(self, key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(SingleMetric::new(self, key))
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(SingleMetric::new(self, key))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_named_queue_reports_under_client_gos_names() {
        let memory = Memory::default();
        let build = || WorkQueue::builder().name("deployments").rate_limit(RateLimit::none()).build();
        let queue = metrics::with_local_recorder(&memory, build);
        queue.add("foo");
        queue.add("bar");
        queue.next().await.unwrap().retry();
        let values: Vec<_> = memory.0.lock().iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(
            values,
            [
                "workqueue_adds_total{name=deployments} 3",
                "workqueue_depth{name=deployments} 2",
                "workqueue_longest_running_processor_seconds{name=deployments} 0",
                "workqueue_queue_duration_seconds{name=deployments} 1",
                "workqueue_retries_total{name=deployments} 1",
                "workqueue_unfinished_work_seconds{name=deployments} 0",
                "workqueue_work_duration_seconds{name=deployments} 1",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_is_reported_as_work_by_hand_is() {
    let (by_hand, expected) = queue();
    let (by_function, reported) = queue();
    for queue in [&by_hand, &by_function] {
        ["a", "b", "c"].into_iter().for_each(|item| queue.add(item));
    }
    let hand = async {
        while let Some(item) = by_hand.next().await {
            tokio::time::sleep(MS).await;
            if *item == "b" && item.attempts() == 0 { item.retry() } else { item.forget() }
        }
    };
    let failures = by_function.clone();
    let function = by_function.clone().work(move |item| {
        let fails = item == "b" && failures.attempts(&item) == 0;
        async move {
            tokio::time::sleep(MS).await;
            if fails { Err("busy") } else { Ok(()) }
        }
    });
    let end = async {
        tokio::time::sleep(10 * MS).await;
        [&by_hand, &by_function].into_iter().for_each(WorkQueue::shutdown);
    };
    tokio::join!(hand, function, end);
    assert_eq!(reported.seen(), expected.seen());
    assert_eq!((expected.seen().waited.len(), expected.seen().worked.len(), expected.seen().depth), (4, 4, 0));
}
