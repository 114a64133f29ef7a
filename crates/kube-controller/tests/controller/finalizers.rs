//! Finalizers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_controller::{Error, Outcome};
use serde_json::{Value, json};

use crate::support::{Reports, Running, builder, client, deployment, server};

fn finalizers(object: &Value) -> &Value {
    &object["metadata"]["finalizers"]
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_there_before_the_first_reconcile_and_until_the_cleanup_is_done() {
    let (server, reports) = (server().await, Reports::new());
    let mut object = deployment("a");
    object["metadata"]["finalizers"] = json!(["example.com/other"]);
    server.create(&object).unwrap();
    server.create(&deployment("b")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    let (reporter, may_end) = (reports.clone(), Arc::new(AtomicBool::new(false)));
    let ending = Arc::clone(&may_end);
    builder.finalizer("example.com/ours", move |context, _| {
        reporter.report(format!("clean up {}", context.key().name()));
        let outcome =
            if ending.load(Ordering::Relaxed) { Outcome::Done } else { Outcome::After(Duration::from_secs(60)) };
        std::future::ready(Ok::<_, Error>(outcome))
    });
    let (reporter, reading) = (reports.clone(), Arc::clone(&server));
    let running = Running::start(builder.reconcile(move |context, object| {
        let stored = reading.objects("apps/v1", "Deployment").unwrap().get(object.name()).unwrap();
        let given = object.get().unwrap().metadata.finalizers.clone();
        assert_eq!(json!(given), *finalizers(&stored));
        reporter.report(format!("{} {}", context.key().name(), finalizers(&stored)));
        std::future::ready(Ok::<_, Error>(Outcome::Done))
    }));
    let mut first = reports.within(Duration::from_secs(1)).await;
    first.sort();
    first.dedup(); // setting a finalizer is a change, too
    assert_eq!(first, [r#"a ["example.com/other","example.com/ours"]"#, r#"b ["example.com/ours"]"#]);

    let deployments = server.objects("apps/v1", "Deployment").unwrap();
    for name in ["a", "b"] {
        deployments.delete(name).unwrap();
    }
    let mut cleaned = reports.within(Duration::from_secs(90)).await;
    cleaned.sort();
    assert_eq!(cleaned, ["clean up a", "clean up a", "clean up b", "clean up b"], "not reconciled any more");
    assert_eq!(deployments.len(), 2);

    may_end.store(true, Ordering::Relaxed);
    reports.within(Duration::from_secs(90)).await;
    assert!(deployments.get("b").is_err(), "it was the last finalizer");
    assert_eq!(*finalizers(&deployments.get("a").unwrap()), json!(["example.com/other"]));
    assert!(reports.within(Duration::from_secs(600)).await.is_empty());
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_cleanup_is_repeated_and_keeps_the_finalizer() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    let reporter = reports.clone();
    builder.finalizer("example.com/ours", move |_, _| {
        reporter.report("clean up");
        std::future::ready(Err::<Outcome, _>(Error::new("not now")))
    });
    let running = Running::start(builder.reconcile(|_, _| std::future::ready(Ok::<_, Error>(Outcome::Done))));
    running.until(|figures| figures.attempts.success > 0 && figures.queue.depth == 0).await;
    let deployments = server.objects("apps/v1", "Deployment").unwrap();
    deployments.delete("a").unwrap();
    assert!(reports.within(Duration::from_secs(60)).await.len() > 2);
    assert_eq!(*finalizers(&deployments.get("a").unwrap()), json!(["example.com/ours"]));
    running.stop().await;
    factory.shutdown().await;
}
