//! The workloads: small, fixed, and each a typical task of an informer.

use std::any::Any;

use bytes::Bytes;
use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_embedded::generate::Generator;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::codec::{Frames, ListSplitter, MAX_OBJECT_SIZE, WatchFrame};
use kube_informer::store::{Delta, History, Ingest, Relist, Store, WatchScope};
use kube_informer::workqueue::RateLimit;
use kube_informer::{Index, Keep, Lister, ObjectKey, Selector, WorkQueue};

/// The data that a workload leaves allocated, to be measured.
pub type Held = Box<dyn Any>;

/// A prepared workload.
pub type Work = Box<dyn FnMut() -> Held>;

/// Prepares a workload.
pub type Prepare = fn() -> Work;

/// All workloads by name.
pub const ALL: &[(&str, Prepare)] = &[
    ("list, plain", || list(Keep::Plain)),
    ("list, compact", || list(Keep::Compact)),
    ("watch, plain", || watch(Keep::Plain)),
    ("watch, compact", || watch(Keep::Compact)),
    ("relist, compact", relist),
    ("read metadata", read),
    ("read bodies, compact", bodies),
    ("work queue", queue),
];

const PODS: u64 = 400;
const CHUNK: usize = 64 << 10;

/// A list of pods: split, scanned and stored.
fn list(keep: Keep) -> Work {
    let body = list_body(0);
    Box::new(move || {
        let mut cache = Cache::new(keep);
        cache.list(&body);
        Box::new(cache)
    })
}

/// A watch update of every object, with all events delivered.
fn watch(keep: Keep) -> Work {
    let mut cache = Some(filled(keep));
    let mut body = Vec::new();
    for pod in 0..PODS {
        body.extend_from_slice(br#"{"type":"MODIFIED","object":"#);
        body.extend_from_slice(&Generator::new(7).pod_at(pod, 1).at_version(3_000_000_000 + pod));
        body.extend_from_slice(b"}\n");
    }
    let chunks = chunks(&body);
    Box::new(move || {
        let mut cache = cache.take().expect("it runs once");
        cache.watch(&chunks);
        Box::new(cache)
    })
}

/// A relist with a new version of every object.
fn relist() -> Work {
    let mut cache = Some(filled(Keep::Compact));
    let body = list_body(1);
    Box::new(move || {
        let mut cache = cache.take().expect("it runs once");
        cache.list(&body);
        Box::new(cache)
    })
}

/// Gets, lists, selectors and an index, without reading bodies.
fn read() -> Work {
    let mut cache = filled(Keep::Compact);
    let lister = Lister::<Pod>::new(cache.store.reader());
    let index: Index<Pod, String> =
        Index::by_path(&cache.store.reader(), "spec.nodeName".parse().expect("a path of fields"));
    cache.apply([]);
    while cache.store.is_building() {
        cache.apply([]);
    }
    let keys: Vec<ObjectKey> = lister.sorted().iter().map(|pod| pod.key().clone()).collect();
    let nodes = index.values();
    let selector: Selector = "app.kubernetes.io/managed-by=Helm".parse().expect("a selector");
    Box::new(move || {
        let mut seen = 0;
        for key in &keys {
            seen += lister.get(key).map_or(0, |pod| pod.version().number().unwrap_or(0) as usize);
            seen += lister.namespace(key.namespace().unwrap_or_default()).list().len();
        }
        for node in &nodes {
            seen += index.get(node).len();
        }
        for _ in 0..10 {
            seen += lister.select(&selector).len() + lister.list().len();
        }
        Box::new(seen)
    })
}

/// Decompresses and decodes bodies.
fn bodies() -> Work {
    let lister = Lister::<Pod>::new(filled(Keep::Compact).store.reader());
    Box::new(move || {
        let containers =
            lister.sorted().iter().map(|pod| pod.get().map_or(0, |pod| pod.spec.iter().len())).sum::<usize>();
        Box::new(containers)
    })
}

/// Adds, takes and completes items one at a time, also with delays.
fn queue() -> Work {
    let keys: Vec<ObjectKey> = (0..5_000)
        .map(|nth| ObjectKey::namespaced(format!("namespace-{:03}", nth % 100), format!("name-{nth:06}")))
        .collect();
    Box::new(move || {
        let queue = WorkQueue::new(RateLimit::default());
        for _ in 0..4 {
            for key in &keys {
                queue.add(key.clone());
                queue.next().now_or_never().flatten().expect("one was added").done();
            }
        }
        keys.iter().for_each(|key| queue.add(key.clone()));
        Box::new(queue)
    })
}

/// An encoder and a store.
struct Cache {
    encoder: BodyEncoder,
    store: Store,
}

fn filled(keep: Keep) -> Cache {
    let mut cache = Cache::new(keep);
    cache.list(&list_body(0));
    if let Some(samples) = cache.encoder.take_training_samples() {
        cache.encoder.install(samples.train().expect("there are enough"));
    }
    cache
}

impl Cache {
    fn new(keep: Keep) -> Self {
        let mut settings = BodyEncoderSettings::default();
        settings.keep = keep;
        Self { encoder: BodyEncoder::new(settings), store: Store::new(Ingest::default()) }
    }

    fn list(&mut self, chunks: &[Bytes]) {
        let begun = Delta::RelistBegun(Relist { scope: WatchScope::Everything, history: History::Continues });
        self.apply([begun]);
        let mut splitter = ListSplitter::new(MAX_OBJECT_SIZE);
        for chunk in chunks {
            splitter.push(chunk.clone());
            let mut batch = Vec::new();
            while let Some(item) = splitter.next() {
                let object = self.encoder.accept(&item.expect("a list"), Arrival::Listed).expect("a pod");
                batch.push(Delta::Listed(object));
            }
            self.apply(batch);
        }
        let version = splitter.finish().ok().and_then(|end| end.version).expect("a whole list");
        self.apply([Delta::RelistEnded { scope: WatchScope::Everything, version }]);
    }

    fn watch(&mut self, chunks: &[Bytes]) {
        let mut frames = Frames::new(MAX_OBJECT_SIZE);
        for chunk in chunks {
            frames.push(chunk.clone());
            let mut batch = Vec::new();
            while let Some(frame) = frames.next() {
                let Ok(WatchFrame::Changed(_, json)) = WatchFrame::read(&frame.expect("a frame")) else { continue };
                batch.push(Delta::Changed(self.encoder.accept(&json, Arrival::Changed(0)).expect("a pod")));
            }
            self.apply(batch);
        }
        while self.encoder.pack_cold(100, 1_000).objects > 0 {}
    }

    fn apply(&mut self, deltas: impl IntoIterator<Item = Delta>) {
        self.store.apply(deltas).for_each(drop);
        self.store.tidy();
    }
}

/// The body of a list of pods in this state, in the order of a server.
fn list_body(step: u64) -> Vec<Bytes> {
    let cluster = Generator::new(7);
    let mut pods: Vec<_> = (0..PODS).map(|pod| cluster.pod_at(pod, step)).collect();
    pods.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
    let version = 1_000_000_000 * (step + 1);
    let mut body =
        format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#)
            .into_bytes();
    for (nth, pod) in pods.iter().enumerate() {
        if nth > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&pod.at_version(version + nth as u64));
    }
    body.extend_from_slice(b"]}");
    chunks(&body)
}

fn chunks(body: &[u8]) -> Vec<Bytes> {
    body.chunks(CHUNK).map(Bytes::copy_from_slice).collect()
}
