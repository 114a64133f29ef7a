//! Waiting for a state of one object, with and without a cache.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{client, key, put, remove, server};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::client::{ApiListWatch, ServerError};
use kube_informer::one_shot::until;
use kube_informer::{Informer, Obj};

type Found = Result<Option<Obj<ConfigMap>>, ServerError>;

/// Waits until the map `default/a` has this value; records the states passed to the condition.
fn until_value(
    server: &Server,
    value: Option<&'static str>,
) -> (impl Future<Output = Found> + Send + use<>, Arc<Mutex<Vec<String>>>) {
    let observed: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&observed);
    let wanted = key("default", "a");
    let source = ApiListWatch::of::<ConfigMap>(client(server)).object(&wanted);
    let found = until(source, wanted, move |map: Option<&Obj<ConfigMap>>| {
        let now = map.and_then(|map| map.label("value"));
        notes.lock().unwrap().push(now.unwrap_or("none").to_owned());
        now == value
    });
    (found, observed)
}

/// Waits until the server has an open watch.
async fn watched(server: &Server) {
    while server.watches().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_there_already_needs_no_watch() {
    let server = server().await;
    put(&server, "default", "a", "1");
    server.forget_requests();
    let (found, _) = until_value(&server, Some("1"));
    assert_eq!(found.await.unwrap().unwrap().name(), "a");
    assert_eq!(server.request_count(), 1);
    let seen = &server.requests()[0];
    assert_eq!(seen.path, "/api/v1/namespaces/default/configmaps");
    assert!(seen.query.contains("fieldSelector=metadata.name%3Da"), "{}", seen.query);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_comes_later_is_found_by_one_watch() {
    let server = server().await;
    put(&server, "default", "b", "3");
    let (found, observed) = until_value(&server, Some("3"));
    let found = tokio::spawn(found);
    watched(&server).await;
    for value in ["1", "2", "3"] {
        put(&server, "default", "a", value);
    }
    assert_eq!(found.await.unwrap().unwrap().unwrap().label("value"), Some("3"));
    assert_eq!(*observed.lock().unwrap(), ["none", "1", "2", "3"]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_object_can_be_waited_for() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let (found, _) = until_value(&server, None);
    let found = tokio::spawn(found);
    watched(&server).await;
    remove(&server, "default", "a");
    assert!(found.await.unwrap().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_and_an_expired_version_lose_no_state_and_ask_about_none_twice() {
    for fault in [Fault::CutAfterEvents(1), Fault::GoneAfterEvents(1), Fault::GoneAtOpen, Fault::status(503)] {
        let server = server().await;
        put(&server, "default", "a", "1");
        server.faults().inject(Rule::new(fault.clone()).verb(Verb::Watch).times(3));
        let (found, observed) = until_value(&server, Some("4"));
        let found = tokio::spawn(found);
        while observed.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        for value in ["2", "3", "4"] {
            put(&server, "default", "a", value);
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        assert!(found.await.unwrap().unwrap().is_some(), "{fault:?}");
        assert_eq!(*observed.lock().unwrap(), ["1", "2", "3", "4"], "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_fail_for_now_are_repeated_and_refusals_are_not() {
    let server = server().await;
    put(&server, "default", "a", "1");
    server.faults().inject(Rule::new(Fault::status(503)).verb(Verb::List).times(3));
    assert!(until_value(&server, Some("1")).0.await.unwrap().is_some());

    server.faults().inject(Rule::new(Fault::status(403)).verb(Verb::List));
    assert!(until_value(&server, Some("1")).0.await.unwrap_err().is_forbidden());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_leaves_no_watch() {
    let server = server().await;
    let (found, _) = until_value(&server, Some("1"));
    assert!(tokio::time::timeout(Duration::from_secs(3_600), found).await.is_err());
    while !server.watches().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_cache_the_same_wait_asks_nothing_of_the_server() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    let requests = server.request_count();
    let found = maps.wait_until(key("default", "a"), |map| map.is_some_and(|map| map.label("value") == Some("2")));
    put(&server, "default", "a", "2");
    assert_eq!(found.await.unwrap().unwrap().label("value"), Some("2"));
    let gone = maps.wait_until(key("default", "a"), |map| map.is_none());
    remove(&server, "default", "a");
    assert!(gone.await.unwrap().is_none());
    assert_eq!(server.request_count(), requests);
}
