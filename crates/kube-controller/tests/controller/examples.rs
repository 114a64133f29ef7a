//! The examples on a server in the process. Each ends when what it demonstrates has happened.

use kube::{Client, CustomResourceExt};
use serde_json::{Value, json};

use crate::guide_manifests::{access, manifests};
use crate::{foo, janitor, website};

fn reasons(server: &kube_embedded::Server) -> Vec<(String, String)> {
    let events = server.objects("events.k8s.io/v1", "Event").unwrap().list();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut reasons: Vec<_> =
        events.iter().map(|event| (text(&event["regarding"]["name"]), text(&event["reason"]))).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

#[tokio::test(start_paused = true)]
async fn foo_keeps_a_deployment_for_each_foo_and_leaves_those_of_others_alone() {
    let cluster = foo::Cluster::embedded().await.unwrap();
    foo::run(&cluster).await.unwrap();
    let foo::Cluster::Embedded(server) = cluster else { unreachable!() };
    let deployments = server.objects("apps/v1", "Deployment").unwrap();
    let (owned, taken) = (deployments.get("example-foo").unwrap(), deployments.get("taken").unwrap());
    let owner = &owned["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Foo"), &json!(true)));
    assert_eq!(owned["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:latest");
    assert_eq!((&taken["metadata"]["ownerReferences"], &taken["spec"]["replicas"]), (&Value::Null, &json!(1)));
    let expected = [("example-foo", "Synced"), ("taken", "ErrResourceExists")];
    assert_eq!(reasons(&server), expected.map(|(name, reason)| (name.to_owned(), reason.to_owned())));
    assert!(server.watches().is_empty());
}

#[tokio::test(start_paused = true)]
async fn website_keeps_its_children_status_and_dns_entry_and_cleans_up() {
    let (cluster, dns) = (website::Cluster::embedded().await.unwrap(), website::Dns::default());
    cluster.define(&website::Website::crd()).await.unwrap();
    let manager = website::manager(&cluster.client(), dns.clone()).unwrap();
    cluster.run(manager, website::demonstrate).await.unwrap();
    let website::Cluster::Embedded(server) = cluster else { unreachable!() };
    assert!(!dns.has("blog.example.com"), "its finalizer has removed it");
    let deployment = server.objects("apps/v1", "Deployment").unwrap().get("blog").unwrap();
    let service = server.objects("v1", "Service").unwrap().get("blog").unwrap();
    for child in [&deployment, &service] {
        assert_eq!(child["metadata"]["ownerReferences"][0]["kind"], "Website");
        assert_eq!(child["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "websites"}));
    }
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "blog:2");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 80);
    assert_eq!(reasons(&server), [("blog".to_owned(), "Serving".to_owned())]);
    let lease = server.objects("coordination.k8s.io/v1", "Lease").unwrap().get("websites").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "released");
    assert!(server.watches().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_manifests_of_the_guide_are_valid_and_suffice_for_the_website() {
    let server = kube_embedded::Server::builder().in_process().seed(1).start().await.unwrap();
    let mut definition = serde_json::to_value(website::Website::crd()).unwrap();
    definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
    definition["kind"] = "CustomResourceDefinition".into();
    server.create(&definition).unwrap();
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "websites"}})).unwrap();
    let manifests = manifests(include_str!("../../docs/operator.md"));
    assert!(manifests.len() > 5);
    for object in &manifests {
        server.create(object).unwrap_or_else(|status| panic!("{}: {}", object["kind"], status.message()));
    }
    server.set_access(access(&manifests));
    let manager = website::manager(&Client::new(server.service(), "websites"), website::Dns::default()).unwrap();
    let cluster = website::Cluster::Embedded(server);
    cluster.run(manager, website::demonstrate).await.unwrap();
    let website::Cluster::Embedded(server) = cluster else { unreachable!() };
    let refused: Vec<_> = server.requests().into_iter().filter(|request| request.code == Some(403)).collect();
    assert!(refused.is_empty(), "{refused:?}");
    assert_eq!(reasons(&server), [("blog".to_owned(), "Serving".to_owned())]);
}

#[test]
fn website_has_less_than_120_lines() {
    let lines = include_str!("../../examples/website.rs").lines().count();
    assert!(lines < 120, "{lines}");
}

#[tokio::test(start_paused = true)]
async fn janitor_deletes_what_its_owner_left_and_nothing_else() {
    let cluster = janitor::Cluster::embedded().await.unwrap();
    janitor::run(&cluster).await.unwrap();
    let janitor::Cluster::Embedded(server) = cluster else { unreachable!() };
    let maps = server.objects("v1", "ConfigMap").unwrap().list();
    assert_eq!(maps.iter().map(|map| &map["metadata"]["name"]).collect::<Vec<_>>(), ["other"]);
    assert!(server.watches().is_empty());
    let is_watch = |query: &str| query.contains("watch=");
    let watches: Vec<_> = server.requests().into_iter().filter(|request| is_watch(&request.query)).collect();
    assert!(watches.len() > 30, "{}", watches.len());
}
