//! Start and end of a controller.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::{Controller, ControllerBuilder, Error, Outcome};
use kube_embedded::faults::{Fault, Rule};
use tokio::time::{Instant, sleep};

use crate::support::{Reports, Running, builder, client, deployment, pause, scale, server};

#[tokio::test(start_paused = true)]
async fn caches_are_full_before_leadership_and_nothing_is_reconciled_before_the_run() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    builder.owns::<ConfigMap>();
    let reporter = reports.clone();
    let controller = builder.reconcile(move |context, _| {
        reporter.report(context.key());
        std::future::ready(Ok::<_, Error>(Outcome::Done))
    });
    let monitor = controller.monitor();
    assert_eq!(monitor.not_synced(), ["deployments.apps", "configmaps"]);
    controller.synced().await.unwrap();
    assert!(monitor.not_synced().is_empty());
    scale(&server, "a", 2);
    assert!(reports.within(Duration::from_secs(60)).await.is_empty());
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "default/a");
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_is_refused_is_named() {
    let server = server().await;
    server.faults().inject(Rule::new(Fault::status(403)).resource("", "configmaps"));
    let (factory, mut builder) = builder(client(&server));
    builder.owns::<ConfigMap>();
    let controller = builder.reconcile(|_, _| std::future::ready(Ok::<_, Error>(Outcome::Done)));
    let error = controller.synced().await.unwrap_err().to_string();
    assert!(
        error.starts_with("the controller deployments.apps cannot run: configmaps: the cache cannot be filled"),
        "{error}"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_running_attempts_end_and_starts_no_other() {
    let (server, reports) = (server().await, Reports::new());
    for nth in 0..5 {
        server.create(&deployment(&nth.to_string())).unwrap();
    }
    let (factory, mut builder) = builder(client(&server));
    builder.workers(2);
    let running = Running::start(slow(builder, &reports));
    assert_eq!([reports.next().await, reports.next().await], ["begun", "begun"]);
    let (stopping, monitor) = (Instant::now(), running.monitor.clone());
    running.stop().await;
    assert!(stopping.elapsed() >= Duration::from_secs(9));
    assert_eq!(reports.within(Duration::from_secs(60)).await, ["ended", "ended"]);
    assert_eq!(monitor.figures().active, 0);
    factory.shutdown().await;
    assert!(server.watches().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_cancels_its_attempts() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let client = client(&server);
    let before = alive_tasks();
    let (factory, builder) = builder(client);
    let running = Running::start(slow(builder, &reports));
    assert_eq!(reports.next().await, "begun");
    running.abort();
    assert!(reports.within(Duration::from_secs(60)).await.is_empty());
    assert_eq!(running.monitor.figures().active, 0);
    factory.shutdown().await;
    drop(factory);
    pause().await;
    assert_eq!(alive_tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_controller_and_its_factory_stops_the_watches() {
    let server = server().await;
    let (factory, builder) = builder(client(&server));
    let controller = builder.reconcile(|_, _| std::future::ready(Ok::<_, Error>(Outcome::Done)));
    let monitor = controller.monitor();
    controller.synced().await.unwrap();
    assert_eq!(server.watches().len(), 1);
    drop((controller, factory));
    sleep(Duration::from_secs(1)).await;
    assert!(server.watches().is_empty(), "a monitor keeps nothing alive");
    assert!(monitor.not_synced().is_empty());
}

/// Every attempt takes ten seconds, and its begin and end are reported.
fn slow(builder: ControllerBuilder<Deployment>, reports: &Reports) -> Controller {
    let reporter = reports.clone();
    builder.reconcile(move |_, _| {
        let reporter = reporter.clone();
        async move {
            reporter.report("begun");
            sleep(Duration::from_secs(10)).await;
            reporter.report("ended");
            Ok::<_, Error>(Outcome::Done)
        }
    })
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}
