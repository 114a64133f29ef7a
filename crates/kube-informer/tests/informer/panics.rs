//! User code that panics, and runtimes that end: what depends on them goes on, or ends with an
//! error.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{client, put, server};
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::client::{Body, Failure, Frame, ListQuery, ListWatch, ServerError, WatchQuery};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{Condition, Informer, Kind as _, SyncError, Version, WaitError};
use tokio::time::timeout;

/// A hang guard.
const MINUTES: Duration = Duration::from_secs(600);

const MAP: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}"#;

fn listing() -> ReflectorSettings {
    ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() }
}

/// Panics at its first list, its first watch, and in the middle of the next response of each.
#[derive(Default)]
struct Panicking {
    lists: AtomicUsize,
    watches: AtomicUsize,
}

impl ListWatch for Panicking {
    async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
        match self.lists.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("in a list"),
            1 => Ok(Body::from_stream(stream::poll_fn(|_| panic!("in the body of a list")))),
            _ => Ok(Body::from_list(&Version::from(1), [MAP])),
        }
    }

    async fn watch(&self, _: WatchQuery) -> Result<Body, ServerError> {
        match self.watches.fetch_add(1, Ordering::SeqCst) {
            0 => panic!("in a watch"),
            1 => Ok(Body::from_stream(stream::poll_fn(|_| panic!("in the body of a watch")))),
            _ => {
                let changed = Frame::Modified(MAP.replace(r#""1""#, r#""2""#).into());
                Ok(Body::from_frames(stream::iter([changed]).chain(stream::pending())))
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_asked_again_after_a_backoff_and_each_panic_is_reported() {
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let reported = Arc::clone(&errors);
    let maps = Informer::<ConfigMap>::builder_from(Panicking::default(), ConfigMap::resource())
        .reflector(listing())
        .on_watch_error(move |error| {
            assert!(matches!(error.failure(), Failure::Panicked(_)));
            reported.lock().unwrap().push(error.to_string());
            panic!("in the function that is called with errors");
        })
        .build();
    let mut health = maps.watch_health();
    maps.start();
    let degraded = |health: &kube_informer::Health| matches!(health.condition, Condition::Degraded { .. });
    drop(timeout(MINUTES, health.wait_for(degraded)).await.expect("the health shows it").unwrap());
    timeout(MINUTES, maps.synced()).await.expect("it goes on").unwrap();
    timeout(MINUTES, maps.wait_for(Version::from(2))).await.expect("it goes on").unwrap();
    assert_eq!(
        *errors.lock().unwrap(),
        [
            "listing configmaps: the source panicked: in a list",
            "listing configmaps: the source panicked: in the body of a list",
            "watching configmaps: the source panicked: in a watch",
            "watching configmaps: the source panicked: in the body of a watch",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_tweak_of_queries_that_panics_fails_its_request_only() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let calls = AtomicUsize::new(0);
    let maps = Informer::<ConfigMap>::builder(client(&server))
        .source(move |source| source.tweak(move |_| assert!(calls.fetch_add(1, Ordering::SeqCst) > 2, "not yet")))
        .start();
    timeout(MINUTES, maps.synced()).await.expect("it goes on").unwrap();
    assert_eq!(maps.lister().len(), 1);
}

/// A value that panics when it is dropped.
struct Unruly;

impl Drop for Unruly {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "in a drop");
    }
}

/// Its list panics when it is dropped, which nothing guards.
struct UnrulySource;

impl ListWatch for UnrulySource {
    async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
        let unruly = Unruly;
        let body = stream::iter([Ok(r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#.into())]);
        Ok(Body::from_stream(body.map(move |bytes| {
            let Unruly = &unruly;
            bytes
        })))
    }

    async fn watch(&self, _: WatchQuery) -> Result<Body, ServerError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_whose_reflector_cannot_go_on_stops_and_says_so() {
    let maps = Informer::<ConfigMap>::builder_from(UnrulySource, ConfigMap::resource()).reflector(listing()).build();
    let mut events = maps.subscribe();
    maps.start();
    let stopped = |health: &kube_informer::Health| matches!(health.condition, Condition::Stopped);
    drop(timeout(MINUTES, maps.watch_health().wait_for(stopped)).await.expect("the health shows it").unwrap());
    assert!(matches!(timeout(MINUTES, maps.synced()).await, Ok(Err(SyncError::Stopped))));
    assert!(timeout(MINUTES, events.next()).await.expect("the stream ends").is_none());
    timeout(MINUTES, maps.shutdown()).await.expect("no task is left");
}

/// A source that never answers.
struct Silent;

impl ListWatch for Silent {
    async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
        std::future::pending().await
    }

    async fn watch(&self, _: WatchQuery) -> Result<Body, ServerError> {
        std::future::pending().await
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Drops the runtime of an informer after this many turns of its tasks, while another runtime waits
/// for the informer.
fn waits_end_with_the_runtime(turns: usize) {
    let (theirs, ours) = (runtime(), runtime());
    let maps = Informer::<ConfigMap>::builder_from(Silent, ConfigMap::resource()).build();
    let mut events = maps.subscribe();
    let handler = maps.on_event(|_| ());
    theirs.block_on(async {
        maps.start();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    });
    ours.block_on(async {
        let (synced, handled, waits) = (maps.synced(), handler.synced(), maps.wait_for(Version::from(7)));
        let waits =
            tokio::spawn(async move { (synced.await, handled.await, waits.await, events.next().await.is_none()) });
        tokio::task::yield_now().await;
        tokio::task::spawn_blocking(move || drop(theirs)).await.unwrap();
        let ended = timeout(MINUTES, waits).await.expect("every wait ends").unwrap();
        assert!(
            matches!(ended, (Err(SyncError::Stopped), Err(SyncError::Stopped), Err(WaitError::Stopped), true)),
            "{ended:?}"
        );
        assert!(matches!(maps.health().condition, Condition::Stopped));
        let late = maps.on_event(|_| ());
        assert!(matches!(timeout(MINUTES, late.synced()).await, Ok(Err(SyncError::Stopped))));
        timeout(MINUTES, handler.remove()).await.expect("it is removed");
        timeout(MINUTES, maps.shutdown()).await.expect("no task is left");
    });
}

#[test]
fn a_runtime_that_is_dropped_ends_what_waits_on_others_for_its_informer() {
    for turns in [0, 1, 100] {
        waits_end_with_the_runtime(turns);
    }
}
