//! What health and freshness claim, while requests fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::{cached, client, put, server, truth};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::client::Failure;
use kube_informer::informer::Stale;
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{Condition, Health, Informer, Keep, SyncError};
use serde_json::json;
use tokio::time::Instant;

/// Every condition of the informer during that time.
async fn conditions(maps: &Informer<ConfigMap>, time: Duration) -> Vec<Condition> {
    let mut health = maps.watch_health();
    let mut seen = vec![maps.health().condition];
    let end = Instant::now() + time;
    while let Ok(changed) = tokio::time::timeout_at(end, health.changed()).await {
        changed.unwrap();
        seen.push(health.borrow_and_update().condition.clone());
    }
    seen
}

fn is_synced(condition: &Condition) -> bool {
    matches!(condition, Condition::Synced)
}

async fn synced(server: &Server) -> Informer<ConfigMap> {
    put(server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(server)).seed(1).start();
    maps.synced().await.unwrap();
    maps.watch_health().wait_for(|health| is_synced(&health.condition)).await.unwrap();
    maps
}

#[tokio::test(start_paused = true)]
async fn health_reports_the_error_and_the_time_of_the_next_attempt() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    assert!(matches!(maps.health().condition, Condition::Idle));
    let mut changes = maps.watch_health();
    maps.start();
    changes.wait_for(|health| matches!(health.condition, Condition::Synced)).await.unwrap();
    assert!(maps.health().contact_age().unwrap() < Duration::from_secs(1));
    server.refuse().await;
    server.cut();
    let cut = Instant::now();
    let waits = |health: &Health| matches!(health.condition, Condition::Degraded { next_try: Some(_), .. });
    let degraded = changes.wait_for(waits).await.unwrap();
    let Condition::Degraded { cause, since, next_try } = &degraded.condition else { unreachable!() };
    assert!(cause.is_connection_refused() || cause.to_string().contains("config"), "{cause}");
    assert!(*since <= cut && next_try.unwrap() > Instant::now());
    assert!(degraded.is_synced(), "what is in the cache can still be read");
    drop(degraded);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(maps.health().contact_age().unwrap() >= Duration::from_secs(30));
    assert!(maps.lister().fresh_within(Duration::from_secs(10)).is_err());
    assert!(maps.lister().fresh_within(Duration::from_secs(1000)).is_ok());
    let Condition::Degraded { since, .. } = maps.health().condition else { panic!("it is still unreachable") };
    assert!(since <= cut, "since the first failure");
    server.accept().await;
    changes.wait_for(|health| matches!(health.condition, Condition::Synced)).await.unwrap();
    assert_eq!(maps.lister().fresh_within(Duration::from_secs(10)).unwrap().len(), 1);
    maps.shutdown().await;
    assert!(matches!(maps.health().condition, Condition::Stopped));
}

#[tokio::test(start_paused = true)]
async fn retries_to_a_dead_server_do_not_count_as_synced() {
    let server = server().await;
    for fault in [Fault::Disconnect, Fault::status(500), Fault::Delay(Duration::from_secs(100))] {
        let maps = synced(&server).await;
        let dead = server.faults().inject(Rule::new(fault.clone()));
        server.cut();
        tokio::task::yield_now().await;
        maps.watch_health().wait_for(|health| !is_synced(&health.condition)).await.unwrap();
        let seen = conditions(&maps, Duration::from_secs(600)).await;
        assert!(dead.count() > 3 && seen.len() > 3, "{fault:?}: {}", dead.count());
        let since = |condition: &Condition| match condition {
            Condition::Degraded { since, .. } => Some(*since),
            _ => None,
        };
        assert!(seen.iter().all(|condition| since(condition) == since(&seen[0])), "{fault:?}: {seen:?}");
        dead.remove();
        maps.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_cut_it_is_degraded_until_a_probe_shows_that_nothing_was_missed() {
    let server = server().await;
    let maps = synced(&server).await;
    // The server's version is then no longer that of the cache.
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).unwrap();
    let mut health = maps.watch_health();
    health.mark_unchanged();
    let cut = Instant::now();
    server.cut();
    health.wait_for(|health| matches!(health.condition, Condition::Degraded { .. })).await.unwrap();
    health.wait_for(|health| is_synced(&health.condition)).await.unwrap();
    let after = cut.elapsed();
    assert!(after >= Duration::from_secs(10) && after <= Duration::from_secs(30), "{after:?}");
    assert!(maps.lister().fresh_within(Duration::from_secs(15)).is_ok(), "{:?}", maps.health());
    // A change on the watch shows it sooner.
    server.cut();
    health.wait_for(|health| !is_synced(&health.condition)).await.unwrap();
    let again = Instant::now();
    maps.wait_for(put(&server, "default", "b", "1")).await.unwrap();
    health.wait_for(|health| is_synced(&health.condition)).await.unwrap();
    assert!(again.elapsed() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_black_hole_is_known_long_before_the_watch_times_out() {
    let server = server().await;
    put(&server, "default", "a", "1");
    // One object and the bookmark that ends the list; then nothing more is delivered.
    server.faults().inject(Rule::new(Fault::StallAfterEvents(2)).once());
    let maps = Informer::<ConfigMap>::builder(client(&server)).seed(1).start();
    maps.synced().await.unwrap();
    let started = Instant::now();
    let black_hole = server.faults().inject(Rule::new(Fault::Delay(Duration::from_secs(100_000))));
    let mut health = maps.watch_health();
    let degraded = |health: &Health| matches!(health.condition, Condition::Degraded { .. });
    health.wait_for(degraded).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(90), "{:?}", started.elapsed());
    let seen = conditions(&maps, Duration::from_secs(1_800)).await;
    assert!(!seen.iter().any(is_synced), "{seen:?}");
    assert!(maps.lister().fresh_within(Duration::from_secs(1_000)).is_err());
    let Condition::Degraded { since, .. } = maps.health().condition else { panic!("it is degraded") };
    assert!(since - started < Duration::from_secs(90));
    black_hole.remove();
    health.wait_for(|health| is_synced(&health.condition)).await.unwrap();
    put(&server, "default", "b", "1");
}

#[tokio::test(start_paused = true)]
async fn lists_that_succeed_do_not_count_as_synced_where_watches_are_refused() {
    let server = server().await;
    let maps = synced(&server).await;
    let refused = server.faults().inject(Rule::new(Fault::status(403)).verb(Verb::Watch));
    server.cut();
    maps.watch_health().wait_for(|health| !is_synced(&health.condition)).await.unwrap();
    let seen = conditions(&maps, Duration::from_secs(300)).await;
    assert!(refused.count() > 5 && !seen.iter().any(is_synced), "{seen:?}");
    assert!(maps.lister().fresh_within(Duration::from_secs(60)).is_ok(), "lists succeed all the time");
    refused.remove();
    maps.watch_health().wait_for(|health| is_synced(&health.condition)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_list_in_progress_and_a_watch_that_has_not_caught_up_are_not_fresh() {
    let server = server().await;
    for nth in 0..5 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    let settings =
        ReflectorSettings { streaming: Streaming::Never, page_size: Some(1), ..ReflectorSettings::default() };
    let maps = Informer::<ConfigMap>::builder(client(&server)).reflector(settings).seed(1).start();
    maps.synced().await.unwrap();
    // A relist whose pages take 20 s each: bytes arrive all the time.
    let slow = Rule::new(Fault::Delay(Duration::from_secs(20))).query_given("continue");
    let slow = server.faults().inject(slow);
    let before = Instant::now();
    put(&server, "default", "m5", "1");
    server.restart();
    while slow.count() < 4 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (age, passed) = (maps.health().caught_up_age().unwrap(), before.elapsed());
        assert!(age >= passed || passed < Duration::from_secs(20), "{age:?} after {passed:?}");
    }
    assert!(maps.health().contact_age().unwrap() <= Duration::from_secs(21));
    let stale = maps.lister().fresh_within(Duration::from_secs(50)).unwrap_err();
    assert!(stale.age.unwrap() >= Duration::from_secs(60), "{stale}");
    slow.remove();
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_is_not_fresh_until_the_second_one_has_caught_up() {
    let server = server().await;
    put(&server, "default", "a", "1");
    server.faults().inject(Rule::new(Fault::StallAfterEvents(2)).once());
    let maps = Informer::<ConfigMap>::builder(client(&server)).seed(1).start();
    maps.synced().await.unwrap();
    let version = put(&server, "default", "a", "2");
    let started = Instant::now();
    let mut health = maps.watch_health();
    health.wait_for(|health| matches!(health.condition, Condition::Degraded { .. })).await.unwrap();
    assert!(maps.health().caught_up_age().unwrap() >= started.elapsed());
    maps.wait_for(version).await.unwrap();
    health.wait_for(|health| is_synced(&health.condition)).await.unwrap();
    assert!(maps.health().caught_up_age().unwrap() < Duration::from_secs(10), "{:?}", maps.health());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_an_error_of_synced_and_retried_seldom() {
    for code in [400, 405, 406, 415, 422] {
        let server = server().await;
        let rejected = server.faults().inject(Rule::new(Fault::status(code)));
        let maps = Informer::<ConfigMap>::builder(client(&server)).seed(1).build();
        let handler = maps.on_event(|_| {});
        maps.start();
        let Err(SyncError::Refused(cause)) = maps.synced().await else { panic!("{code}: it cannot have synced") };
        assert!(cause.is_rejected() && cause.code() == Some(code), "{cause}");
        assert!(matches!(handler.synced().await, Err(SyncError::Refused(_))));
        tokio::time::sleep(Duration::from_secs(1_000)).await;
        let before = rejected.count();
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        // A streaming list and a list in each attempt.
        assert!((20..=50).contains(&(rejected.count() - before)), "{code}: {} an hour", rejected.count() - before);
        rejected.remove();
        maps.watch_health().wait_for(Health::is_synced).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_selector_that_the_server_does_not_support_is_an_error_of_synced() {
    let server = server().await;
    let maps = Informer::<ConfigMap>::builder(client(&server)).fields("data.value=1").start();
    let Err(SyncError::Refused(cause)) = maps.synced().await else { panic!("it cannot have synced") };
    assert!(cause.to_string().contains("\"data.value\" is not a known field selector"), "{cause}");
}

#[tokio::test(start_paused = true)]
async fn a_history_is_verified_by_the_object_that_changed_last() {
    let server = server().await;
    let maps = synced(&server).await;
    let mut health = maps.watch_health();
    assert_eq!(maps.health().unverified_since, None, "a list was never contradicted");
    let cut = Instant::now();
    server.cut();
    let seen = health.wait_for(|health| health.unverified_since.is_some()).await.unwrap().unverified_since;
    assert!(seen.unwrap() - cut < Duration::from_secs(1));
    health.wait_for(|health| health.unverified_since.is_none()).await.unwrap();
    assert_eq!(maps.lister().len(), 1);
}

/// A restored backup in which all witnesses have changed again: the limit of guarantee 13.
#[tokio::test(start_paused = true)]
async fn a_history_that_cannot_be_verified_is_shown_until_the_next_list() {
    let server = server().await;
    let maps = synced(&server).await;
    let backup = server.backup();
    maps.wait_for(put(&server, "default", "lost", "1")).await.unwrap();
    maps.wait_for(put(&server, "default", "a", "2")).await.unwrap();
    server.refuse().await;
    server.restore(&backup);
    for value in ["3", "4", "5", "6"] {
        put(&server, "default", "a", value);
        put(&server, "default", "lost", value);
    }
    server.accept().await;
    let mut health = maps.watch_health();
    maps.wait_for(put(&server, "default", "b", "1")).await.unwrap();
    health.wait_for(|health| is_synced(&health.condition)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let now = maps.health();
    assert!(is_synced(&now.condition) && now.unverified_since.is_some(), "{now:?}");
    // The server no longer has the change that comes next, so everything is listed again.
    put(&server, "default", "c", "1");
    server.restart();
    health.wait_for(|health| health.unverified_since.is_none()).await.unwrap();
    assert_eq!(cached(&maps), truth(&server));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_adds_more_than_its_limit_is_degraded_until_a_list_shows_the_same() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let settings = ReflectorSettings { max_watch_bytes: 20_000, ..ReflectorSettings::default() };
    let maps = Informer::<ConfigMap>::builder(client(&server)).reflector(settings).keep(Keep::Plain).seed(1).start();
    maps.synced().await.unwrap();
    let mut health = maps.watch_health();
    for nth in 0..100 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    let degraded = health.wait_for(|health| matches!(health.condition, Condition::Degraded { .. })).await.unwrap();
    let Condition::Degraded { cause, .. } = &degraded.condition else { unreachable!() };
    assert_eq!(*cause.failure(), Failure::WatchTooLarge { limit: 20_000 });
    drop(degraded);
    maps.wait_for(put(&server, "default", "last", "1")).await.unwrap();
    health.wait_for(|health| is_synced(&health.condition)).await.unwrap();
    assert_eq!(cached(&maps), truth(&server));
    let lists = server.requests().len();
    for nth in 0..1_000 {
        maps.wait_for(put(&server, "default", "last", &nth.to_string())).await.unwrap();
    }
    assert_eq!(server.requests().len(), lists, "changes of what there is add nothing");
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_was_never_filled_is_stale() {
    let server = server().await;
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    assert_eq!(maps.lister().fresh_within(Duration::MAX).unwrap_err(), Stale { age: None });
}
