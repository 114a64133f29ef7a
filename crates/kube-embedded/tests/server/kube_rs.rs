//! Compatibility with the published kube-rs: its watcher with both strategies, its reflector and
//! its client.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::pin::pin;

use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, ResourceExt as _};
use kube_embedded::Server;
use serde_json::json;

async fn tls_client(server: &Server) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

fn in_process_client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

fn config_map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}})
}

/// Follows one change of each type, after an initial list of five.
async fn watcher_delivers_everything(server: &Server, client: Client, config: Config) {
    for i in 0..5 {
        server.create(&config_map(&format!("c{i}"))).unwrap();
    }
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut events = pin!(watcher(api, config));
    assert!(matches!(events.try_next().await.unwrap(), Some(Event::Init)));
    let mut initial = Vec::new();
    loop {
        match events.try_next().await.unwrap() {
            Some(Event::InitApply(object)) => initial.push(object.name_any()),
            Some(Event::InitDone) => break,
            other => panic!("{other:?} within the initial list"),
        }
    }
    initial.sort();
    assert_eq!(initial, ["c0", "c1", "c2", "c3", "c4"]);

    server.create(&config_map("c5")).unwrap();
    let applied = events.try_next().await.unwrap();
    assert!(matches!(&applied, Some(Event::Apply(object)) if object.name_any() == "c5"), "{applied:?}");
    server.objects("v1", "ConfigMap").unwrap().delete("c0").unwrap();
    let deleted = events.try_next().await.unwrap();
    assert!(matches!(&deleted, Some(Event::Delete(object)) if object.name_any() == "c0"), "{deleted:?}");
}

#[tokio::test]
async fn the_watcher_lists_and_watches() {
    let server = Server::builder().in_process().start().await.unwrap();
    watcher_delivers_everything(&server, in_process_client(&server), Config::default().page_size(2)).await;
    let lists = server.requests().iter().filter(|seen| seen.query.contains("limit=2")).count();
    assert_eq!(lists, 3, "five objects in pages of two");
}

#[tokio::test]
async fn the_watcher_streams_its_list() {
    let server = Server::builder().in_process().start().await.unwrap();
    watcher_delivers_everything(&server, in_process_client(&server), Config::default().streaming_lists()).await;
    assert!(server.requests().iter().all(|seen| seen.query.contains("watch=true")));
}

#[tokio::test]
async fn the_watcher_works_over_tls() {
    let server = Server::builder().tls().start().await.unwrap();
    let client = tls_client(&server).await;
    watcher_delivers_everything(&server, client, Config::default().streaming_lists()).await;
    server.shutdown().await;
}

#[tokio::test]
async fn the_reflector_holds_what_the_server_holds() {
    let server = Server::builder().in_process().start().await.unwrap();
    for i in 0..50 {
        server.create(&config_map(&format!("c{i}"))).unwrap();
    }
    let (store, writer) = reflector::store::<ConfigMap>();
    let api: Api<ConfigMap> = Api::all(in_process_client(&server));
    let mut events = pin!(watcher(api, Config::default().page_size(20)).reflect(writer));
    while store.state().len() < 50 {
        events.next().await.unwrap().unwrap();
    }
    for i in 0..25 {
        server.objects("v1", "ConfigMap").unwrap().delete(&format!("c{i}")).unwrap();
    }
    while store.state().len() > 25 {
        events.next().await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_client_reads_and_writes() {
    let server = Server::builder().start().await.unwrap();
    let client = tls_client(&server).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"generateName": "web-", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }))
    .unwrap();
    let made = pods.create(&PostParams::default(), &pod).await.unwrap();
    let name = made.name_any();
    assert!(name.starts_with("web-") && made.uid().is_some() && made.resource_version().is_some());

    let patch = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    let patched = pods.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.annotations()["a"], "b");
    let mut replaced = patched.clone();
    replaced.labels_mut().insert("tier".into(), "front".into());
    pods.replace(&name, &PostParams::default(), &replaced).await.unwrap();
    let conflict = pods.replace(&name, &PostParams::default(), &replaced).await.unwrap_err();
    assert!(matches!(conflict, kube::Error::Api(status) if status.is_conflict()));

    let selected = pods.list(&ListParams::default().labels("tier=front")).await.unwrap();
    assert_eq!(selected.items.len(), 1);
    let partial = pods.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(partial.items[0].metadata, selected.items[0].metadata);
    pods.delete(&name, &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt(&name).await.unwrap().is_none());

    assert_eq!(client.apiserver_version().await.unwrap().minor, "37");
    server.shutdown().await;
}

#[tokio::test]
async fn discovery_finds_every_kind_both_ways() {
    let server = Server::builder().in_process().start().await.unwrap();
    let client = in_process_client(&server);
    let legacy = kube::Discovery::new(client.clone()).run().await.unwrap();
    let aggregated = kube::Discovery::new(client).run_aggregated().await.unwrap();
    let names = |discovery: &kube::Discovery| {
        let mut names: Vec<_> = discovery
            .groups()
            .flat_map(kube::discovery::ApiGroup::recommended_resources)
            .map(|(resource, _)| format!("{}.{}", resource.plural, resource.api_version))
            .collect();
        names.sort();
        names
    };
    assert!(names(&legacy).len() > 55, "{:?}", names(&legacy));
    assert_eq!(names(&legacy), names(&aggregated));
}
