//! What leads to a reconcile.

use std::time::Duration;

use futures_util::stream;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_controller::{Controller, Error, Filter, Outcome, Watch};
use kube_informer::{Factory, MetadataOnly, Obj, Scope};
use serde_json::json;

use crate::support::{Reports, Running, builder, client, config_map, deployment, key, owned_map, scale, server};

fn reporting(
    reports: &Reports,
) -> impl Fn(kube_controller::Context, Obj<Deployment>) -> std::future::Ready<Result<Outcome, Error>> + use<> {
    let reports = reports.clone();
    move |context, _| {
        reports.report(context.key().name());
        std::future::ready(Ok(Outcome::Done))
    }
}

const SOON: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_change_of_the_object_or_of_a_child_leads_to_a_reconcile_of_the_owners_before_and_after() {
    let (server, reports) = (server().await, Reports::new());
    let (a, b) = (server.create(&deployment("a")).unwrap(), server.create(&deployment("b")).unwrap());
    let (factory, mut builder) = builder(client(&server));
    builder.owns::<ConfigMap>();
    let running = Running::start(builder.reconcile(reporting(&reports)));
    let mut first = reports.within(SOON).await;
    first.sort();
    assert_eq!(first, ["a", "b"]);

    scale(&server, "a", 2);
    assert_eq!(reports.within(SOON).await, ["a"]);

    server.create(&owned_map("child", &a)).unwrap();
    assert_eq!(reports.within(SOON).await, ["a"]);

    // The child changes its owner.
    let mut child = server.objects("v1", "ConfigMap").unwrap().get("child").unwrap();
    child["metadata"]["ownerReferences"] = owned_map("child", &b)["metadata"]["ownerReferences"].clone();
    server.update(&child).unwrap();
    let mut both = reports.within(SOON).await;
    both.sort();
    assert_eq!(both, ["a", "b"]);

    server.objects("v1", "ConfigMap").unwrap().delete("child").unwrap();
    assert_eq!(reports.within(SOON).await, ["b"]);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn watched_kinds_are_mapped_in_both_states_and_triggers_name_keys() {
    let (server, reports) = (server().await, Reports::new());
    for name in ["a", "b", "c"] {
        server.create(&deployment(name)).unwrap();
    }
    let (factory, mut builder) = builder(client(&server));
    let secrets = builder.watches::<MetadataOnly<Secret>, _>(|secret| secret.label("for").map(key));
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    builder.trigger(stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) }));
    let running = Running::start(builder.reconcile(reporting(&reports)));
    assert_eq!(reports.within(SOON).await.len(), 3);

    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"for": "a"}}});
    server.create(&secret).unwrap();
    assert_eq!(reports.within(SOON).await, ["a"]);
    assert_eq!(secrets.len(), 1);
    server.objects("v1", "Secret").unwrap().patch("s", &json!({"metadata": {"labels": {"for": "b"}}})).unwrap();
    assert_eq!(reports.within(SOON).await, ["a", "b"]);

    sender.send(key("c")).unwrap();
    assert_eq!(reports.within(SOON).await, ["c"]);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn filters_scopes_and_resyncs_decide_what_is_reconciled() {
    let (server, reports) = (server().await, Reports::new());
    for name in ["a", "b"] {
        let mut object = deployment(name);
        object["metadata"]["labels"] = json!({"tier": if name == "a" { "gold" } else { "tin" }});
        server.create(&object).unwrap();
    }
    let factory = Factory::new(client(&server));
    let gold =
        Watch::<Deployment>::kind().within(Scope::everything().namespaces(["default", "other"]).labels("tier=gold"));
    let mut builder = Controller::builder_with(&factory, gold.filter(Filter::generation()));
    builder.resync(Duration::from_secs(3600)).workers(1);
    let running = Running::start(builder.reconcile(reporting(&reports)));
    assert_eq!(reports.within(SOON).await, ["a"]);

    let deployments = server.objects("apps/v1", "Deployment").unwrap();
    deployments.patch_status("a", &json!({"status": {"replicas": 1}})).unwrap();
    deployments.patch("b", &json!({"spec": {"replicas": 3}})).unwrap();
    assert!(reports.within(SOON).await.is_empty());
    scale(&server, "a", 2);
    assert_eq!(reports.within(SOON).await, ["a"]);
    assert_eq!(reports.within(Duration::from_secs(7200)).await, ["a", "a"], "resyncs pass filters");
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn live_changes_overtake_the_initial_list() {
    let (server, reports) = (server().await, Reports::new());
    for nth in 0..20 {
        server.create(&deployment(&format!("old-{nth}"))).unwrap();
    }
    let (factory, mut builder) = builder(client(&server));
    builder.workers(1);
    let running = Running::start({
        let reports = reports.clone();
        builder.reconcile(move |context, _| {
            let reports = reports.clone();
            async move {
                reports.report(context.key().name());
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok::<_, Error>(Outcome::Done)
            }
        })
    });
    reports.next().await;
    server.create(&deployment("live")).unwrap();
    let order = reports.within(Duration::from_secs(60)).await;
    let at = order.iter().position(|name| name == "live").unwrap();
    assert!(at <= 1, "{order:?}");
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_without_events_for_a_key_is_read_all_the_same() {
    let (server, reports) = (server().await, Reports::new());
    let a = server.create(&deployment("a")).unwrap();
    server.create(&owned_map("child", &a)).unwrap();
    server.create(&config_map("other")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    let maps = builder.owns::<ConfigMap>();
    let reporter = reports.clone();
    let running = Running::start(builder.reconcile(move |context, _| {
        let owned: Vec<String> = context.owned(&maps).iter().map(|map| map.name().to_owned()).collect();
        let (all, one) = (context.list(&maps).len(), context.get(&maps, "other").is_some());
        reporter.report(format!("{owned:?} {all} {one}"));
        std::future::ready(Ok::<_, Error>(Outcome::Done))
    }));
    assert_eq!(reports.next().await, r#"["child"] 2 true"#);
    running.stop().await;
    factory.shutdown().await;
}
