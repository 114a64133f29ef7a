//! Metrics for the `metrics` crate.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{client, put, server};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::workqueue::DURATION_BUCKETS;
use kube_informer::{Factory, Informer, MetadataOnly, ObjectKey, Scope, WorkQueue};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Every metric by name and labels.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<BTreeMap<String, Arc<AtomicU64>>>>);

impl Board {
    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(self.0.lock().unwrap().entry(name).or_default())
    }

    fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.count(name))
    }

    fn count(&self, name: &str) -> u64 {
        self.0.lock().unwrap()[name].load(Ordering::Relaxed)
    }
}

impl Recorder for Board {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn figures_reach_the_recorder_and_gauges_go_to_zero_when_what_they_are_of_goes() {
    let board = Board::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&board, || {
        runtime.block_on(async {
            let server = server().await;
            put(&server, "default", "a", "1");
            let maps = Informer::<ConfigMap>::builder(client(&server)).name("figures").build();
            let handler = maps.on_event(|_| {});
            let mut unread = maps.subscribe();
            maps.start();
            handler.synced().await.unwrap();
            assert!(unread.next().await.is_some());
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!((board.gauge("kube_informer_objects{informer=figures,group=,version=v1,resource=configmaps,scope=}") - 1.0).abs() < 1e-9);
            assert_eq!(board.count("kube_informer_lists_total{informer=figures,group=,version=v1,resource=configmaps,scope=}"), 1);
            assert_eq!(board.count("kube_informer_relists_total{informer=figures,group=,version=v1,resource=configmaps,scope=,reason=expired}"), 0);
            assert!(board.gauge("kube_informer_handler_backlog{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=0}").abs() < 1e-9);
            for nth in 0..3 {
                put(&server, "default", "a", &format!("1{nth}"));
            }
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!((board.gauge("kube_informer_handler_backlog{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=1}") - 3.0).abs() < 1e-9);
            assert!(board.gauge("kube_informer_handler_lag_seconds{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=1}") > 9.0);
            drop(unread);
            let _later = maps.subscribe();
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!(
                board.gauge("kube_informer_handler_backlog{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=1}").abs() < 1e-9,
                "it has gone"
            );
            assert!(board.gauge("kube_informer_handler_lag_seconds{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=1}").abs() < 1e-9);
            assert!((board.gauge("kube_informer_handler_backlog{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=2}") - 1.0).abs() < 1e-9);
            maps.shutdown().await;
            assert!(board.gauge("kube_informer_handler_backlog{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=2}").abs() < 1e-9);
            assert!(board.gauge("kube_informer_handler_lag_seconds{informer=figures,group=,version=v1,resource=configmaps,scope=,handler=2}").abs() < 1e-9);
            assert!(board.gauge("kube_informer_objects{informer=figures,group=,version=v1,resource=configmaps,scope=}").abs() < 1e-9);
        });
    });
}

/// Runs a program on a paused runtime whose metrics are in the handle.
fn with_prometheus<F: Future<Output = ()>>(program: impl FnOnce(PrometheusHandle) -> F) {
    let builder = PrometheusBuilder::new();
    let builder = builder.set_buckets_for_metric(Matcher::Prefix("workqueue_".to_owned()), &DURATION_BUCKETS).unwrap();
    let recorder = builder.build_recorder();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(program(recorder.handle())));
}

/// The lines of a metric with these labels.
fn lines(page: &PrometheusHandle, metric: &str, labels: &str) -> Vec<String> {
    let page = page.render();
    let lines = page.lines().filter(|line| line.starts_with(&format!("{metric}{{")) && line.contains(labels));
    lines.map(str::to_owned).collect()
}

#[test]
fn two_informers_of_one_plural_do_not_share_a_gauge_and_the_one_that_ends_zeroes_only_its_own() {
    with_prometheus(async |page| {
        let server = server().await;
        put(&server, "default", "a", "in");
        put(&server, "default", "b", "out");
        let factory = Factory::new(client(&server));
        let whole = factory.informer::<ConfigMap>();
        let some = factory.within(Scope::everything().labels("value=in")).informer::<ConfigMap>();
        let metadata = factory.informer::<MetadataOnly<ConfigMap>>();
        factory.start();
        factory.synced().await.unwrap();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let line = |informer: &str, scope: &str, objects: usize| {
            format!(
                "kube_informer_objects{{informer=\"{informer}\",group=\"\",version=\"v1\",resource=\"configmaps\",scope=\"{scope}\"}} {objects}"
            )
        };
        let shown = |line: String| assert!(page.render().contains(&line), "{line} is not in {}", page.render());
        let (first, second) = (whole.name().to_string(), some.name().to_string());
        assert_ne!(first, second);
        shown(line(&first, "", 2));
        shown(line(&second, "where value=in", 1));
        shown(line(metadata.name().name(), "", 2));
        drop(some);
        tokio::time::sleep(Duration::from_secs(30)).await;
        shown(line(&first, "", 2));
        shown(line(&second, "where value=in", 0));
    });
}

#[test]
fn every_metric_has_a_help_text() {
    with_prometheus(async |page| {
        let server = server().await;
        put(&server, "default", "a", "1");
        let maps = Informer::<ConfigMap>::builder(client(&server)).start();
        let queue = WorkQueue::<ObjectKey>::builder().name("helped").build();
        let feed = maps.on_event(queue.enqueue());
        feed.synced().await.unwrap();
        queue.next().await.unwrap().retry();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let page = page.render();
        let names: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        assert!(names.len() >= 26, "{names:?}");
        for name in names {
            assert!(page.contains(&format!("# HELP {name} ")), "{name} has no help text");
        }
    });
}

/// What the usual dashboards compute: quantiles of histograms, rates of counters, by `name`.
#[test]
fn a_queue_has_the_histograms_that_dashboards_of_client_go_compute_quantiles_of() {
    with_prometheus(async |page| {
        let queue = WorkQueue::<&str>::builder().name("dashboard").build();
        queue.add("a");
        tokio::time::sleep(Duration::from_millis(50)).await;
        let item = queue.next().await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        item.forget();
        let labels = "name=\"dashboard\"";
        let bucket = |metric: &str, bound: &str| {
            let bounds = format!("{labels},le=\"{bound}\"");
            lines(&page, &format!("{metric}_bucket"), &bounds).concat().rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(bucket("workqueue_queue_duration_seconds", "0.01"), "0");
        assert_eq!(bucket("workqueue_queue_duration_seconds", "0.1"), "1");
        assert_eq!(bucket("workqueue_work_duration_seconds", "1"), "0");
        assert_eq!(bucket("workqueue_work_duration_seconds", "10"), "1");
        for metric in ["workqueue_adds_total", "workqueue_work_duration_seconds_count"] {
            assert_eq!(lines(&page, metric, labels), [format!("{metric}{{{labels}}} 1")]);
        }
        assert_eq!(lines(&page, "workqueue_work_duration_seconds_bucket", labels).len(), DURATION_BUCKETS.len() + 1);
    });
}
