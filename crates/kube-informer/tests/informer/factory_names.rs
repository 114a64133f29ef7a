//! Informers by the names that users type.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use crate::support::{client, put, server};
use kube::Client;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::Factory;
use kube_informer::client::LookupError;
use serde_json::json;

async fn found(factory: &Factory, name: &str) -> String {
    let resource = factory.resource_named(name).await.unwrap().resource();
    format!("{} {} {}", resource.api_version, resource.kind, resource.plural)
}

#[tokio::test(start_paused = true)]
async fn a_name_as_a_person_types_it_leads_to_the_one_informer_of_the_resource() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let factory = Factory::new(client(&server));
    factory.start();
    let maps = factory.informer_named("cm").await.unwrap();
    let same = factory.informer_named("ConfigMap").await.unwrap();
    maps.synced().await.unwrap();
    assert_eq!((maps.lister().len(), same.lister().len(), server.watches().len()), (1, 1, 1));
    for name in ["deploy", "deployments.apps", "Deployment", "deployments.v1.apps"] {
        assert_eq!(found(&factory, name).await, "apps/v1 Deployment deployments");
    }
    assert_eq!(found(&factory, "po").await, "v1 Pod pods");
}

#[tokio::test(start_paused = true)]
async fn kinds_of_definitions_are_found_as_soon_as_they_are_served() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    assert!(matches!(factory.informer_named("wd").await, Err(LookupError::Unknown { .. })));
    server
        .create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }))
        .unwrap();
    for name in ["wd", "widget", "Widget.example.com", "widgets.v1.example.com", "widgets.ex"] {
        assert_eq!(found(&factory, name).await, "example.com/v1 Widget widgets");
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_knows_which_kinds_are_in_namespaces() {
    let server = server().await;
    server.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).unwrap();
    let factory = Factory::builder(client(&server)).defaults(|all| all.namespace("default")).build().unwrap();
    factory.start();
    let (nodes, maps) = (factory.informer_named("no").await.unwrap(), factory.informer_named("cm").await.unwrap());
    factory.synced().await.unwrap();
    assert_eq!(nodes.lister().len(), 1);
    assert!(server.watches().iter().any(|watch| watch.path.ends_with("/namespaces/default/configmaps")));
    drop(maps);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_name_is_answered_with_what_may_be_meant() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let text = |error: LookupError| error.to_string();
    let unknown = factory.informer_named("statefulste").await.map_err(text).unwrap_err();
    assert_eq!(unknown, "the server has no resource named \"statefulste\"; did you mean statefulsets.apps?");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_asked_is_the_cause() {
    let server = server().await;
    server.faults().inject(Rule::new(Fault::status(403)).path_prefix("/api"));
    let error = Factory::new(client(&server)).resource_named("pods").await.unwrap_err();
    let LookupError::Server(cause) = error else { panic!("{error}") };
    assert!(cause.is_forbidden() && cause.to_string().starts_with("discovering resources: "), "{cause}");
}

/// Servers before 1.26 have one discovery document per group and version.
#[tokio::test(start_paused = true)]
async fn a_server_without_aggregated_discovery_is_asked_group_by_group() {
    let server = server().await;
    // Removes aggregated discovery from the Accept header.
    let service = tower::ServiceBuilder::new()
        .map_request(|mut request: http::Request<kube::client::Body>| {
            request.headers_mut().insert(http::header::ACCEPT, http::HeaderValue::from_static("application/json"));
            request
        })
        .service(server.service());
    let factory = Factory::new(Client::new(service, "default"));
    assert_eq!(found(&factory, "sts").await, "apps/v1 StatefulSet statefulsets");
    assert_eq!(found(&factory, "po").await, "v1 Pod pods");
    assert_eq!(found(&factory, "hpa").await, "autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers");
    // A group whose server is down hides no other group.
    server.faults().inject(Rule::new(Fault::status(503)).path_prefix("/apis/apps/"));
    assert!(matches!(factory.resource_named("sts").await, Err(LookupError::Unknown { .. })));
    assert_eq!(found(&factory, "jobs").await, "batch/v1 Job jobs");
}
