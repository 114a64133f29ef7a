//! Shutdowns while handlers are busy, and the logs that say what is waited for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::sync::Arc;
use std::time::Duration;

use crate::support::logs::Logs;
use crate::support::{client, put, server};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube_informer::{Factory, Informer};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout};

/// A hang guard.
const MINUTES: Duration = Duration::from_secs(600);
const S: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_pending_at_the_shutdown_is_cancelled_after_the_grace() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).shutdown_grace(30 * S).build();
    let held = Arc::new(());
    let captured = Arc::clone(&held);
    let (entered, mut entries) = mpsc::unbounded_channel();
    let handler = maps.on_event_async(move |_| {
        entered.send(Arc::clone(&captured)).unwrap();
        std::future::pending()
    });
    maps.start();
    drop(entries.recv().await.unwrap());
    let begun = Instant::now();
    timeout(MINUTES, maps.shutdown()).await.expect("the handler is cancelled");
    assert!(begun.elapsed() >= 30 * S && begun.elapsed() < 31 * S, "{:?}", begun.elapsed());
    assert_eq!(Arc::strong_count(&held), 1, "the handler is gone");
    assert_eq!(logs.count(&["WARN", "cancelled", "key=default/a", "resource=configmaps"]), 1);
    handler.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_returns_within_the_grace_is_not_cancelled() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).shutdown_grace(30 * S).build();
    let (done, mut returned) = mpsc::unbounded_channel();
    let handler = maps.on_event_async(move |_| {
        let done = done.clone();
        async move {
            tokio::time::sleep(20 * S).await;
            done.send(()).unwrap();
        }
    });
    maps.start();
    maps.synced().await.unwrap();
    while handler.backlog() > 0 {
        tokio::task::yield_now().await;
    }
    timeout(MINUTES, maps.shutdown()).await.expect("the handler returns");
    assert!(returned.recv().await.is_some());
    assert_eq!(logs.count(&["cancelled"]), 0);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_names_the_object_of_each_handler_that_it_waits_for() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let factory = Factory::new(client(&server));
    let (gate, (entered, mut entries)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
    let opened = Arc::clone(&gate);
    factory
        .informer::<ConfigMap>()
        .on_event_async(move |_| {
            entered.send(()).unwrap();
            let opened = Arc::clone(&opened);
            async move { opened.notified().await }
        })
        .detach();
    factory.start();
    entries.recv().await.unwrap();
    let shutdown = tokio::spawn(factory.shutdown());
    tokio::time::sleep(25 * S).await;
    assert!(!shutdown.is_finished());
    assert_eq!(logs.count(&["WARN", "does not return", "key=default/a", "resource=configmaps"]), 2);
    assert_eq!(logs.count(&["seconds=20"]), 1);
    gate.notify_one();
    timeout(MINUTES, shutdown).await.expect("the handler has returned").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_in_a_handler_is_an_error_and_no_deadlock() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    let (done, mut returned) = mpsc::unbounded_channel();
    let own = maps.clone();
    let handler = maps.on_event_async(move |_| {
        let (own, done) = (own.clone(), done.clone());
        async move {
            own.shutdown().await;
            done.send(()).unwrap();
        }
    });
    maps.start();
    timeout(MINUTES, returned.recv()).await.expect("the handler returns").unwrap();
    timeout(MINUTES, maps.shutdown()).await.expect("no task is left");
    assert_eq!(logs.count(&["ERROR", "in a handler of its own informer", "resource=configmaps"]), 1);
    drop(handler);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_of_the_factory_in_a_handler_waits_for_all_other_informers() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let factory = Arc::new(Factory::new(client(&server)));
    let (gate, (done, mut returned)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
    let opened = Arc::clone(&gate);
    let other = factory.informer::<Namespace>().on_event_async(move |_| {
        let opened = Arc::clone(&opened);
        async move { opened.notified().await }
    });
    let weak = Arc::downgrade(&factory);
    let handler = factory.informer::<ConfigMap>().on_event_async(move |_| {
        let (factory, done) = (weak.upgrade().unwrap(), done.clone());
        async move {
            factory.shutdown().await;
            done.send(()).unwrap();
        }
    });
    factory.start();
    while logs.count(&["ERROR", "in a handler of its own informer", "resource=configmaps"]) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(returned.try_recv().is_err(), "a handler of another informer has not returned");
    gate.notify_one();
    timeout(MINUTES, returned.recv()).await.expect("the handler returns").unwrap();
    timeout(MINUTES, factory.shutdown()).await.expect("no task is left");
    drop((handler, other));
}

#[tokio::test(start_paused = true)]
async fn a_detached_handler_that_is_lost_with_its_informer_is_logged() {
    let logs = Logs::record();
    let server = server().await;
    Informer::<ConfigMap>::builder(client(&server)).start().on_event(|_| ()).detach();
    assert_eq!(logs.count(&["WARN", "detached handler", "resource=configmaps"]), 1);
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    let handler = maps.on_event(|_| ());
    let synced = handler.synced();
    handler.detach();
    synced.await.unwrap();
    drop(maps);
    assert_eq!(logs.count(&["detached handler"]), 1, "it has received what there was");
}
