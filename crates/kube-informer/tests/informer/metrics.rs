//! Metrics for the `metrics` crate.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{client, put, server};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::Informer;
use kube_informer::pipeline::Facade;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

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
            let maps = Informer::<ConfigMap>::builder(client(&server)).metrics(Facade).build();
            let handler = maps.on_event(|_| {});
            let mut unread = maps.subscribe();
            maps.start();
            handler.synced().await.unwrap();
            assert!(unread.next().await.is_some());
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!((board.gauge("kube_informer_objects{informer=configmaps}") - 1.0).abs() < 1e-9);
            assert_eq!(board.count("kube_informer_lists_total{informer=configmaps}"), 1);
            assert_eq!(board.count("kube_informer_relists_total{informer=configmaps,reason=expired}"), 0);
            assert!(board.gauge("kube_informer_handler_backlog{informer=configmaps,handler=0}").abs() < 1e-9);
            for nth in 0..3 {
                put(&server, "default", "a", &format!("1{nth}"));
            }
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!((board.gauge("kube_informer_handler_backlog{informer=configmaps,handler=1}") - 3.0).abs() < 1e-9);
            assert!(board.gauge("kube_informer_handler_lag_seconds{informer=configmaps,handler=1}") > 9.0);
            drop(unread);
            let _later = maps.subscribe();
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!(
                board.gauge("kube_informer_handler_backlog{informer=configmaps,handler=1}").abs() < 1e-9,
                "it has gone"
            );
            assert!(board.gauge("kube_informer_handler_lag_seconds{informer=configmaps,handler=1}").abs() < 1e-9);
            assert!((board.gauge("kube_informer_handler_backlog{informer=configmaps,handler=2}") - 1.0).abs() < 1e-9);
            maps.shutdown().await;
            assert!(board.gauge("kube_informer_handler_backlog{informer=configmaps,handler=2}").abs() < 1e-9);
            assert!(board.gauge("kube_informer_handler_lag_seconds{informer=configmaps,handler=2}").abs() < 1e-9);
            assert!(board.gauge("kube_informer_objects{informer=configmaps}").abs() < 1e-9);
        });
    });
}
