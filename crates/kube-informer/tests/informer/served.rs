//! Resources as discovery shows them, and resources that are served later or in another version.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::{EventRecorder, client, drained, server};
use k8s_openapi::api::core::v1::Node;
use kube::core::{ApiResource, DynamicObject};
use kube_embedded::Server;
use kube_informer::client::{ApiListWatch, Served};
use kube_informer::one_shot::Pager;
use kube_informer::{Condition, Factory, Informer, Kind, Obj, ObjectKey};
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3600);

/// A definition of widgets with versions, of which the first is stored.
fn definition(scope: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(nth, name)| {
            let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
            json!({"name": name, "served": true, "storage": nth == 0, "schema": schema})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": scope, "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
        },
    })
}

fn undefine(server: &Server) {
    server
        .objects("apiextensions.k8s.io/v1", "CustomResourceDefinition")
        .unwrap()
        .delete("widgets.example.com")
        .unwrap();
}

fn make(server: &Server, version: &str, name: &str) {
    let metadata = json!({"name": name, "namespace": "default"});
    let api_version = format!("example.com/{version}");
    server.create(&json!({"apiVersion": api_version, "kind": "Widget", "metadata": metadata})).unwrap();
}

fn is_absent(health: &kube_informer::Health) -> bool {
    matches!(health.condition, Condition::Absent { .. })
}

/// A projection that does not say that its objects are in no namespace.
#[derive(serde::Deserialize)]
struct NodeSpec {}

impl Kind for NodeSpec {
    fn resource() -> ApiResource {
        Node::resource()
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_in_no_namespace_are_requested_in_none_however_their_kind_is_named() {
    let server = server().await;
    server.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).unwrap();
    server.create(&definition("Cluster", &["v1"])).unwrap();
    server.create(&json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})).unwrap();
    let factory = Factory::builder(client(&server)).defaults(|all| all.namespace("default")).build().unwrap();
    let served = factory.resources().await.unwrap();
    let (node, widget) = (served.named("no").unwrap(), served.named("widgets").unwrap());
    let separate = || Informer::<DynamicObject>::builder_for(client(&server), widget).namespace("default");
    let changed = separate().build();
    changed.set_namespaces(["other"]).unwrap();
    let informers = [
        factory.informer::<NodeSpec>().view(),
        factory.informer_for::<DynamicObject>(Node::resource()),
        factory.informer_for(node),
        factory.informer_for(widget),
        factory.informer_for(factory.resource_named("widgets").await.unwrap()),
        factory.informer_when_served("widgets.example.com"),
        Informer::<Node>::builder(client(&server)).namespace("default").build().view(),
        Informer::<NodeSpec>::builder(client(&server)).namespaces(["default", "other"]).build().view(),
        Informer::<DynamicObject>::builder_for(client(&server), Node::resource()).namespace("default").build(),
        separate().build(),
        changed,
    ];
    for informer in informers {
        informer.start();
        informer.synced().await.unwrap();
        assert_eq!(informer.lister().len(), 1);
    }
    let source = ApiListWatch::new(client(&server), widget).namespace("default");
    assert_eq!(Pager::<DynamicObject>::new(source).list().await.unwrap().objects.len(), 1);
    let gets = server.requests().into_iter().filter(|seen| seen.method == "GET");
    let within: Vec<String> = gets.map(|seen| seen.path).filter(|path| path.contains("/namespaces/")).collect();
    assert_eq!(within, [] as [&str; 0]);
}

#[tokio::test(start_paused = true)]
async fn each_resource_is_preferred_in_one_version_in_the_servers_order() {
    let server = server().await;
    server.create(&definition("Namespaced", &["v1alpha1", "v1", "v1beta1"])).unwrap();
    let served = Factory::new(client(&server)).resources().await.unwrap();
    let named = |served: &Served| served.full_name();
    let mut names: Vec<String> = served.iter().map(named).collect();
    assert!(names.iter().filter(|name| *name == "widgets.example.com").count() == 3);
    let preferred: Vec<&Served> = served.preferred().collect();
    names.sort();
    names.dedup();
    let mut once: Vec<String> = preferred.iter().map(|served| named(served)).collect();
    once.sort();
    assert_eq!(once, names);
    let version = |name: &str| preferred.iter().find(|served| served.full_name() == name).unwrap().version();
    assert_eq!((version("widgets.example.com"), version("horizontalpodautoscalers.autoscaling")), ("v1", "v2"));
    assert!(served.iter().filter(|one| preferred.contains(one)).eq(preferred.iter().copied()), "in the same order");
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_resource_that_is_not_served_is_absent_until_it_is_and_again_afterwards() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let widgets = factory.informer_when_served("widgets.example.com");
    let same = factory.informer_when_served("widgets.example.com");
    let recorder = EventRecorder::default();
    let handler = widgets.on_event(recorder.handler());
    factory.start();
    tokio::time::sleep(HOUR).await;
    assert!(is_absent(&widgets.health()), "{:?}", widgets.health());
    assert_eq!(factory.missing().len(), 1);
    assert!(factory.missing()[0].to_string().contains("the server does not serve it"), "{:?}", factory.missing());
    server.create(&definition("Namespaced", &["v1"])).unwrap();
    make(&server, "v1", "a");
    let began = tokio::time::Instant::now();
    factory.synced().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    handler.synced().await.unwrap();
    assert_eq!((same.lister().len(), recorder.objects().len()), (1, 1));
    undefine(&server);
    widgets.wait_until(ObjectKey::namespaced("default", "a"), |widget| widget.is_none()).await.unwrap();
    drained(&handler).await;
    assert!(recorder.objects().is_empty());
    widgets.watch_health().wait_for(is_absent).await.unwrap();
    server.create(&definition("Namespaced", &["v2"])).unwrap();
    make(&server, "v2", "b");
    widgets.wait_until(ObjectKey::namespaced("default", "b"), |widget| widget.is_some()).await.unwrap();
    assert!(matches!(widgets.health().condition, Condition::Synced));
}

/// Replaces the versions of the definition by one patch.
fn redefine(server: &Server, versions: &Value) {
    let patch = json!({"spec": {"versions": versions}});
    let definitions = server.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    definitions.patch("widgets.example.com", &patch).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_version_is_switched_in_place_is_followed() {
    let server = server().await;
    server.create(&definition("Namespaced", &["v1"])).unwrap();
    make(&server, "v1", "a");
    let factory = Factory::new(client(&server));
    let widgets = factory.informer_when_served("widgets.example.com");
    let recorder = EventRecorder::default();
    let handler = widgets.on_event(recorder.handler());
    factory.start();
    factory.synced().await.unwrap();
    // The same states are delivered again, as they are in the other version.
    recorder.server_may_go_back();
    // The old version is still stored, and no longer served.
    let mut versions = definition("Namespaced", &["v1", "v2"])["spec"]["versions"].take();
    versions[0]["served"] = false.into();
    redefine(&server, &versions);
    make(&server, "v2", "b");
    let key = |name| ObjectKey::namespaced("default", name);
    let is_v2 = |widget: Option<&Obj<DynamicObject>>| {
        widget.is_some_and(|widget| widget.value_at("apiVersion").unwrap().as_deref() == Some("example.com/v2"))
    };
    let began = tokio::time::Instant::now();
    for name in ["a", "b"] {
        let seen = tokio::time::timeout(HOUR, widgets.wait_until(key(name), is_v2)).await;
        seen.unwrap_or_else(|_| panic!("{name}: {:?}", widgets.health())).unwrap();
    }
    assert!(began.elapsed() < Duration::from_secs(900), "{:?}: the watch of v1 has ended by then", began.elapsed());
    make(&server, "v2", "c");
    widgets.wait_until(key("c"), |widget| widget.is_some()).await.unwrap();
    drained(&handler).await;
    assert_eq!(recorder.objects().len(), 3);
    let lines = recorder.take();
    assert!(!lines.iter().any(|line| line.starts_with('-')), "no object was deleted meanwhile: {lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_followed_resource_is_listed_in_every_namespace_of_the_factory() {
    let server = server().await;
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).unwrap();
    server.create(&definition("Namespaced", &["v1"])).unwrap();
    make(&server, "v1", "a");
    let namespaces = ["default", "other"];
    let factory = Factory::builder(client(&server)).defaults(move |all| all.namespaces(namespaces)).build().unwrap();
    let widgets = factory.informer_when_served("widgets.example.com");
    factory.start();
    factory.synced().await.unwrap();
    assert_eq!(widgets.lister().len(), 1);
    let watches: Vec<String> = server.watches().into_iter().map(|watch| watch.path).collect();
    for namespace in namespaces {
        assert!(watches.contains(&format!("/apis/example.com/v1/namespaces/{namespace}/widgets")), "{watches:?}");
    }
}
