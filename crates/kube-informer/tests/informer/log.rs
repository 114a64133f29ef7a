//! What an informer logs. Informers have names here, because those of other tests in this process
//! may be of the same objects, which would be a warning.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::logs::Logs;
use crate::support::{client, put, server};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::Server;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::Informer;
use tracing::Level;

fn assert_contains(line: &str, parts: &[&str]) {
    for part in parts {
        assert!(line.contains(part), "{part:?} is missing in {line}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_one_warning_that_says_what_to_do() {
    let log = Logs::record_from(Level::INFO);
    let server = server().await;
    let forbidden = server.faults().inject(Rule::new(Fault::status(403)));
    let maps = Informer::<ConfigMap>::builder(client(&server)).namespace("web").start();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(forbidden.count() > 100);
    let warnings = log.take(Level::WARN);
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    let parts = [
        "resource=\"configmaps\"",
        "scope=\"namespace web\"",
        "server=",
        "listing configmaps in namespace web: the server answered 403 Forbidden",
        "grant the client the verbs list and watch on configmaps",
        "kubectl auth can-i list configmaps -n web",
    ];
    assert_contains(&warnings[0], &parts);
    forbidden.remove();
    maps.watch_health().wait_for(kube_informer::Health::is_synced).await.unwrap();
    tokio::task::yield_now().await;
    let recovered = log.take(Level::INFO);
    assert_eq!(recovered.len(), 1, "{recovered:#?}");
    assert_contains(&recovered[0], &["resource=\"configmaps\"", "scope=\"namespace web\"", "work again", "after="]);
}

#[tokio::test(start_paused = true)]
async fn each_new_cause_is_a_warning() {
    let log = Logs::record_from(Level::INFO);
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).name("causes").start();
    maps.synced().await.unwrap();
    assert_eq!((log.take(Level::WARN), log.take(Level::INFO)), (vec![], vec![]));
    for (fault, error, advice) in [
        (Fault::status(500), "500 InternalError", "look into the log of the server"),
        (Fault::status(401), "401 Unauthorized", "check the client's token or certificate"),
        (Fault::Disconnect, "no connection", "check that the server is up and reachable"),
    ] {
        let fault = server.faults().inject(Rule::new(fault));
        server.cut();
        tokio::time::sleep(Duration::from_secs(120)).await;
        let warnings = log.take(Level::WARN);
        assert!(warnings.len() <= 2, "at most the cut, and then this: {warnings:#?}");
        assert_contains(warnings.last().unwrap(), &["resource=\"configmaps\" scope=\"all\"", error, advice]);
        fault.remove();
    }
    put(&server, "default", "a", "2");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(log.take(Level::INFO).last().map(|line| line.contains("work again")), Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_cut_every_minute_is_a_warning_every_five() {
    let log = Logs::record_from(Level::INFO);
    let server = server().await;
    let maps = Informer::<ConfigMap>::builder(client(&server)).name("cuts").start();
    maps.synced().await.unwrap();
    for _ in 0..60 {
        server.cut();
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let warnings = log.take(Level::WARN);
    assert!((1..=13).contains(&warnings.len()), "{warnings:#?}");
}

/// With a client of `kube_informer::client`. No credentials are in the log.
#[tokio::test]
async fn a_warning_names_the_server() {
    let log = Logs::record_from(Level::INFO);
    let server = Server::builder().start().await.unwrap();
    let url: http::Uri = server.url().replace("http://", "http://me:secret@").parse().unwrap();
    let mut config = kube::Config::new(url);
    config.default_namespace = "default".to_owned();
    server.faults().inject(Rule::new(Fault::status(403)));
    let maps = Informer::<ConfigMap>::builder(kube_informer::client(config).unwrap()).name("server").start();
    maps.synced().await.unwrap_err();
    tokio::task::yield_now().await;
    let warnings = log.take(Level::WARN);
    assert_contains(&warnings[0], &[&format!("server={:?}", server.url())]);
    assert!(!warnings[0].contains("secret"), "{}", warnings[0]);
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_informer_of_the_same_objects_is_a_warning_that_names_the_factory() {
    let log = Logs::record();
    let server = server().await;
    let build = || Informer::<ConfigMap>::builder(client(&server)).labels("of=this-test").build();
    let first = build();
    assert_eq!(log.take(Level::WARN), [""; 0]);
    let second = build();
    let warnings = log.take(Level::WARN);
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    assert_contains(&warnings[0], &["resource=configmaps", "scope=where of=this-test", "kube_informer::Factory"]);
    drop((first, second));
    drop(build());
    assert_eq!(log.take(Level::WARN), [""; 0]);
}
