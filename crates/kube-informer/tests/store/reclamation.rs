//! Memory is freed without holding a lock that readers need.

use std::borrow::Borrow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use crate::objects::{begun, deleted, ended};
use bytes::Bytes;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::store::Delta;
use kube_informer::store::Store;
use kube_informer::{Index, Lister, Obj, Untyped};
use serde::Deserialize;

/// Requests a full read from the reader thread; the payload is the reply channel.
static READ_REQUESTS: OnceLock<Sender<Sender<()>>> = OnceLock::new();
static FREED: AtomicUsize = AtomicUsize::new(0);
static LOCKED_OUT: AtomicUsize = AtomicUsize::new(0);
const READER: &str = "reader";

/// Records on drop whether the reader thread can read everything meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Witness;

impl Drop for Witness {
    fn drop(&mut self) {
        let (Some(requests), false) = (READ_REQUESTS.get(), thread::current().name() == Some(READER)) else { return };
        let (answer, answered) = channel();
        if requests.send(answer).is_err() {
            return;
        }
        FREED.fetch_add(1, Ordering::Relaxed);
        // The timeout is only reached on failure.
        if answered.recv_timeout(Duration::from_secs(20)).is_err() {
            LOCKED_OUT.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Value(String, Witness);

impl Borrow<str> for Value {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Deserialize)]
struct Body {
    value: String,
    #[serde(skip, default = "witness")]
    _witness: Witness,
}

fn witness() -> Witness {
    Witness
}

/// kube-rs frees everything that a relist replaced while holding the lock that every reader needs.
#[test]
fn nothing_is_freed_under_a_lock_that_readers_need() {
    let mut settings = BodyEncoderSettings::default();
    settings.recent_bytes = 1 << 10;
    let encoder = BodyEncoder::new(settings);
    let object = |name: u64, version: u64| -> Obj<Untyped> {
        let json = format!(
            r#"{{"metadata":{{"name":"o{name}","uid":"o{name}","resourceVersion":"{version}"}},"value":"{version}"}}"#
        );
        encoder.accept(&Bytes::from(json), Arrival::Listed).expect("well-formed")
    };
    let mut store = Store::default();
    let index = |store: &Store| -> Index<Body, Value> {
        Index::new(&store.reader(), |object: &Obj<Body>| object.get().map(|body| Value(body.value.clone(), Witness)))
    };
    let (lister, by_value) = (Lister::<Body>::new(store.reader()), index(&store));
    drop(store.apply((0..20).map(|n| Delta::Changed(object(n, n + 1)))));

    let (requests, incoming) = channel::<Sender<()>>();
    let (reader_lister, reader_index) = (lister.clone(), by_value.clone());
    let reader = thread::Builder::new().name(READER.to_owned()).spawn(move || {
        for answer in incoming {
            let all = reader_lister.list();
            assert!(all.iter().all(|object| object.get().is_ok() && !object.json().is_empty()));
            assert!(reader_index.count("none") == 0 && reader_index.values().len() <= 40);
            // The requester may have timed out.
            let _ = answer.send(());
        }
    });
    let reader = reader.expect("a thread");
    assert!(READ_REQUESTS.set(requests).is_ok());

    let freed_by =
        |what: &str, before: usize| assert!(FREED.load(Ordering::Relaxed) > before, "{what} frees something");
    let now = || FREED.load(Ordering::Relaxed);
    let before = now();
    for object in lister.list().into_iter().chain(lister.list()) {
        assert!(object.get().is_ok());
    }
    freed_by("reading more bodies than are kept", before);
    let before = now();
    drop(store.apply([Delta::Changed(object(0, 30)), deleted("o1", 31)]));
    freed_by("a change", before);
    let before = now();
    let relisted = (4..20).map(|n| Delta::Listed(object(n, 40 + n)));
    drop(store.apply([begun()].into_iter().chain(relisted).chain([ended(60)])));
    store.tidy();
    freed_by("a relist", before);
    let before = now();
    drop(by_value);
    // The reader's handle keeps that index alive; another one is removed.
    let other = index(&store);
    drop(store.apply([]));
    drop(other);
    drop(store.apply([]));
    store.tidy();
    freed_by("an index that goes", before);
    assert_eq!(LOCKED_OUT.load(Ordering::Relaxed), 0, "a reader was locked out while something was freed");
    drop((store, lister));
    assert!(!reader.is_finished(), "the reader did not panic");
}
