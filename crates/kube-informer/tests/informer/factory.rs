//! One watch and one cache per resource and scope, however many callers request it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::{client, drained, key, on_each_runtime, put, server};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use kube::core::{ApiResource, DynamicObject};
use kube_informer::factory::FactoryBuildError;
use kube_informer::object::FieldPath;
use kube_informer::store::Verdict;
use kube_informer::{Factory, Informer, Keep, Kind, MetadataOnly, Obj, Scope};
use serde::Deserialize;
use serde_json::json;

/// A view of config maps that names its resource.
#[derive(Deserialize)]
struct Value {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    value: String,
}

impl Kind for Value {
    fn resource() -> ApiResource {
        ConfigMap::resource()
    }
}

fn keys<K: kube_informer::Object>(informer: &Informer<K>) -> Vec<String> {
    informer.lister().sorted().iter().map(|object| object.key().to_string()).collect()
}

/// Number of lists and watches that the server received.
fn requests(server: &kube_embedded::Server) -> usize {
    server.requests().iter().filter(|seen| seen.method == "GET").count()
}

#[test]
fn every_view_of_a_resource_shares_one_watch_and_one_cache() {
    on_each_runtime(async || {
        let server = server().await;
        put(&server, "default", "a", "1");
        let factory = Factory::new(client(&server));
        let (maps, same, values) =
            (factory.informer(), factory.clone().informer::<ConfigMap>(), factory.informer::<Value>());
        let dynamic = factory.informer_for::<DynamicObject>(ConfigMap::resource());
        let events = maps.on_event(|_: kube_informer::Event<ConfigMap>| {});
        factory.start();
        factory.synced().await.unwrap();
        drained(&events).await;
        assert_eq!((requests(&server), server.watches().len()), (1, 1), "a streaming list is its watch too");
        let key = key("default", "a");
        assert_eq!(values.lister().get(&key).unwrap().get().unwrap().data.value, "1");
        assert_eq!(dynamic.lister().get(&key).unwrap().get().unwrap().data["data"]["value"], "1");
        put(&server, "default", "b", "2");
        for informer in [maps.view::<DynamicObject>(), same.view(), values.view(), dynamic] {
            informer.wait_until(crate::support::key("default", "b"), |map| map.is_some()).await.unwrap();
            assert_eq!(keys(&informer), ["default/a", "default/b"]);
        }
        assert_eq!(requests(&server), 1);
    });
}

#[test]
fn metadata_has_a_watch_and_a_cache_of_its_own() {
    on_each_runtime(async || {
        let server = server().await;
        put(&server, "default", "a", "1");
        let factory = Factory::new(client(&server));
        let whole = factory.informer::<ConfigMap>();
        let metadata = factory.informer::<MetadataOnly<ConfigMap>>();
        let again = factory.informer_for::<MetadataOnly<DynamicObject>>(ConfigMap::resource());
        factory.start();
        factory.synced().await.unwrap();
        assert_eq!(server.watches().len(), 2);
        let (key, body) = (key("default", "a"), |object: &Obj<DynamicObject>| {
            object.json().windows(6).any(|part| part == b"\"data\"")
        });
        assert!(body(&whole.view::<DynamicObject>().lister().get(&key).unwrap()));
        assert!(!body(&metadata.view::<DynamicObject>().lister().get(&key).unwrap()));
        assert_eq!(again.lister().get(&key).unwrap().label("value"), Some("1"));
    });
}

#[test]
fn each_scope_has_a_cache_of_its_own_and_those_who_ask_for_the_same_share_it() {
    on_each_runtime(async || {
        let server = server().await;
        for name in ["one", "two"] {
            server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
            put(&server, name, "a", "in");
            put(&server, name, "b", "out");
        }
        let factory = Factory::new(client(&server));
        let all = factory.informer::<ConfigMap>();
        let scope = || Scope::everything().labels("value=in");
        let both = factory.within(scope().namespaces(["one", "two"])).informer::<ConfigMap>();
        let same = factory.within(scope().namespaces(["two", "one", "two"])).informer::<Value>();
        let one = factory.within(scope().namespace("one")).informer::<ConfigMap>();
        let named = factory.within(Scope::everything().fields("metadata.name=b")).informer::<ConfigMap>();
        factory.start();
        factory.synced().await.unwrap();
        assert_eq!(keys(&all), ["one/a", "one/b", "two/a", "two/b"]);
        assert_eq!((keys(&both), keys(&same)), (vec!["one/a".to_owned(), "two/a".to_owned()], keys(&both)));
        assert_eq!(
            (keys(&one), keys(&named)),
            (vec!["one/a".to_owned()], vec!["one/b".to_owned(), "two/b".to_owned()])
        );
        assert_eq!(server.watches().len(), 5, "both namespaces have a watch each");
    });
}

#[tokio::test(start_paused = true)]
async fn a_kind_has_its_own_settings_on_top_of_the_defaults() {
    let server = server().await;
    put(&server, "default", "a", "1");
    put(&server, "default", "b", "2");
    server.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {}})).unwrap();
    let drop_data: FieldPath = "data".parse().unwrap();
    let factory = Factory::builder(client(&server))
        .kind::<ConfigMap>(move |maps| {
            let maps = maps.drop_fields([drop_data]).labels("value!=2").keep(Keep::Plain);
            maps.transform(|map| {
                map["metadata"]["labels"]["changed"] = json!("yes");
                Verdict::Keep
            })
        })
        // Set after the kind, but still applied before its settings.
        .defaults(|all| all.resync(Duration::from_secs(60)).namespace("default"))
        .build()
        .unwrap();
    let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let mut events = maps.subscribe();
    factory.start();
    factory.synced().await.unwrap();
    assert_eq!((keys(&maps), keys(&secrets)), (vec!["default/a".to_owned()], vec!["default/s".to_owned()]));
    let map = maps.lister().get(&key("default", "a")).unwrap();
    assert_eq!((map.label("changed"), &map.get().unwrap().data), (Some("yes"), &None));
    assert!(server.requests().iter().all(|seen| seen.path.contains("/namespaces/default/")));
    assert_eq!(events.next().await.unwrap().origin(), kube_informer::Origin::Initial);
    assert_eq!(events.next().await.unwrap().origin(), kube_informer::Origin::Resync);
}

#[tokio::test(start_paused = true)]
async fn metadata_has_the_settings_of_its_kind_but_for_functions_that_look_into_bodies() {
    let server = server().await;
    for (name, value) in [("a", "1"), ("b", "2")] {
        put(&server, "default", name, value);
    }
    let factory = Factory::builder(client(&server))
        .kind::<ConfigMap>(|maps| maps.fields("metadata.name!=b").keep_if(|map| map.get().unwrap().data.is_some()))
        .build()
        .unwrap();
    let metadata = factory.informer::<MetadataOnly<ConfigMap>>();
    factory.start();
    metadata.synced().await.unwrap();
    assert_eq!(keys(&metadata), ["default/a"]);
}

#[tokio::test(start_paused = true)]
async fn conflicting_settings_of_one_resource_are_an_error_that_names_both() {
    let server = server().await;
    let seconds = Duration::from_secs;
    let conflict = Factory::builder(client(&server))
        .kind::<ConfigMap>(move |maps| maps.resync(seconds(30)))
        .kind::<Secret>(move |secrets| secrets.resync(seconds(40)))
        .kind::<Value>(move |values| values.resync(seconds(60)))
        .build()
        .unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "configmaps is given two settings of resync: 30s for k8s_openapi::v1_37::api::core::v1::config_map::ConfigMap \
         and 60s for informer::factory::Value"
    );
    let conflict = Factory::builder(client(&server))
        .kind::<ConfigMap>(|maps| maps.transform(|_| Verdict::Keep))
        .kind_for::<DynamicObject>(&ConfigMap::resource(), |maps| maps)
        .build()
        .unwrap_err();
    let FactoryBuildError::Conflict(conflict) = conflict else { panic!("{conflict}") };
    assert_eq!((conflict.setting, &*conflict.second), ("transform", "none for v1 ConfigMap"));
    assert!(conflict.first.starts_with("one for k8s_openapi"));
    let agreed = Factory::builder(client(&server))
        .kind::<ConfigMap>(move |maps| maps.resync(seconds(30)))
        .kind::<Value>(move |values| values.resync(seconds(30)))
        .kind::<MetadataOnly<ConfigMap>>(move |maps| maps.resync(seconds(90)))
        .build();
    assert!(agreed.is_ok(), "metadata is another cache");
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_a_shared_informer_stay_as_they_are() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Factory::new(client(&server)).informer::<ConfigMap>();
    maps.start();
    maps.synced().await.unwrap();
    let refused = maps.set_namespaces(["other"]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the informer of configmaps is shared, so its namespaces stay as they are: ask the factory for others"
    );
    assert!(maps.is_synced() && maps.lister().len() == 1);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_for_kinds_that_are_in_some() {
    let server = server().await;
    server.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).unwrap();
    let client = client(&server);
    let factory = Factory::builder(client)
        .defaults(|all| all.namespace("default"))
        .kind_for::<DynamicObject>(&Namespace::resource(), kube_informer::informer::InformerSettings::all_namespaces)
        .build()
        .unwrap();
    let nodes = factory.informer::<Node>();
    let metadata = factory.within(Scope::everything().namespace("x")).informer::<MetadataOnly<Node>>();
    let namespaces = factory.informer_for::<DynamicObject>(Namespace::resource());
    factory.start();
    factory.synced().await.unwrap();
    assert_eq!((keys(&nodes), keys(&metadata)), (vec!["n".to_owned()], vec!["n".to_owned()]));
    assert!(!namespaces.lister().is_empty());
}

#[tokio::test(start_paused = true)]
async fn parameters_of_ones_own_go_into_every_request() {
    let server = server().await;
    let factory = Factory::builder(client(&server))
        .sources(|source| source.tweak(|parameters| parameters.set("labelSelector", "a=b")))
        .build()
        .unwrap();
    let maps = factory.informer::<ConfigMap>();
    factory.start();
    maps.synced().await.unwrap();
    assert!(server.requests().iter().all(|seen| seen.query.contains("labelSelector=a%3Db")));
}
