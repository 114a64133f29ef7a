//! Test support: a reflector on an embedded server whose deltas are applied to a store, on paused
//! time.

#![allow(dead_code, reason = "each test file uses its own part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube_embedded::{LoggedRequest, Server, Verb};
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::client::{ApiListWatch, ListWatch, ServerError};
use kube_informer::reflector::{DeltaSink, ObjectSource, Reflector, ReflectorSettings, ReflectorStatus, SinkClosed};
use kube_informer::store::{Delta, History, Ingest, Relist, Store, WatchScope};
use kube_informer::{Event, Lister, Obj, Untyped};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Limit for every wait; costs no real time, because time is paused.
const TIMEOUT: Duration = Duration::from_secs(7_200);

pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) status: watch::Receiver<ReflectorStatus>,
    pub(crate) errors: Arc<Mutex<Vec<ServerError>>>,
    pub(crate) started: Instant,
    fold: Arc<Mutex<Applied>>,
    delta_count: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

/// The store and the events, relists and counters derived from the deltas.
struct Applied {
    store: Store,
    lister: Lister<Untyped>,
    events: Vec<(Instant, Event<Untyped>)>,
    relists: Vec<History>,
    ended: usize,
    abandoned: usize,
}

struct StoreSink(Arc<Mutex<Applied>>, watch::Sender<u64>);

impl DeltaSink for StoreSink {
    async fn accept(&mut self, delta: Delta) -> Result<(), SinkClosed> {
        let mut fold = self.0.lock().unwrap();
        match &delta {
            Delta::RelistBegun(Relist { history, .. }) => fold.relists.push(*history),
            Delta::RelistEnded { .. } => fold.ended += 1,
            Delta::RelistAbandoned(_) => fold.abandoned += 1,
            _ => {}
        }
        let events = fold.store.apply([delta]);
        let now = Instant::now();
        fold.events.extend(events.into_iter().map(|event| (now, event)));
        drop(fold);
        self.1.send_modify(|delta_count| *delta_count += 1);
        Ok(())
    }
}

/// An in-process server without a socket.
pub(crate) async fn server() -> Server {
    Server::builder().in_process().seed(1).start().await.unwrap()
}

pub(crate) fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

/// Decodes objects as an informer does.
pub(crate) fn intake() -> impl FnMut(&Bytes, ObjectSource) -> Result<Obj<Untyped>, kube_informer::DecodeError> + Send {
    let encoder = BodyEncoder::new(BodyEncoderSettings::default());
    move |json: &Bytes, source| {
        let arrival = match source {
            ObjectSource::List => Arrival::Listed,
            ObjectSource::Watch => Arrival::Changed(0),
        };
        encoder.accept(json, arrival)
    }
}

impl Rig {
    /// Starts a reflector of all config maps.
    pub(crate) fn start(server: Server, settings: ReflectorSettings) -> Self {
        let source = ApiListWatch::of::<ConfigMap>(client(&server));
        Self::start_on(server, settings, WatchScope::Everything, source)
    }

    pub(crate) fn start_on(
        server: Server,
        settings: ReflectorSettings,
        scope: WatchScope,
        source: impl ListWatch,
    ) -> Self {
        let errors: Arc<Mutex<Vec<ServerError>>> = Arc::default();
        let recorded = Arc::clone(&errors);
        let reflector = Reflector::new("configmaps", scope, source, settings, intake())
            .seed(7)
            .on_error(move |error| recorded.lock().unwrap().push(error.clone()));
        let store = Store::seeded(Ingest::default(), 7);
        let lister = Lister::new(store.reader());
        let fold = Applied { store, lister, events: Vec::new(), relists: Vec::new(), ended: 0, abandoned: 0 };
        let fold = Arc::new(Mutex::new(fold));
        let (sender, delta_count) = watch::channel(0);
        let status = reflector.status();
        let task = tokio::spawn(reflector.run(StoreSink(Arc::clone(&fold), sender)));
        Self { server, status, errors, started: Instant::now(), fold, delta_count, task }
    }

    /// Starts a rig and waits until its first list is complete.
    pub(crate) async fn synced(server: Server, settings: ReflectorSettings) -> Self {
        let mut rig = Self::start(server, settings);
        rig.converges().await;
        rig
    }

    /// Waits until the condition holds; panics after [`TIMEOUT`].
    pub(crate) async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let (mut delta_count, mut status) = (self.delta_count.clone(), self.status.clone());
        let waiting = async {
            loop {
                delta_count.mark_unchanged();
                status.mark_unchanged();
                if holds(self) {
                    return;
                }
                tokio::select! {
                    biased;
                    changed = delta_count.changed() => changed.unwrap(),
                    changed = status.changed() => changed.unwrap(),
                }
            }
        };
        let in_time = tokio::time::timeout(TIMEOUT, waiting).await.is_ok();
        assert!(in_time, "never: {what}; {:?}\n{:?}", self.status.borrow(), self.errors.lock().unwrap());
    }

    /// Waits until the cache equals the server's state, then checks all event sequences.
    pub(crate) async fn converges(&mut self) {
        let complete = |rig: &Self| {
            let fold = rig.fold.lock().unwrap();
            fold.ended > 0 && fold.relists.len() == fold.ended + fold.abandoned
        };
        self.until("the cache is the server's state", |rig| complete(rig) && rig.cache() == rig.truth()).await;
        self.check_stories();
    }

    /// Lets this many seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// Key and resource version of everything in the cache.
    pub(crate) fn cache(&self) -> BTreeMap<String, String> {
        let objects = self.fold.lock().unwrap().lister.list();
        objects.iter().map(|object| (object.key().to_string(), object.version().to_string())).collect()
    }

    /// Key and resource version of everything on the server.
    pub(crate) fn truth(&self) -> BTreeMap<String, String> {
        let objects = self.server.objects("v1", "ConfigMap").unwrap().list();
        let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap().to_owned();
        let key = |object: &Value| format!("{}/{}", text(object, "namespace"), text(object, "name"));
        objects.iter().map(|object| (key(object), text(object, "resourceVersion"))).collect()
    }

    pub(crate) fn put(&self, name: &str) {
        self.server.create(&map(name)).unwrap();
    }

    pub(crate) fn change(&self, name: &str, value: u64) {
        let maps = self.server.objects("v1", "ConfigMap").unwrap().namespace("default");
        maps.patch(name, &json!({"data": {"value": value.to_string()}})).unwrap();
    }

    pub(crate) fn delete(&self, name: &str) {
        self.server.objects("v1", "ConfigMap").unwrap().namespace("default").delete(name).unwrap();
    }

    pub(crate) fn counters(&self) -> kube_informer::reflector::Counters {
        self.status.borrow().counters
    }

    pub(crate) fn relists(&self) -> Vec<History> {
        self.fold.lock().unwrap().relists.clone()
    }

    /// Number of completed lists.
    pub(crate) fn ended(&self) -> usize {
        self.fold.lock().unwrap().ended
    }

    /// The requests for config maps.
    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        let requests = self.server.requests();
        requests.into_iter().filter(|seen| seen.path.ends_with("/configmaps")).collect()
    }

    /// Kind of each request: `stream`, `watch`, `list` or `probe`.
    pub(crate) fn kinds_of_requests(&self) -> Vec<&'static str> {
        self.requests().iter().map(kind_of).collect()
    }

    /// Seconds between consecutive requests of this kind.
    pub(crate) fn gaps(&self, kind: &str) -> Vec<f64> {
        let times: Vec<Instant> =
            self.requests().iter().filter(|seen| kind_of(seen) == kind).map(|seen| seen.at).collect();
        times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect()
    }

    /// Checks that each object is added once, updated to ever newer versions, and deleted once.
    ///
    /// A new object of the same name has its own event sequence. Versions may go back only if the
    /// server did.
    pub(crate) fn check_stories(&self) {
        let fold = self.fold.lock().unwrap();
        let went_back = fold.relists.contains(&History::WentBack);
        let mut alive: BTreeMap<String, u64> = BTreeMap::new();
        for (_, event) in &fold.events {
            let key = format!("{} {:?}", event.key(), event.object().uid());
            let version = event.object().version().number().unwrap();
            match event {
                Event::Added { .. } => assert!(alive.insert(key.clone(), version).is_none(), "added twice: {key}"),
                Event::Updated { .. } => {
                    let before = alive.insert(key.clone(), version);
                    assert!(
                        before.is_some_and(|before| before < version || went_back),
                        "{key}: {before:?} -> {version}"
                    );
                }
                Event::Deleted { .. } => assert!(alive.remove(&key).is_some(), "deleted but not there: {key}"),
            }
        }
        assert_eq!(alive.len(), fold.lister.len(), "the delivered state is the cached one");
    }

    /// Every event and every request, with its time.
    pub(crate) fn transcript(&self) -> Vec<String> {
        let events = self.fold.lock().unwrap().events.clone().into_iter().map(|(at, event)| {
            let what = match &event {
                Event::Added { .. } => "+",
                Event::Updated { .. } => "~",
                Event::Deleted { .. } => "-",
            };
            format!("{:?} {what} {} {}", at - self.started, event.key(), event.object().version())
        });
        let requests = self.server.requests().into_iter();
        let requests = requests.map(|seen| format!("{:?} {} {:?}", seen.at - self.started, seen.query, seen.code));
        events.chain(requests).collect()
    }

    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        assert!((&mut self.task).await.unwrap_err().is_cancelled());
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": "0"}})
}

pub(crate) fn kind_of(seen: &LoggedRequest) -> &'static str {
    match seen.verb {
        Some(Verb::Watch) if seen.query.contains("sendInitialEvents=true") => "stream",
        Some(Verb::Watch) => "watch",
        Some(Verb::List) if seen.query.contains("limit=1&") || seen.query.ends_with("limit=1") => "probe",
        Some(Verb::List) => "list",
        _ => "other",
    }
}
