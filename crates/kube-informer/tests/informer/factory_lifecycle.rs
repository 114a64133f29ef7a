//! Starting, waiting and stopping: all informers of a factory, or one of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::{EventRecorder, client, key, put, server};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_embedded::Server;
use kube_embedded::Verb;
use kube_embedded::access::{Access, Rule, User};
use kube_embedded::faults::{Fault, Rule as FaultRule};
use kube_informer::factory::NotSynced;
use kube_informer::informer::WhenRefused;
use kube_informer::{Condition, Factory, SyncError};

/// Number of tasks of the runtime.
fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Waits until at most this many tasks are left.
async fn only(left: usize) {
    for _ in 0..10_000 {
        if tasks() <= left {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} tasks are left, not {left}", tasks());
}

/// Allows everything except listing and watching this resource.
fn refuse(server: &Server, resource: &str) {
    let refused = Rule::new().verbs([Verb::List, Verb::Watch]).resource("", resource);
    server.set_access(Access::open().deny(refused));
}

#[tokio::test(start_paused = true)]
async fn nothing_happens_before_the_start_and_later_informers_start_when_asked_for() {
    let server = server().await;
    // The client has its own task.
    let client = client(&server);
    let before = tasks();
    let factory = Factory::new(client.clone());
    let maps = factory.informer::<ConfigMap>();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(matches!(maps.health().condition, Condition::Idle));
    assert_eq!((server.request_count(), factory.missing()[0].to_string()), (0, "configmaps: not started".to_owned()));
    factory.start();
    factory.start();
    factory.synced().await.unwrap();
    let secrets = factory.informer::<Secret>();
    factory.start();
    factory.synced().await.unwrap();
    let pods = factory.informer::<Pod>();
    pods.synced().await.unwrap();
    assert!(secrets.is_synced() && factory.missing().is_empty());
    assert_eq!(server.watches().len(), 3);
    factory.shutdown().await;
    assert_eq!((tasks(), server.watches().len()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_covers_informers_that_are_started_after_it_began() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let _maps = factory.informer::<ConfigMap>();
    let waiting = tokio::spawn(factory.synced());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!waiting.is_finished());
    factory.start();
    waiting.await.unwrap().unwrap();
    Factory::new(client(&server)).synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_informer_stops_when_its_last_user_drops_it_and_starts_again_when_asked_for_again() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let factory = Factory::new(client(&server));
    let secrets = factory.informer::<Secret>();
    factory.start();
    secrets.synced().await.unwrap();
    let one = tasks();
    let lister = factory.informer::<ConfigMap>().lister();
    let maps = factory.informer::<ConfigMap>();
    maps.synced().await.unwrap();
    assert_eq!((server.watches().len(), lister.len()), (2, 1));
    drop(maps);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.watches().len(), 2, "a lister is a user");
    drop(lister);
    only(one).await;
    assert_eq!(server.watches().len(), 1, "secrets go on");
    put(&server, "default", "b", "1");
    let maps = factory.informer::<ConfigMap>();
    maps.synced().await.unwrap();
    assert_eq!((server.watches().len(), maps.lister().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_one_user_has_shut_down_is_made_anew_for_the_next() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let factory = Factory::new(client(&server));
    factory.start();
    let maps = factory.informer::<ConfigMap>();
    maps.synced().await.unwrap();
    maps.shutdown().await;
    let again = factory.informer::<ConfigMap>();
    again.synced().await.unwrap();
    assert!(matches!(maps.synced().await, Err(SyncError::Stopped)));
    assert_eq!((server.watches().len(), again.lister().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn synced_names_what_is_missing_and_why() {
    let server = server().await;
    put(&server, "default", "a", "1");
    refuse(&server, "secrets");
    server.faults().inject(FaultRule::new(Fault::Disconnect).resource("", "pods"));
    let factory = Factory::new(client(&server));
    let (maps, secrets, pods) =
        (factory.informer::<ConfigMap>(), factory.informer::<Secret>(), factory.informer::<Pod>());
    factory.start();
    let error = factory.synced().await.unwrap_err();
    assert!(maps.is_synced() && !secrets.is_synced() && !pods.is_synced());
    assert_eq!(
        error.to_string(),
        "not every cache can be filled: pods: listing pods: no connection: ServiceError: connection reset; retrying; \
         secrets: listing secrets: the server answered 403 Forbidden: secrets is forbidden: User \"system:admin\" cannot \
         list resource \"secrets\" in API group \"\" at the cluster scope"
    );
    assert!(matches!(error.missing[1].cause, NotSynced::Refused(_)));
    // Informers keep trying, and a later wait succeeds.
    server.set_access(Access::open());
    server.faults().clear();
    secrets.watch_health().wait_for(kube_informer::Health::is_synced).await.unwrap();
    factory.synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_factory_can_be_set_to_wait_for_permissions() {
    let server = server().await;
    refuse(&server, "secrets");
    let factory =
        Factory::builder(client(&server)).defaults(|all| all.when_refused(WhenRefused::Wait)).build().unwrap();
    let _secrets = factory.informer::<Secret>();
    factory.start();
    let waiting = tokio::spawn(factory.synced());
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!waiting.is_finished() && matches!(factory.missing()[0].cause, NotSynced::Failing(_)));
    server.set_access(Access::open().token("t", User::new("u")));
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unused_informer_need_not_be_waited_for() {
    let server = server().await;
    refuse(&server, "secrets");
    let factory =
        Factory::builder(client(&server)).defaults(|all| all.when_refused(WhenRefused::Wait)).build().unwrap();
    let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    factory.start();
    let waiting = tokio::spawn(factory.synced());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(maps.is_synced() && !waiting.is_finished());
    drop(secrets);
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_no_task_and_no_connection_of_any_informer() {
    let server = server().await;
    put(&server, "default", "a", "1");
    // The client has its own task.
    let client = client(&server);
    let before = tasks();
    let factory = Factory::new(client.clone());
    let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    factory.start();
    factory.synced().await.unwrap();
    let (handler, mut stream) = (maps.on_event(|_| {}), maps.subscribe());
    handler.synced().await.unwrap();
    assert!(stream.next().await.is_some());
    // Its tasks are still ending when the factory shuts down.
    drop(secrets);
    let shutdown = factory.shutdown();
    tokio::join!(shutdown, factory.shutdown());
    assert_eq!((tasks(), server.watches().len()), (before, 0));
    assert!(stream.next().await.is_none());
    assert_eq!(maps.lister().len(), 1, "what is in a cache can still be read");
    // A shutdown is final.
    factory.start();
    assert!(matches!(factory.informer::<Pod>().synced().await, Err(SyncError::Stopped)));
    assert!(matches!(factory.synced().await.unwrap_err().missing[0].cause, NotSynced::Stopped));
    assert_eq!((tasks(), server.watches().len()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn informers_outlive_the_factory() {
    let server = server().await;
    let maps = {
        let factory = Factory::new(client(&server));
        factory.start();
        factory.informer::<ConfigMap>()
    };
    maps.synced().await.unwrap();
    put(&server, "default", "a", "1");
    maps.wait_until(key("default", "a"), |map| map.is_some()).await.unwrap();
}

/// A long-running program creates and drops many informers; none may leave state behind.
#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_informers_that_are_gone() {
    let server = server().await;
    // The client has its own task.
    let client = client(&server);
    let before = tasks();
    let factory = Factory::new(client.clone());
    factory.start();
    for nth in 0..50 {
        let scope = kube_informer::Scope::everything().labels(format!("nth={nth}"));
        factory.within(scope).informer::<ConfigMap>().synced().await.unwrap();
    }
    only(before).await;
    let _maps = factory.informer::<ConfigMap>();
    assert_eq!(format!("{factory:?}").matches("configmaps").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_factory_keeps_an_informer_with_a_detached_handler_until_it_is_shut_down() {
    let server = server().await;
    // The client has its own task.
    let client = client(&server);
    let before = tasks();
    let factory = Factory::new(client.clone());
    let recorder = EventRecorder::default();
    factory.informer::<ConfigMap>().on_event(recorder.handler()).detach();
    factory.start();
    factory.synced().await.unwrap();
    put(&server, "default", "a", "1");
    while recorder.objects().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.watches().len(), 1);
    factory.shutdown().await;
    assert_eq!((tasks(), server.watches().len()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_is_dropped_lets_go_of_informers_with_detached_handlers() {
    let server = server().await;
    // The client has its own task.
    let client = client(&server);
    let before = tasks();
    let factory = Factory::new(client.clone());
    factory.start();
    factory.informer::<ConfigMap>().on_event(|_| ()).detach();
    factory.synced().await.unwrap();
    drop(factory);
    only(before).await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_with_a_detached_handler_can_be_shut_down_and_asked_for_again() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let factory = Factory::new(client(&server));
    let held = std::sync::Arc::new(());
    let captured = std::sync::Arc::clone(&held);
    factory.informer::<ConfigMap>().on_event(move |_| drop(std::sync::Arc::clone(&captured))).detach();
    factory.start();
    factory.synced().await.unwrap();
    factory.informer::<ConfigMap>().shutdown().await;
    assert_eq!(std::sync::Arc::strong_count(&held), 1, "the handler is gone");
    let again = factory.informer::<ConfigMap>();
    again.synced().await.unwrap();
    assert_eq!(again.lister().len(), 1);
}
