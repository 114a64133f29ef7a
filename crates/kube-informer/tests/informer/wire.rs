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
use kube_informer::client::RequestedWire;
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

/// The version of a server: its minor version, refused, or never answered.
#[derive(Debug, Clone, Copy)]
enum Release {
    Minor(&'static str),
    Refused,
    Silent,
}

/// A client of a server whose version is what the cell contains at the time of the request.
fn client_of_release(server: &Server, release: &Arc<Mutex<Release>>) -> Client {
    let (inner, release) = (server.service(), Arc::clone(release));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (inner, release) = (inner.clone(), *release.lock().unwrap());
        async move {
            if request.uri().path() != "/version" {
                return inner.oneshot(request).await.map(|response| response.map(Either::Left));
            }
            let (status, body) = match release {
                Release::Minor(minor) => (200, json!({"major": "1", "minor": minor}).to_string()),
                Release::Refused => (403, String::new()),
                Release::Silent => std::future::pending().await,
            };
            Ok(http::Response::builder().status(status).body(Either::Right(Full::<Bytes>::from(body))).unwrap())
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn the_wire_that_chooses_itself_is_protobuf_where_no_field_is_lost() {
    let server = server().await;
    put(&server, "default", "m", "1");
    let releases = [
        (Release::Minor("31"), Wire::Protobuf),
        (Release::Minor("37"), Wire::Protobuf),
        (Release::Minor("37+"), Wire::Protobuf),
        (Release::Minor("38"), Wire::Json),
        (Release::Minor("110"), Wire::Json),
        (Release::Minor("next"), Wire::Json),
        (Release::Refused, Wire::Json),
        (Release::Silent, Wire::Json),
    ];
    for (release, chosen) in releases {
        for streaming in [Streaming::Preferred, Streaming::Never] {
            let settings = ReflectorSettings { streaming, ..ReflectorSettings::default() };
            let release = Arc::new(Mutex::new(release));
            let builder =
                Informer::<ConfigMap>::builder(client_of_release(&server, &release)).wire(RequestedWire::Auto);
            let maps = builder.reflector(settings).build();
            assert_eq!(maps.health().wire, None);
            maps.start();
            maps.synced().await.unwrap();
            assert_eq!(maps.health().wire, Some(chosen), "{release:?}");
            let last = put(&server, "default", "m", "2");
            maps.wait_for(last).await.unwrap();
            assert_eq!(maps.health().wire, Some(chosen), "{release:?}");
        }
    }
    // No request decides about a kind that has no protobuf.
    let (client, seen) = client(&server);
    let resource = ApiResource { kind: "Unheard".to_owned(), ..ConfigMap::resource() };
    let maps = Informer::<DynamicObject>::builder_for(client, resource).wire(RequestedWire::Auto).start();
    maps.synced().await.unwrap();
    assert_eq!(maps.health().wire, Some(Wire::Json));
    assert!(server.requests().iter().all(|request| request.path != "/version"));
    assert!(!seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_wire_is_chosen_again_for_each_watch_because_the_server_may_have_been_upgraded() {
    let server = server().await;
    put(&server, "default", "m", "1");
    let release = Arc::new(Mutex::new(Release::Minor("37")));
    let client = client_of_release(&server, &release);
    let maps = Informer::<ConfigMap>::builder(client).wire(RequestedWire::Auto).start();
    maps.synced().await.unwrap();
    assert_eq!(maps.health().wire, Some(Wire::Protobuf));
    *release.lock().unwrap() = Release::Minor("38");
    let mut health = maps.watch_health();
    // The next watch begins after at most ten minutes, and no list is due.
    health.wait_for(|health| health.wire == Some(Wire::Json)).await.unwrap();
    maps.wait_for(put(&server, "default", "m", "2")).await.unwrap();
    let map = maps.lister().get(&key("default", "m")).unwrap();
    assert_eq!(map.value_at("data.value").unwrap().as_deref(), Some("2"));
    let requests = server.requests();
    let lists = requests.iter().filter(|request| request.query.contains("sendInitialEvents=true")).count();
    assert_eq!(lists, 1, "nothing was listed again");
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
