//! Shared by informer tests: an in-process API server, and handlers that check the events they
//! receive.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

pub mod logs;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube_embedded::Server;
use kube_informer::store::EventOrder;
use kube_informer::{Event, Informer, ObjectKey, Origin, Registration, Version};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio::time::timeout;

pub async fn server() -> Server {
    Server::builder().in_process().seed(1).start().await.unwrap()
}

pub fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

pub fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"value": value}},
        "data": {"value": value},
    })
}

/// Creates or updates a config map.
pub fn put(server: &Server, namespace: &str, name: &str, value: &str) -> Version {
    let objects = server.objects("v1", "ConfigMap").unwrap().namespace(namespace);
    let made = match objects.get(name) {
        Ok(_) => objects.patch(name, &json!({"metadata": {"labels": {"value": value}}, "data": {"value": value}})),
        Err(_) => objects.create(&config_map(namespace, name, value)),
    };
    version_of(&made.unwrap())
}

pub fn remove(server: &Server, namespace: &str, name: &str) {
    server.objects("v1", "ConfigMap").unwrap().namespace(namespace).delete(name).unwrap();
}

pub fn version_of(object: &Value) -> Version {
    Version::new(object["metadata"]["resourceVersion"].as_str().unwrap())
}

pub fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace, name)
}

/// Name and resource version of every config map on the server.
pub fn truth(server: &Server) -> BTreeMap<String, String> {
    let all = server.objects("v1", "ConfigMap").unwrap().list();
    all.iter().map(|map| (name_of(map), version_of(map).to_string())).collect()
}

fn name_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

/// Name and resource version of every config map in the cache.
pub fn cached(maps: &Informer<ConfigMap>) -> BTreeMap<String, String> {
    let all = maps.lister().list();
    all.iter().map(|map| (map.key().to_string(), map.version().to_string())).collect()
}

/// A handler that records its events and checks the event sequence of each object: added once,
/// updated from the last delivered state, deleted once.
#[derive(Clone, Default)]
pub struct EventRecorder(Arc<Mutex<Record>>, Arc<Notify>);

#[derive(Default)]
struct Record {
    order: EventOrder,
    lines: Vec<String>,
    error: Option<String>,
}

impl EventRecorder {
    pub fn handler<K: 'static>(&self) -> impl FnMut(Event<K>) + Send + use<K> {
        let recorder = self.clone();
        move |event| recorder.record(&event)
    }

    pub fn record<K>(&self, event: &Event<K>) {
        let mut record = self.0.lock().unwrap();
        record.lines.push(line(event));
        if let Err(error) = record.order.check(event) {
            let lines = record.lines.join("\n");
            record.error.get_or_insert(format!("{error}:\n{lines}"));
        }
        drop(record);
        self.1.notify_one();
    }

    /// Waits until the received events amount to what is on the server.
    pub async fn agrees_with(&self, server: &Server) {
        while self.objects() != truth(server) {
            self.1.notified().await;
        }
    }

    /// Allows versions to go back, before the server is restored from a backup.
    pub fn server_may_go_back(&self) {
        self.0.lock().unwrap().order.allow_going_back();
    }

    /// Allows deleted objects to return unchanged, if the informer's namespaces change.
    pub fn objects_may_return(&self) {
        self.0.lock().unwrap().order.allow_unchanged_returns();
    }

    /// Returns the events recorded since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().lines)
    }

    /// Name and version of each object according to the received events. Panics if they were out
    /// of order.
    pub fn objects(&self) -> BTreeMap<String, String> {
        let record = self.0.lock().unwrap();
        if let Some(error) = &record.error {
            panic!("{error}");
        }
        record.order.objects().map(|(key, version)| (key.to_string(), version.to_string())).collect()
    }
}

/// Formats an event as a short line.
pub fn line<K>(event: &Event<K>) -> String {
    let origin = match event.origin() {
        Origin::Live => String::new(),
        other => format!(" ({other:?})"),
    };
    match event {
        Event::Added { object, .. } => format!("+ {}{origin}", object.key()),
        Event::Updated { new, .. } => format!("~ {}{origin}", new.key()),
        Event::Deleted { last, state, .. } => format!("- {} {state:?}{origin}", last.key()),
    }
}

/// Numbers of lists and watches of config maps that the server received. Streaming lists count as
/// lists.
pub fn asked(server: &Server) -> (usize, usize) {
    let requests = server.requests();
    let maps = requests.iter().filter(|seen| seen.path.ends_with("/configmaps") && seen.method == "GET");
    let (watches, lists): (Vec<_>, Vec<_>) =
        maps.partition(|seen| seen.query.contains("watch=true") && !seen.query.contains("sendInitialEvents=true"));
    (lists.len(), watches.len())
}

/// Runs a test twice: on one thread, where time is paused and all tasks take turns in the same
/// order each time, and on four, where tasks run in parallel in real time.
///
/// For tests that wait for states and not for times, backoff and resyncs included.
pub fn on_each_runtime(test: impl AsyncFn()) {
    let paused = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    paused.block_on(test());
    let threads = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let ended = threads.block_on(async { timeout(Duration::from_secs(300), test()).await });
    ended.expect("the test hangs on several threads");
}

/// Waits until the handler has an empty backlog and has returned.
pub async fn drained(handler: &Registration) {
    while handler.backlog() > 0 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
}
