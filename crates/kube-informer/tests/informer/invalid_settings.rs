//! Settings with which no request can be sent, and names that mean all namespaces.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use crate::support::{client, config_map, put, server};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_embedded::Server;
use kube_informer::client::{ApiListWatch, Failure};
use kube_informer::factory::NotSynced;
use kube_informer::informer::SetNamespacesError;
use kube_informer::one_shot::Pager;
use kube_informer::{Condition, Factory, Informer, InformerBuilder, Kind, Scope, SyncError};
use serde_json::json;

const NO_NAMESPACES: [&str; 7] = ["*", "Not Valid!", "../../etc", "a/b", "default?watch=true", "%2e%2e", "-a"];

fn maps(server: &Server) -> InformerBuilder<ConfigMap> {
    Informer::builder(client(server))
}

async fn two_namespaces() -> Server {
    let server = server().await;
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).unwrap();
    put(&server, "default", "a", "1");
    server.create(&config_map("other", "b", "1")).unwrap();
    server
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_no_namespace_is_an_error_of_the_build_and_nothing_is_requested() {
    let server = server().await;
    for name in NO_NAMESPACES {
        let error = maps(&server).namespace(name).try_build().unwrap_err();
        assert!(error.to_string().starts_with(&format!("namespace: {name:?} is no name of a namespace")), "{error}");
        assert!(maps(&server).namespaces(["default", name]).try_build().is_err());
        let error = Factory::builder(client(&server)).defaults(|all| all.namespace(name)).build().unwrap_err();
        assert!(error.to_string().starts_with("defaults: namespace: "), "{error}");
        assert!(Scope::everything().namespace(name).checked().is_err());
    }
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_informer_built_all_the_same_never_runs_and_every_wait_says_why() {
    let server = server().await;
    for invalid in [
        maps(&server).namespace("*"),
        maps(&server).labels("app in ("),
        maps(&server).fields("metadata.name"),
        maps(&server).drop_fields(["spec..x"]),
    ] {
        let maps = invalid.start();
        let (handler, events) = (maps.on_event(|_| {}), maps.subscribe());
        assert!(matches!(maps.synced().await, Err(SyncError::Invalid(_))));
        assert!(matches!(handler.synced().await, Err(SyncError::Invalid(_))));
        assert!(matches!(events.synced().await, Err(SyncError::Invalid(_))));
        assert!(matches!(maps.health().condition, Condition::Stopped));
        assert!(maps.lister().is_empty());
        maps.shutdown().await;
    }
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_factory_names_the_informer_whose_scope_is_invalid() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let maps = factory.within(Scope::everything().labels("app web")).informer::<ConfigMap>();
    factory.start();
    let error = factory.synced().await.unwrap_err();
    assert!(matches!(error.missing[0].cause, NotSynced::Invalid(_)));
    assert!(error.to_string().contains("configmaps: label selector: unable to parse requirement"), "{error}");
    assert!(matches!(maps.synced().await, Err(SyncError::Invalid(_))));
    assert!(server.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_empty_name_means_all_namespaces_as_in_client_go() {
    let server = two_namespaces().await;
    let factory = Factory::builder(client(&server)).defaults(|all| all.namespace("")).build().unwrap();
    let scope = Scope::everything().namespaces(["default", ""]);
    for informer in [
        maps(&server).namespace("").build(),
        maps(&server).namespaces(["default", ""]).build(),
        factory.informer(),
        factory.within(scope).informer(),
    ] {
        informer.start();
        informer.synced().await.unwrap();
        assert_eq!(informer.lister().len(), 2);
    }
    let all =
        Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client(&server)).namespace("")).list().await.unwrap();
    assert_eq!(all.objects.len(), 2);
    assert!(server.requests().iter().all(|seen| seen.path == "/api/v1/configmaps"));
}

#[tokio::test(start_paused = true)]
async fn a_running_informer_keeps_its_namespaces_if_new_ones_are_invalid() {
    let server = two_namespaces().await;
    let maps = maps(&server).namespace("default").start();
    maps.synced().await.unwrap();
    for name in NO_NAMESPACES {
        assert!(matches!(maps.set_namespaces(["other", name]), Err(SetNamespacesError::Invalid(_))));
    }
    assert!(maps.is_synced() && maps.lister().len() == 1);
    maps.set_namespaces([""]).unwrap();
    maps.synced().await.unwrap();
    assert_eq!(maps.lister().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_part_of_a_path_goes_into_a_request_unchecked() {
    let server = server().await;
    let widget = |change: fn(&mut ApiResource)| {
        let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
        change(&mut resource);
        resource
    };
    let changes: [fn(&mut ApiResource); 5] = [
        |resource| resource.plural = "../../../api/v1/secrets".to_owned(),
        |resource| resource.plural = "widgets?fieldSelector=a".to_owned(),
        |resource| resource.plural = String::new(),
        |resource| resource.group = "..".to_owned(),
        |resource| resource.api_version = "example.com/v1#".to_owned(),
    ];
    for change in changes {
        let error = Informer::<DynamicObject>::builder_for(client(&server), widget(change)).try_build().unwrap_err();
        assert_eq!(error.setting, "resource");
        let source = ApiListWatch::new(client(&server), widget(change));
        let error = Pager::<DynamicObject>::new(source).list().await.unwrap_err();
        assert!(error.to_string().contains("of a resource"), "{error}");
    }
    for name in NO_NAMESPACES {
        let source = ApiListWatch::new(client(&server), ConfigMap::resource()).namespace(name);
        let error = Pager::<ConfigMap>::new(source).list().await.unwrap_err();
        assert!(error.to_string().contains("is no name of a namespace"), "{error}");
    }
    assert!(server.requests().is_empty());
}

/// A failure without a request is still one of the kinds of failures.
#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_built_is_a_failure_of_its_own_kind() {
    use kube_informer::client::{ListQuery, ListVersion, ListWatch};
    let server = server().await;
    let source = ApiListWatch::new(client(&server), ConfigMap::resource()).namespace("*");
    let error = source.list(ListQuery::new(ListVersion::Any)).await.err().unwrap();
    assert!(matches!(error.failure(), Failure::Request(_)));
}

/// Names, selectors and continue tokens are in the query, which is encoded as a whole.
#[tokio::test(start_paused = true)]
async fn what_goes_into_the_query_is_encoded() {
    use kube_informer::client::{ListQuery, ListVersion, ListWatch};
    use kube_informer::{FieldSelector, ObjectKey};
    let server = server().await;
    let odd = "a&watch=true#?/../b";
    let key = ObjectKey::namespaced("default", odd);
    let source = ApiListWatch::new(client(&server), ConfigMap::resource()).object(&key).labels(odd);
    let mut query = ListQuery::new(ListVersion::Any);
    query.continue_token = Some(odd.to_owned());
    drop(source.list(query).await);
    let seen = server.requests().pop().unwrap();
    assert_eq!(seen.path, "/api/v1/namespaces/default/configmaps");
    let pairs = seen.query.split('&').map(|pair| pair.split_once('=').unwrap().0).collect::<Vec<_>>();
    assert_eq!(pairs, ["continue", "labelSelector", "fieldSelector"]);
    assert!(!seen.query.contains("watch=true"), "{}", seen.query);
    assert_eq!(FieldSelector::named("a,b=c").to_string(), r"metadata.name=a\,b\=c");
}
