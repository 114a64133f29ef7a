//! A reflector on a server that restarts, refuses or drops connections, or is restored to an older
//! state.

use std::time::Duration;

use crate::rig::{Rig, client, map, server};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ApiResource;
use kube_informer::MetadataOnly;
use kube_informer::client::ApiListWatch;
use kube_informer::reflector::{ReflectorSettings, ReflectorState, Streaming};
use kube_informer::store::{History, WatchScope};
use serde_json::json;

fn paged() -> ReflectorSettings {
    ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() }
}

#[tokio::test(start_paused = true)]
async fn one_streaming_list_is_all_it_takes() {
    let mut rig = Rig::start(server().await, ReflectorSettings::default());
    rig.put("a");
    rig.converges().await;
    rig.put("b");
    rig.change("a", 1);
    rig.converges().await;
    rig.delete("a");
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests(), ["stream"]);
    let query = &rig.requests()[0].query;
    assert!(query.starts_with("watch=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds="), "{query}");
    assert!(rig.errors.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_any_version_and_a_watch_from_there_are_all_it_takes_without_streaming() {
    let server = server().await;
    for nth in 0..20 {
        server.create(&map(&format!("m{nth}"))).unwrap();
    }
    let mut rig = Rig::synced(server, paged()).await;
    rig.change("m3", 1);
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests(), ["list", "watch"]);
    assert_eq!(
        rig.requests()[0].query,
        "limit=500&resourceVersion=0",
        "any version means any version, with a limit too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_day_of_quiet_costs_watch_renewals_and_a_few_probes() {
    let mut rig = Rig::synced(server().await, ReflectorSettings::default()).await;
    rig.put("a");
    rig.converges().await;
    rig.server.forget_requests();
    rig.pass(24 * 3_600).await;
    let kinds = rig.kinds_of_requests();
    let count = |kind| kinds.iter().filter(|known| **known == kind).count();
    assert_eq!((count("stream"), count("list")), (0, 0), "nothing is listed again");
    assert!(count("probe") <= 24 * 12 && count("probe") > 24 * 4, "{} probes", count("probe"));
    assert!(count("watch") <= 24 * 12 + count("probe") + 10, "{} watches", count("watch"));
    assert!(rig.errors.lock().unwrap().is_empty());
    rig.change("a", 1);
    rig.converges().await;
}

#[tokio::test(start_paused = true)]
async fn a_cut_connection_is_made_again_without_a_list() {
    let mut rig = Rig::synced(server().await, ReflectorSettings::default()).await;
    rig.server.cut();
    rig.put("a");
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests()[..2], ["stream", "watch"]);
    assert_eq!(rig.relists(), [History::Continues]);
    assert_eq!(rig.errors.lock().unwrap().len(), 1, "a failure on an established stream is reported too");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_list_is_made_anew_and_misses_nothing() {
    for settings in [ReflectorSettings::default(), paged()] {
        let mut rig = Rig::synced(server().await, settings).await;
        for name in ["a", "b", "c"] {
            rig.put(name);
        }
        rig.converges().await;
        rig.server.refuse().await;
        rig.server.cut();
        rig.delete("a");
        rig.change("b", 1);
        rig.put("d");
        rig.server.restart();
        rig.server.accept().await;
        rig.converges().await;
        assert_eq!(rig.counters().relists.expired, 1);
        assert_eq!(rig.relists().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_is_detected_and_reported() {
    for settings in [ReflectorSettings::default(), paged()] {
        let mut rig = Rig::synced(server().await, settings).await;
        rig.put("a");
        rig.put("b");
        rig.converges().await;
        let backup = rig.server.backup();
        rig.change("a", 1);
        rig.delete("b");
        rig.put("c");
        rig.converges().await;
        let before = rig.status.borrow().version.clone().unwrap();
        rig.server.restore(&backup);
        rig.converges().await;
        assert_eq!(rig.relists().last(), Some(&History::WentBack));
        assert_eq!(rig.counters().relists.went_back, 1);
        rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
        assert!(rig.status.borrow().version.clone().unwrap() < before);
        rig.change("a", 2);
        rig.converges().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_that_others_write_to_is_noticed_too() {
    let mut rig = Rig::synced(server().await, ReflectorSettings::default()).await;
    rig.put("a");
    rig.converges().await;
    let backup = rig.server.backup();
    rig.change("a", 1);
    rig.put("b");
    rig.converges().await;
    rig.server.restore(&backup);
    rig.put("c");
    rig.converges().await;
    assert_eq!(rig.relists().last(), Some(&History::WentBack));
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_waited_out_with_fewer_and_fewer_tries() {
    let mut rig = Rig::synced(server().await, ReflectorSettings::default()).await;
    rig.put("a");
    rig.converges().await;
    rig.server.refuse().await;
    rig.server.cut();
    rig.delete("a");
    rig.pass(3_600).await;
    let tries = rig.errors.lock().unwrap().len();
    assert!((120..=250).contains(&tries), "{tries} tries in an hour");
    let ReflectorState::Waiting { cause, until } = rig.status.borrow().state.clone() else {
        panic!("{:?}", rig.status.borrow())
    };
    assert!(cause.is_connection_refused());
    assert!(until > tokio::time::Instant::now());
    rig.server.accept().await;
    rig.put("b");
    rig.converges().await;
    assert!(rig.counters().relists.expired <= 1, "at most one list: the server remembers five minutes");
}

#[tokio::test(start_paused = true)]
async fn a_new_kind_that_is_not_ready_is_asked_for_again() {
    let server = server().await;
    server
        .create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.io"},
            "spec": {
                "group": "example.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
            },
        }))
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let resource = ApiResource {
        group: "example.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.io/v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    };
    let source = ApiListWatch::new(client(&server), resource);
    let mut rig = Rig::start_on(server, ReflectorSettings::default(), WatchScope::Everything, source);
    rig.until("listed", |rig| rig.ended() == 1).await;
    rig.server.create(&json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}})).unwrap();
    rig.until("received", |rig| rig.cache().len() == 1).await;
    let errors = rig.errors.lock().unwrap();
    assert!(errors.iter().all(kube_informer::client::ServerError::is_too_many_requests), "{errors:?}");
    assert_eq!(errors.len(), 1, "once, and then the server was ready");
}

#[tokio::test(start_paused = true)]
async fn one_namespace_and_its_labels_can_be_all_there_is() {
    let server = server().await;
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).unwrap();
    let labelled = |name: &str, namespace: &str, app: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}}})
    };
    server.create(&labelled("a", "other", "web")).unwrap();
    server.create(&labelled("b", "other", "db")).unwrap();
    server.create(&labelled("c", "default", "web")).unwrap();
    let source = ApiListWatch::of::<ConfigMap>(client(&server)).namespace("other").labels("app=web");
    let mut rig = Rig::start_on(server, paged(), WatchScope::Namespace("other".into()), source);
    rig.until("listed", |rig| rig.ended() == 1).await;
    assert_eq!(rig.cache().keys().collect::<Vec<_>>(), ["other/a"]);
    rig.server.create(&labelled("d", "other", "web")).unwrap();
    rig.until("received", |rig| rig.cache().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_reflected() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    let source = ApiListWatch::of::<MetadataOnly<ConfigMap>>(client(&server));
    let mut rig = Rig::start_on(server, ReflectorSettings::default(), WatchScope::Everything, source);
    rig.converges().await;
    rig.change("a", 1);
    rig.converges().await;
    assert!(rig.errors.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn pages_make_one_list() {
    let server = server().await;
    for nth in 0..25 {
        server.create(&map(&format!("m{nth:02}"))).unwrap();
    }
    let settings = ReflectorSettings { page_size: Some(10), ..paged() };
    // A list at any version ignores the limit, so the first list requests the latest.
    let source =
        ApiListWatch::of::<ConfigMap>(client(&server)).tweak(|parameters| parameters.remove("resourceVersion"));
    let mut rig = Rig::start_on(server, settings, WatchScope::Everything, source);
    rig.until("listed", |rig| rig.ended() == 1).await;
    assert_eq!(rig.cache(), rig.truth());
    assert!(rig.counters().lists >= 3, "{:?}", rig.counters());
    assert_eq!(rig.relists().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_it_leaves_no_connection_and_says_so() {
    let mut rig = Rig::synced(server().await, ReflectorSettings::default()).await;
    assert_eq!(rig.server.watches().len(), 1);
    rig.stop().await;
    assert!(matches!(rig.status.borrow().state, ReflectorState::Stopped));
    assert!(rig.server.watches().is_empty());
}
