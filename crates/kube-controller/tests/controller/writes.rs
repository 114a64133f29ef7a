//! Writes through the context.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_controller::{Error, Outcome, Patch};
use serde_json::json;

use crate::support::{Reports, Running, builder, client, config_map, deployment, key, scale, server};

#[tokio::test(start_paused = true)]
async fn an_apply_is_left_out_if_it_changes_nothing_and_sent_if_it_does() {
    let server = server().await;
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    builder.name("maps").labels([("app.kubernetes.io/managed-by", "maps")]);
    builder.owns::<ConfigMap>();
    let running = Running::start(builder.reconcile(move |context, object| async move {
        let replicas = object.get()?.spec.replicas.unwrap_or_default();
        let map =
            json!({"metadata": {"name": context.key().name()}, "data": {"replicas": replicas.min(3).to_string()}});
        context.apply::<ConfigMap>(&map).await?;
        context.apply_status(&json!({"observedGeneration": object.generation(), "replicas": replicas.min(3)})).await?;
        Ok::<_, Error>(Outcome::Done)
    }));
    let quiet = || tokio::time::sleep(Duration::from_secs(5));
    quiet().await;
    let maps = server.objects("v1", "ConfigMap").unwrap();
    let map = maps.get("a").unwrap();
    assert_eq!(map["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "maps"}));
    assert_eq!(map["metadata"]["ownerReferences"][0]["kind"], "Deployment");
    assert_eq!(map["metadata"]["managedFields"][0]["manager"], "maps");
    let writes = || running.monitor.figures().writes;
    assert_eq!(writes().applied, 2, "the map and the status");
    assert!(writes().applies_left_out >= 2);

    // Another manager takes a field: ours is applied again.
    maps.patch("a", &json!({"data": {"replicas": "99"}})).unwrap();
    quiet().await;
    assert_eq!(maps.get("a").unwrap()["data"]["replicas"], "1");
    assert_eq!(writes().applied, 3);

    // Another manager adds a field: that is its own.
    maps.patch("a", &json!({"data": {"more": "x"}})).unwrap();
    quiet().await;
    assert_eq!(writes().applied, 3);

    scale(&server, "a", 2);
    quiet().await;
    assert_eq!(maps.get("a").unwrap()["data"]["replicas"], "2");
    assert_eq!(writes().applied, 5);
    assert_eq!((writes().refused, writes().unknown), (0, 0));
    running.stop().await;
    factory.shutdown().await;
}

/// What an attempt has applied is in no cache yet.
#[tokio::test(start_paused = true)]
async fn an_apply_that_undoes_one_of_the_same_attempt_is_sent() {
    let server = server().await;
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    builder.owns::<ConfigMap>();
    // Each apply is a change, which leads to another attempt.
    static FIRST: AtomicBool = AtomicBool::new(true);
    let running = Running::start(builder.reconcile(|context, _| async move {
        if !FIRST.swap(false, Ordering::Relaxed) {
            return Ok(Outcome::Done);
        }
        for value in ["1", "2", "1"] {
            let map = json!({"metadata": {"name": "a"}, "data": {"value": value}});
            context.apply::<ConfigMap>(&map).await?;
        }
        Ok::<_, Error>(Outcome::Done)
    }));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server.objects("v1", "ConfigMap").unwrap().get("a").unwrap()["data"]["value"], "1");
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn each_write_has_its_preconditions_and_errors_name_what_failed() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    server.create(&config_map("old")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    let maps = builder.watches::<ConfigMap, _>(|_| []);
    let (reporter, changing) = (reports.clone(), Arc::clone(&server));
    let running = Running::start(builder.reconcile(move |context, _| {
        let (reporter, changing, maps) = (reporter.clone(), changing.clone(), maps.clone());
        async move {
            let old = context.get(&maps, "old").unwrap();
            let objects = changing.objects("v1", "ConfigMap").unwrap();
            objects.patch("old", &json!({"data": {"changed": "yes"}})).unwrap();
            let error = context.kind::<ConfigMap>().delete_unchanged(&old).await.unwrap_err();
            assert!(error.is_conflict(), "{error}");
            objects.delete("old").unwrap();
            objects.create(&config_map("old")).unwrap();
            let error = context.delete(&old).await.unwrap_err();
            assert!(error.is_conflict(), "another object has the name: {error}");
            objects.delete("old").unwrap();
            context.delete(&old).await?; // gone is gone

            let secret = context.create::<Secret>(&json!({"metadata": {"generateName": "s-", "namespace": "default"}})).await?;
            assert!(secret.name().starts_with("s-"));
            context.patch::<Secret>(secret.key(), &Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}))).await?;
            let again = context.create::<Secret>(&json!({"metadata": {"name": secret.name()}})).await.unwrap_err();
            assert!(again.is_already_exists(), "{again}");
            let invalid = context.apply::<Secret>(&json!({"metadata": {"name": "../x"}})).await.unwrap_err();
            assert_eq!(
                invalid.to_string(),
                r#"apply of secrets default/../x: it was not sent: the name "../x" has characters that it must not have"#
            );
            let unknown = context.patch::<Secret>(&key("none"), &Patch::Merge(json!({}))).await.unwrap_err();
            assert!(unknown.is_not_found() && !unknown.is_unknown(), "{unknown}");
            reporter.report("through");
            Ok::<_, Error>(Outcome::Done)
        }
    }));
    assert_eq!(reports.next().await, "through");
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_context_writes_nothing_after_its_attempt() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    builder.timeout(Duration::from_secs(1));
    let reporter = reports.clone();
    let running = Running::start(builder.reconcile(move |context, _| {
        let reporter = reporter.clone();
        async move {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                let late = json!({"metadata": {"name": "late", "namespace": "default"}});
                reporter.report(context.create::<Secret>(&late).await.unwrap_err());
            });
            Ok::<_, Error>(Outcome::Done)
        }
    }));
    assert_eq!(
        reports.next().await,
        "create of secrets default/late: it was not sent: the attempt of its context has ended"
    );
    running.stop().await;
    factory.shutdown().await;
}
