//! The guarantees of the crate documentation, one test each, under the same name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{EventRecorder, asked, cached, client, drained, key, on_each_runtime, put, remove, server, truth};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::pipeline::{Backlog, Overflow};
use kube_informer::{Condition, Event, Factory, Informer, Kind as _, Obj, Origin, SyncError, WaitError};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

/// One list, then only a watch; reads send no request.
#[test]
fn it_lists_once_then_watches_and_reads_never_reach_the_server() {
    on_each_runtime(async || {
        let server = server().await;
        put(&server, "default", "a", "1");
        let maps = Informer::<ConfigMap>::builder(client(&server)).start();
        maps.synced().await.unwrap();
        let version = put(&server, "default", "b", "1");
        maps.wait_for(version).await.unwrap();
        let before = server.request_count();
        let (lister, by_value) = (maps.lister(), maps.index_by_label("value"));
        for _ in 0..100 {
            assert_eq!((lister.len(), lister.list().len(), by_value.count("1")), (2, 2, 2));
            assert!(lister.get(&key("default", "b")).is_some());
        }
        assert_eq!(server.request_count(), before);
        assert_eq!(asked(&server), (1, 0), "one streaming list, which goes on as the watch");
    });
}

#[test]
fn readers_see_a_change_before_handlers_receive_it() {
    on_each_runtime(async || {
        let server = server().await;
        let maps = Informer::<ConfigMap>::builder(client(&server)).build();
        let lister = maps.lister();
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&seen);
        let handler = maps.on_event(move |event| {
            let held = lister.get(event.key());
            match &event {
                Event::Deleted { last, .. } => assert!(held.is_none_or(|held| held.version() > last.version())),
                event => assert!(held.is_none_or(|held| held.version() >= event.object().version())),
            }
            if let Event::Added { object, .. } = &event
                && object.name() == "stays"
            {
                assert!(lister.get(object.key()).is_some());
            }
            counted.fetch_add(1, Ordering::Relaxed);
        });
        maps.start();
        handler.synced().await.unwrap();
        put(&server, "default", "stays", "1");
        for value in ["1", "2", "3"] {
            put(&server, "default", "a", value);
        }
        remove(&server, "default", "a");
        let version = put(&server, "default", "stays", "2");
        maps.wait_for(version).await.unwrap();
        while seen.load(Ordering::Relaxed) < 6 {
            tokio::task::yield_now().await;
        }
        drained(&handler).await;
        assert_eq!(seen.load(Ordering::Relaxed), 6, "every event was received, and no check failed");
    });
}

/// A snapshot also covers indexes.
#[test]
fn every_read_is_a_consistent_snapshot() {
    on_each_runtime(async || {
        let server = server().await;
        for nth in 0..20 {
            put(&server, "default", &format!("m{nth}"), "old");
        }
        let maps = Informer::<ConfigMap>::builder(client(&server)).build();
        let by_value = maps.index_by_label("value");
        let lister = maps.lister();
        let handler = maps.on_event({
            let by_value = by_value.clone();
            move |_| {
                // At any time, objects found by an index have the value that was looked up.
                for value in ["old", "new"] {
                    assert!(by_value.get(value).iter().all(|map| map.label("value") == Some(value)));
                }
                let all = lister.snapshot();
                assert_eq!(all.iter().count(), all.len());
            }
        });
        maps.start();
        handler.synced().await.unwrap();
        for nth in 0..20 {
            put(&server, "default", &format!("m{nth}"), "new");
        }
        maps.wait_for(crate::support::version_of(
            &server.objects("v1", "ConfigMap").unwrap().namespace("default").get("m19").unwrap(),
        ))
        .await
        .unwrap();
        assert_eq!((by_value.count("old"), by_value.count("new")), (0, 20));
        drained(&handler).await;
        assert_eq!(handler.panics(), 0);
    });
}

/// Added once, updated from the last delivered state, deleted once. A new object with the same name
/// has its own event sequence.
#[test]
fn each_object_has_one_addition_ordered_updates_and_one_deletion() {
    on_each_runtime(async || {
        let server = server().await;
        put(&server, "default", "a", "1");
        let maps = Informer::<ConfigMap>::builder(client(&server)).build();
        let recorder = EventRecorder::default();
        let handler = maps.on_event(recorder.handler());
        maps.start();
        handler.synced().await.unwrap();
        put(&server, "default", "a", "2");
        remove(&server, "default", "a");
        put(&server, "default", "a", "3");
        put(&server, "default", "b", "1");
        recorder.agrees_with(&server).await;
        assert_eq!(
            recorder.take(),
            ["+ default/a (Initial)", "~ default/a", "- default/a Known", "+ default/a", "+ default/b"]
        );
    });
}

/// Also during a list or a burst of events.
#[test]
fn a_late_handler_receives_the_current_state_once_and_then_every_change() {
    on_each_runtime(async || {
        let server = server().await;
        for nth in 0..50 {
            put(&server, "default", &format!("m{nth}"), "1");
        }
        let maps = Informer::<ConfigMap>::builder(client(&server)).start();
        let mut late = Vec::new();
        for nth in 0..50 {
            put(&server, "default", &format!("m{nth}"), "2");
            if nth % 3 == 0 {
                remove(&server, "default", &format!("m{nth}"));
            }
            tokio::task::yield_now().await;
            let recorder = EventRecorder::default();
            late.push((maps.on_event(recorder.handler()), recorder));
        }
        maps.wait_for(put(&server, "default", "last", "1")).await.unwrap();
        for (handler, recorder) in &late {
            handler.synced().await.unwrap();
            recorder.agrees_with(&server).await;
        }
    });
}

/// Neither the cache nor other handlers; its backlog is bounded.
#[test]
fn a_slow_handler_delays_nothing_else() {
    on_each_runtime(async || {
        let server = server().await;
        let maps = Informer::<ConfigMap>::builder(client(&server)).build();
        let gate = Arc::new(Notify::new());
        let (slow_events, fast_events) = (EventRecorder::default(), EventRecorder::default());
        let slow = maps.handler().backlog(Backlog::Every { limit: 10, overflow: Overflow::Coalesce }).on_event_async({
            let (gate, recorder) = (Arc::clone(&gate), slow_events.clone());
            move |event| {
                let (gate, recorder) = (Arc::clone(&gate), recorder.clone());
                async move {
                    gate.notified().await;
                    recorder.record(&event);
                }
            }
        });
        let _fast = maps.on_event(fast_events.handler());
        maps.start();
        maps.synced().await.unwrap();
        for nth in 0..200 {
            put(&server, "default", &format!("m{}", nth % 5), &nth.to_string());
        }
        maps.wait_for(put(&server, "default", "last", "1")).await.unwrap();
        fast_events.agrees_with(&server).await;
        assert_eq!(fast_events.take().len(), 201);
        assert!(slow.backlog() <= 10, "{} wait", slow.backlog());
        while slow_events.objects() != truth(&server) {
            gate.notify_one();
            tokio::task::yield_now().await;
        }
        assert!(slow_events.take().len() < 30, "it received the difference, not every step");
    });
}

/// The event counts as delivered, also for `synced`; the panic is counted.
#[test]
fn a_panicking_handler_continues_with_the_next_event() {
    on_each_runtime(async || {
        let server = server().await;
        for name in ["a", "b", "c"] {
            put(&server, "default", name, "1");
        }
        let maps = Informer::<ConfigMap>::builder(client(&server)).build();
        let recorder = EventRecorder::default();
        let handler_recorder = recorder.clone();
        let handler = maps.on_event(move |event| {
            handler_recorder.record(&event);
            assert_ne!(event.key().name(), "b", "as it was meant to");
        });
        let waits =
            maps.on_event_async(|event| async move { assert_ne!(event.key().name(), "b", "as it was meant to") });
        maps.start();
        handler.synced().await.unwrap();
        waits.synced().await.unwrap();
        assert_eq!(recorder.objects(), truth(&server));
        assert_eq!((handler.panics(), waits.panics()), (1, 1));
    });
}

#[tokio::test(start_paused = true)]
async fn a_relist_delivers_the_missed_changes_deletions_included() {
    let server = server().await;
    for name in ["stays", "changes", "goes"] {
        put(&server, "default", name, "1");
    }
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    let recorder = EventRecorder::default();
    let handler = maps.on_event(recorder.handler());
    maps.start();
    handler.synced().await.unwrap();
    recorder.take();
    server.refuse().await;
    server.cut();
    put(&server, "default", "changes", "2");
    remove(&server, "default", "goes");
    put(&server, "default", "comes", "1");
    server.compact_now();
    server.accept().await;
    maps.wait_until(key("default", "comes"), |map| map.is_some()).await.unwrap();
    drained(&handler).await;
    assert_eq!(
        recorder.take(),
        ["~ default/changes (Relist)", "- default/goes Missed (Relist)", "+ default/comes (Relist)"],
        "deletions before additions, and nothing of what stayed as it was"
    );
    assert_eq!(recorder.objects(), truth(&server));
}

/// However many handlers and views read it, while it belongs to the event or is still cached.
#[test]
fn a_body_is_decoded_at_most_once_and_only_when_it_is_read() {
    on_each_runtime(async || {
        static DECODED: AtomicUsize = AtomicUsize::new(0);
        static RECEIVED: AtomicUsize = AtomicUsize::new(0);
        struct Counted;
        impl<'de> Deserialize<'de> for Counted {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                serde::de::IgnoredAny::deserialize(from)?;
                DECODED.fetch_add(1, Ordering::Relaxed);
                Ok(Self)
            }
        }
        DECODED.store(0, Ordering::Relaxed);
        RECEIVED.store(0, Ordering::Relaxed);
        let server = server().await;
        let maps = Informer::<ConfigMap>::builder(client(&server)).build();
        let counted = maps.view::<Counted>();
        let read = |event: Event<Counted>| {
            assert!(event.object().get().is_ok());
            RECEIVED.fetch_add(1, Ordering::Relaxed);
        };
        let _handlers: Vec<_> = (0..5).map(|_| counted.on_event(read)).collect();
        let keys_only = maps.on_event(|event| drop(event.key().clone()));
        maps.start();
        keys_only.synced().await.unwrap();
        maps.wait_for(put(&server, "default", "a", "1")).await.unwrap();
        while RECEIVED.load(Ordering::Relaxed) < 5 {
            tokio::task::yield_now().await;
        }
        assert_eq!(DECODED.load(Ordering::Relaxed), 1);
    });
}

/// It can be found, listed and deleted; only decoding its body fails.
#[test]
fn an_object_that_does_not_fit_its_type_stops_nothing() {
    on_each_runtime(async || {
        #[derive(Debug, Deserialize)]
        struct Picky {
            data: Numbers,
        }
        #[derive(Debug, Deserialize)]
        struct Numbers {
            value: u64,
        }
        let server = server().await;
        put(&server, "default", "bad", "text");
        put(&server, "default", "good", "text");
        let maps = Informer::<ConfigMap>::builder(client(&server)).start();
        let picky = maps.view::<Picky>();
        let broken = picky.index(|map: &Obj<Picky>| map.get().ok().map(|map| map.data.value));
        picky.synced().await.unwrap();
        assert!(picky.lister().get(&key("default", "bad")).unwrap().get().is_err());
        assert_eq!((picky.lister().len(), broken.values().len()), (2, 0));
        remove(&server, "default", "bad");
        picky.wait_until(key("default", "bad"), |map| map.is_none()).await.unwrap();
        assert_eq!(cached(&maps), truth(&server));
    });
}

/// The reflector keeps trying, so a later wait succeeds.
#[tokio::test(start_paused = true)]
async fn synced_returns_an_error_when_waiting_cannot_help() {
    let server = server().await;
    let unknown: kube::core::ApiResource = serde_json::from_value(json!({
        "group": "example.com", "version": "v1", "api_version": "example.com/v1", "kind": "Widget", "plural": "widgets",
    }))
    .unwrap();
    let widgets = Informer::<kube::core::DynamicObject>::builder_for(client(&server), unknown).start();
    let waiters: Vec<_> = (0..5).map(|_| tokio::spawn(widgets.synced())).collect();
    for waiter in waiters {
        let Err(SyncError::Refused(cause)) = waiter.await.unwrap() else { panic!("it cannot have synced") };
        assert!(cause.is_not_found());
    }
    assert!(matches!(widgets.health().condition, Condition::Degraded { .. }));
    server
        .create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }))
        .unwrap();
    let mut health = widgets.watch_health();
    health.wait_for(kube_informer::Health::is_synced).await.unwrap();
    widgets.synced().await.unwrap();
}

#[test]
fn a_caller_that_waits_for_the_version_of_its_write_reads_it() {
    on_each_runtime(async || {
        let server = server().await;
        let maps = Informer::<ConfigMap>::builder(client(&server)).start();
        for nth in 0..20 {
            let name = format!("m{nth}");
            let version = put(&server, "default", &name, "1");
            maps.wait_for(version).await.unwrap();
            assert!(maps.lister().get(&key("default", &name)).is_some());
        }
    });
}

/// As after a restored backup. The cache follows.
#[tokio::test(start_paused = true)]
async fn when_the_server_goes_back_the_cache_follows_and_waiting_callers_get_an_error() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let backup = server.backup();
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    let recorder = EventRecorder::default();
    let handler = maps.on_event(recorder.handler());
    maps.start();
    for nth in 0..30 {
        put(&server, "default", "a", &nth.to_string());
    }
    let version = put(&server, "default", "b", "1");
    maps.wait_for(version.clone()).await.unwrap();
    drained(&handler).await;
    let pending = tokio::spawn(maps.wait_for(kube_informer::Version::from(version.number().unwrap() + 1_000)));
    tokio::task::yield_now().await;
    server.restore(&backup);
    assert_eq!(pending.await.unwrap(), Err(WaitError::WentBack));
    maps.wait_until(key("default", "b"), |map| map.is_none()).await.unwrap();
    let version = put(&server, "default", "c", "1");
    maps.wait_for(version).await.unwrap();
    assert_eq!(cached(&maps), truth(&server));
}

/// Sends no request; every handler receives all objects again.
#[tokio::test(start_paused = true)]
async fn a_resync_delivers_every_object_again_without_a_request() {
    let server = server().await;
    put(&server, "default", "a", "1");
    put(&server, "default", "b", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).resync(Duration::from_secs(10)).build();
    let mut events = maps.subscribe();
    maps.start();
    for _ in 0..2 {
        assert_eq!(events.next().await.unwrap().origin(), Origin::Initial);
    }
    let before = server.request_count();
    for _ in 0..6 {
        assert_eq!(events.next().await.unwrap().origin(), Origin::Resync);
    }
    assert_eq!(server.request_count(), before);
}

/// No task and no connection is left; pending waits return an error.
#[test]
fn dropping_the_last_handle_stops_everything() {
    on_each_runtime(async || {
        let server = server().await;
        put(&server, "default", "a", "1");
        let client = client(&server);
        let tasks = tokio::runtime::Handle::current().metrics();
        let before = tasks.num_alive_tasks();
        let lister = {
            let maps = Informer::<ConfigMap>::builder(client.clone()).start();
            maps.on_event(|_| {}).detach();
            let _stream = maps.subscribe();
            maps.synced().await.unwrap();
            maps.lister()
        };
        let version = put(&server, "default", "b", "1");
        while lister.len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.watches().len(), 1, "a lister alone keeps it alive");
        drop((lister, version));
        while tasks.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.watches().len(), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_no_task_and_no_connection() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let client = client(&server);
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let maps = Informer::<ConfigMap>::builder(client.clone()).start();
    let handler = maps.on_event(|_| {});
    let mut stream = maps.subscribe();
    handler.synced().await.unwrap();
    assert_eq!(server.watches().len(), 1);
    assert!(stream.next().await.is_some());
    maps.shutdown().await;
    assert_eq!((server.watches().len(), tasks.num_alive_tasks()), (0, before));
    assert!(stream.next().await.is_none());
    assert!(matches!(maps.synced().await, Err(SyncError::Stopped)));
    assert_eq!(maps.wait_for(kube_informer::Version::from(u64::MAX)).await, Err(WaitError::Stopped));
    assert_eq!(maps.lister().len(), 1, "what is in the cache can still be read");
}

/// Typed, dynamic, or with a user-defined struct.
#[test]
fn one_watch_and_one_cache_serve_every_view_of_a_resource_in_a_factory() {
    on_each_runtime(async || {
        #[derive(Deserialize)]
        struct Data {
            data: std::collections::BTreeMap<String, String>,
        }
        let server = server().await;
        put(&server, "default", "a", "1");
        let factory = Factory::new(client(&server));
        let (maps, again) = (factory.informer::<ConfigMap>(), factory.clone().informer::<ConfigMap>());
        let views = factory.informer_for::<Data>(ConfigMap::resource());
        factory.start();
        factory.synced().await.unwrap();
        assert_eq!(views.lister().get(&key("default", "a")).unwrap().get().unwrap().data["value"], "1");
        assert_eq!((cached(&maps), cached(&again)), (truth(&server), truth(&server)));
        assert_eq!((asked(&server), server.watches().len()), ((1, 0), 1));
    });
}

/// After a connection that broke, the server is unreachable, then answers nothing, then only
/// refuses watches. The cache misses a change all the time.
#[tokio::test(start_paused = true)]
async fn health_never_claims_more_than_is_known() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    let mut health = maps.watch_health();
    health.wait_for(|health| matches!(health.condition, Condition::Synced)).await.unwrap();
    let faults = [Fault::Disconnect, Fault::Delay(Duration::from_secs(1_000)), Fault::StallAfterBytes(0)];
    let mut fault = server.faults().inject(Rule::new(Fault::Disconnect));
    let lost = tokio::time::Instant::now();
    server.cut();
    let version = put(&server, "default", "a", "2");
    health.wait_for(|health| !matches!(health.condition, Condition::Synced)).await.unwrap();
    for next in faults {
        fault.remove();
        fault = server.faults().inject(Rule::new(next));
        let end = tokio::time::Instant::now() + Duration::from_secs(600);
        while tokio::time::timeout_at(end, health.changed()).await.is_ok() {
            let now = health.borrow_and_update().clone();
            let Condition::Degraded { since, .. } = now.condition else { panic!("{:?}", now.condition) };
            assert!(since - lost < Duration::from_secs(1), "since the connection was lost");
            assert!(now.caught_up.unwrap() <= lost);
        }
    }
    assert!(maps.lister().fresh_within(Duration::from_secs(1_000)).is_err());
    fault.remove();
    health.wait_for(|health| matches!(health.condition, Condition::Synced)).await.unwrap();
    maps.wait_for(version).await.unwrap();
    assert_eq!(cached(&maps), truth(&server));
}
