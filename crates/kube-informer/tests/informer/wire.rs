//! Informers over protobuf: the same caches, indexes and events as over JSON.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::support::{key, on_each_runtime, put, remove, server};
use bytes::Bytes;
use http::Request;
use http_body_util::{Either, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::core::{ApiResource, DynamicObject};
use kube_embedded::Server;
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::store::Verdict;
use kube_informer::{Informer, Keep, Kind as _, MetadataOnly, Object, Wire};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A client and the content types of its responses.
fn client(server: &Server) -> (Client, Arc<Mutex<Vec<String>>>) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let answers = Arc::clone(&seen);
    let service = ServiceExt::<Request<kube::client::Body>>::map_response(server.service(), move |response| {
        let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
        answers.lock().unwrap().push(content_type);
        response
    });
    (Client::new(service, "default"), seen)
}

fn bodies<K: Object>(informer: &Informer<K>) -> BTreeMap<String, Value> {
    let all = informer.lister().list();
    all.iter().map(|object| (object.key().to_string(), serde_json::from_slice(&object.json()).unwrap())).collect()
}

#[test]
fn caches_over_both_wires_are_the_same_all_along() {
    on_each_runtime(async || {
        let server = server().await;
        for nth in 0..5 {
            put(&server, "default", &format!("m{nth}"), "1");
        }
        for keep in [Keep::Compact, Keep::Plain, Keep::Decoded] {
            for streaming in [Streaming::Preferred, Streaming::Never] {
                let informer = |wire| {
                    let (client, seen) = client(&server);
                    let settings = ReflectorSettings { streaming, page_size: Some(2), ..ReflectorSettings::default() };
                    let maps = Informer::<ConfigMap>::builder(client).wire(wire).keep(keep).reflector(settings).start();
                    (maps, seen)
                };
                let ((ours, seen), (theirs, _)) = (informer(Wire::Protobuf), informer(Wire::Json));
                let by_value = ours.index_by_path("data.value").unwrap();
                for maps in [&ours, &theirs] {
                    maps.synced().await.unwrap();
                }
                assert_eq!(bodies(&ours), bodies(&theirs));
                put(&server, "default", "m1", "2");
                remove(&server, "default", "m2");
                let last = put(&server, "default", "m2", "anew");
                for maps in [&ours, &theirs] {
                    maps.wait_for(last.clone()).await.unwrap();
                }
                assert_eq!(bodies(&ours), bodies(&theirs));
                assert_eq!(by_value.get("anew").len(), 1);
                let map = ours.lister().get(&key("default", "m1")).unwrap();
                assert_eq!(map.get().unwrap().data.as_ref().unwrap()["value"], "2");
                let answers = seen.lock().unwrap();
                assert!(!answers.is_empty());
                assert!(
                    answers.iter().all(|answer| answer.starts_with("application/vnd.kubernetes.protobuf")),
                    "{answers:?}"
                );
            }
        }
    });
}

/// A client of a server that says it is of this minor version, or refuses to.
fn client_of_release(server: &Server, minor: Option<&'static str>) -> Client {
    let inner = server.service();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let inner = inner.clone();
        async move {
            if request.uri().path() != "/version" {
                return inner.oneshot(request).await.map(|response| response.map(Either::Left));
            }
            let version = minor.map(|minor| json!({"major": "1", "minor": minor}).to_string());
            let status = if version.is_some() { 200 } else { 403 };
            let body = Either::Right(Full::<Bytes>::from(version.unwrap_or_default()));
            Ok(http::Response::builder().status(status).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn the_wire_that_chooses_itself_is_protobuf_where_no_field_is_lost() {
    let server = server().await;
    put(&server, "default", "m", "1");
    let releases = [
        (Some("31"), Wire::Protobuf),
        (Some("37"), Wire::Protobuf),
        (Some("37+"), Wire::Protobuf),
        (Some("38"), Wire::Json),
        (Some("110"), Wire::Json),
        (Some("next"), Wire::Json),
        (None, Wire::Json),
    ];
    for (minor, chosen) in releases {
        for streaming in [Streaming::Preferred, Streaming::Never] {
            let settings = ReflectorSettings { streaming, ..ReflectorSettings::default() };
            let builder = Informer::<ConfigMap>::builder(client_of_release(&server, minor)).wire(Wire::Auto);
            let maps = builder.reflector(settings).build();
            assert_eq!(maps.health().wire, None);
            maps.start();
            maps.synced().await.unwrap();
            assert_eq!(maps.health().wire, Some(chosen), "{minor:?}");
            let last = put(&server, "default", "m", "2");
            maps.wait_for(last).await.unwrap();
            assert_eq!(maps.health().wire, Some(chosen), "{minor:?}");
        }
    }
    // No request decides about a kind that has no protobuf.
    let (client, seen) = client(&server);
    let resource = ApiResource { kind: "Unheard".to_owned(), ..ConfigMap::resource() };
    let maps = Informer::<DynamicObject>::builder_for(client, resource).wire(Wire::Auto).start();
    maps.synced().await.unwrap();
    assert_eq!(maps.health().wire, Some(Wire::Json));
    assert!(server.requests().iter().all(|request| request.path != "/version"));
    assert!(!seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_the_table_does_not_know_is_asked_for_as_json() {
    let server = server().await;
    put(&server, "default", "m", "1");
    let resource = ApiResource { kind: "Unheard".to_owned(), ..ConfigMap::resource() };
    let (client, seen) = client(&server);
    let maps = Informer::<DynamicObject>::builder_for(client, resource).wire(Wire::Protobuf).start();
    maps.synced().await.unwrap();
    assert_eq!(maps.lister().len(), 1);
    assert!(seen.lock().unwrap().iter().all(|answer| answer.starts_with("application/json")));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_comes_as_protobuf_too() {
    let server = server().await;
    put(&server, "default", "m", "1");
    let (client, seen) = client(&server);
    let maps = Informer::<MetadataOnly<ConfigMap>>::builder(client).wire(Wire::Protobuf).start();
    maps.synced().await.unwrap();
    let map = maps.lister().get(&key("default", "m")).unwrap();
    assert_eq!(map.label("value"), Some("1"));
    assert_eq!(map.get().unwrap().metadata.name.as_deref(), Some("m"));
    assert_eq!(bodies(&maps)["default/m"]["kind"], "PartialObjectMetadata");
    assert!(seen.lock().unwrap().iter().all(|answer| answer.starts_with("application/vnd.kubernetes.protobuf")));
}

#[tokio::test(start_paused = true)]
async fn fields_are_dropped_and_objects_are_filtered_and_transformed() {
    let server = server().await;
    for value in ["1", "2", "3"] {
        put(&server, "default", &format!("m{value}"), value);
    }
    let build = |wire| {
        let (client, _) = client(&server);
        let builder = Informer::<ConfigMap>::builder(client).wire(wire);
        builder.drop_managed_fields().drop_fields(["metadata.labels.value"])
    };
    let (ours, theirs) = (build(Wire::Protobuf).start(), build(Wire::Json).start());
    for maps in [&ours, &theirs] {
        maps.synced().await.unwrap();
    }
    assert_eq!(bodies(&ours), bodies(&theirs));
    let build = |wire| {
        let (client, _) = client(&server);
        Informer::<ConfigMap>::builder(client).wire(wire).keep_if(|map| map.name() != "m3").transform(|map| {
            map["data"]["more"] = json!("x");
            if map["metadata"]["name"] == "m1" { Verdict::Drop } else { Verdict::Keep }
        })
    };
    let (ours, theirs) = (build(Wire::Protobuf).start(), build(Wire::Json).start());
    for maps in [&ours, &theirs] {
        maps.synced().await.unwrap();
    }
    assert_eq!(bodies(&ours), bodies(&theirs));
    assert_eq!(bodies(&ours).len(), 1);
    assert_eq!(bodies(&ours)["default/m2"]["data"], json!({"value": "2", "more": "x"}));
}
