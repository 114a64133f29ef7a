//! Read-your-writes: single cases. `read_your_writes` has the seeds.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::{Controller, ControllerBuilder, Error, Outcome, Owned, Watch};
use kube_embedded::faults::{Fault, FaultHandle, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::{Factory, Scope};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::support::{Reports, Running, deployment, scale, server};

/// A controller that creates a child if it reads none, and reports what it reads.
fn creator(server: &Server, reports: &Reports, bound: Duration) -> (Factory, Controller) {
    let (factory, mut builder) = crate::support::builder(crate::support::client(server));
    let maps = builder.owns::<ConfigMap>();
    builder.consistency_bound(bound);
    (factory, creating(builder, maps, reports))
}

fn creating(builder: ControllerBuilder<Deployment>, maps: Owned<ConfigMap>, reports: &Reports) -> Controller {
    let reporter = reports.clone();
    builder.reconcile(move |context, _| {
        let (reporter, maps) = (reporter.clone(), maps.clone());
        async move {
            let children = context.owned(&maps).len();
            reporter.report(format!("{} {children}", context.key()));
            if children == 0 {
                context.create::<ConfigMap>(&json!({"metadata": {"generateName": "child-"}})).await?;
            }
            Ok::<_, Error>(Outcome::Done)
        }
    })
}

/// Cuts all watches; those of config maps fail with these requests from now on.
async fn hide_maps(server: &Server, verbs: impl IntoIterator<Item = Verb>) -> FaultHandle {
    let hidden = server.faults().inject(Rule::new(Fault::Disconnect).verbs(verbs).resource("", "configmaps"));
    server.cut();
    sleep(Duration::from_millis(100)).await;
    hidden
}

fn created(server: &Server) -> usize {
    server.objects("v1", "ConfigMap").unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_not_reconciled_before_its_own_creation_is_in_the_cache() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, controller) = creator(&server, &reports, Duration::from_secs(3600));
    controller.synced().await.unwrap();
    let cut = hide_maps(&server, [Verb::Watch, Verb::List]).await;
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "default/a 0");
    for replicas in 2..5 {
        scale(&server, "a", replicas);
        assert!(reports.within(Duration::from_secs(10)).await.is_empty());
    }
    assert_eq!((created(&server), running.monitor.figures().consistency.waiting), (1, 1));
    cut.remove();
    assert_eq!(reports.next().await, "default/a 1");
    assert_eq!(running.monitor.figures().consistency.given_up, 0);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn past_the_bound_an_object_is_tried_again_with_backoff_and_counted() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, controller) = creator(&server, &reports, Duration::from_secs(5));
    controller.synced().await.unwrap();
    let cut = hide_maps(&server, [Verb::Watch, Verb::List]).await;
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "default/a 0");
    scale(&server, "a", 2);
    assert!(reports.within(Duration::from_secs(600)).await.is_empty());
    let given_up = running.monitor.figures().consistency.given_up;
    assert!((5..100).contains(&given_up), "{given_up}");
    cut.remove();
    assert_eq!(reports.next().await, "default/a 1");
    assert_eq!(created(&server), 1);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_response_the_cache_must_reach_the_version_of_a_consistent_list() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, controller) = creator(&server, &reports, Duration::from_secs(3600));
    controller.synced().await.unwrap();
    // The creation is executed, and its response is cut.
    let lost = Rule::new(Fault::CutAfterBytes(0)).verb(Verb::Create).resource("", "configmaps").once();
    server.faults().inject(lost);
    let cut = hide_maps(&server, [Verb::Watch]).await;
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "default/a 0");
    assert!(reports.within(Duration::from_secs(60)).await.is_empty());
    assert_eq!((created(&server), running.monitor.figures().writes.unknown), (1, 1));
    let lists = server.requests().into_iter().filter(|request| request.query == "limit=1").count();
    assert_eq!(lists, 1);
    cut.remove();
    assert_eq!(reports.next().await, "default/a 1");
    running.stop().await;
    factory.shutdown().await;
}

/// A bookmark moves the version of a cache that does not have the object that was written.
#[tokio::test(start_paused = true)]
async fn a_write_that_a_selector_hides_is_awaited_by_the_version_of_the_cache() {
    let builder = Server::builder().in_process().seed(1).bookmark_interval(Duration::from_secs(20));
    let (server, reports) = (builder.start().await.unwrap(), Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = crate::support::builder(crate::support::client(&server));
    let gold = Watch::<ConfigMap>::kind().within(Scope::everything().labels("tier=gold"));
    builder.owns_with(gold);
    let reporter = reports.clone();
    let controller = builder.reconcile(move |context, object| {
        let reporter = reporter.clone();
        async move {
            reporter.report("begun");
            if object.generation() == Some(1) {
                context.create::<ConfigMap>(&json!({"metadata": {"generateName": "tin-"}})).await?;
            }
            Ok::<_, Error>(Outcome::Done)
        }
    });
    controller.synced().await.unwrap();
    sleep(Duration::from_secs(5)).await; // a server sends the first bookmark soon
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "begun");
    scale(&server, "a", 2);
    assert!(reports.within(Duration::from_secs(5)).await.is_empty());
    assert_eq!(reports.next().await, "begun");
    assert_eq!((created(&server), running.monitor.figures().consistency.given_up), (1, 0));
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn own_writes_in_several_namespaces_are_awaited() {
    let (server, reports) = (server().await, Reports::new());
    for name in ["shop", "blog"] {
        server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
        let mut object = deployment("a");
        object["metadata"]["namespace"] = name.into();
        server.create(&object).unwrap();
    }
    let scope = || Scope::everything().namespaces(["shop", "blog"]);
    let factory = Factory::new(crate::support::client(&server));
    let mut builder = Controller::builder_with(&factory, Watch::<Deployment>::kind().within(scope()));
    let maps = builder.owns_with(Watch::<ConfigMap>::kind().within(scope()));
    builder.consistency_bound(Duration::from_secs(3600));
    let controller = creating(builder, maps, &reports);
    controller.synced().await.unwrap();
    // The response to one of the two is lost, and no watch shows either of them.
    server.faults().inject(Rule::new(Fault::CutAfterBytes(0)).verb(Verb::Create).resource("", "configmaps").once());
    let cut = hide_maps(&server, [Verb::Watch]).await;
    let running = Running::start(controller);
    let mut first = reports.within(Duration::from_secs(60)).await;
    first.sort();
    assert_eq!(first, ["blog/a 0", "shop/a 0"]);
    cut.remove();
    let mut second = reports.within(Duration::from_secs(300)).await;
    second.sort();
    second.dedup();
    assert_eq!(second, ["blog/a 1", "shop/a 1"]);
    assert_eq!(created(&server), 2);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_awaited_by_its_uid() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = crate::support::builder(crate::support::client(&server));
    let maps = builder.owns::<ConfigMap>();
    let reporter = reports.clone();
    let controller = builder.reconcile(move |context, _| {
        let (reporter, maps) = (reporter.clone(), maps.clone());
        async move {
            for map in context.owned(&maps) {
                reporter.report(format!("delete {}", map.name()));
                context.delete(&map).await?;
            }
            Ok::<_, Error>(Outcome::Done)
        }
    });
    controller.synced().await.unwrap();
    let owner = server.objects("apps/v1", "Deployment").unwrap().get("a").unwrap();
    server.create(&crate::support::owned_map("m", &owner)).unwrap();
    sleep(Duration::from_secs(1)).await;
    let cut = hide_maps(&server, [Verb::Watch, Verb::List]).await;
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "delete m");
    scale(&server, "a", 2);
    assert!(reports.within(Duration::from_secs(20)).await.is_empty(), "it is deleted once");
    assert_eq!(running.monitor.figures().attempts.success, 1, "the second attempt waits");
    cut.remove();
    running.until(|figures| figures.attempts.success == 2).await;
    assert!(reports.within(Duration::from_secs(20)).await.is_empty());
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_cancelled_during_a_write_counts_as_a_lost_response() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = crate::support::builder(crate::support::client(&server));
    let maps = builder.owns::<ConfigMap>();
    builder.timeout(Duration::from_secs(1));
    let controller = creating(builder, maps, &reports);
    controller.synced().await.unwrap();
    // Executed, but the response never arrives.
    server.faults().inject(Rule::new(Fault::StallAfterBytes(0)).verb(Verb::Create).resource("", "configmaps").once());
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "default/a 0");
    assert_eq!(reports.next().await, "default/a 1", "the child is in the cache before the next attempt");
    assert_eq!((created(&server), running.monitor.figures().timeouts), (1, 1));
    running.stop().await;
    factory.shutdown().await;
}

/// A task of the reconciler outlives its attempt, and its request is lost while another write of
/// the attempt is awaited.
#[tokio::test(start_paused = true)]
async fn a_write_that_is_lost_while_another_is_awaited_is_awaited_too() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = crate::support::builder(crate::support::client(&server));
    let maps = builder.owns::<ConfigMap>();
    builder.consistency_bound(Duration::from_secs(3600));
    let reporter = reports.clone();
    let controller = builder.reconcile(move |context, _| {
        let (reporter, maps) = (reporter.clone(), maps.clone());
        async move {
            let children = context.owned(&maps).len();
            reporter.report(children);
            if children == 0 {
                let child = json!({"metadata": {"generateName": "child-"}});
                let (other, lost) = (context.clone(), child.clone());
                tokio::spawn(async move {
                    timeout(Duration::from_secs(10), other.create::<ConfigMap>(&lost)).await.unwrap_err();
                });
                sleep(Duration::from_secs(1)).await;
                context.create::<ConfigMap>(&child).await?;
            }
            Ok::<_, Error>(Outcome::Done)
        }
    });
    controller.synced().await.unwrap();
    let cut = hide_maps(&server, [Verb::Watch]).await;
    // Executed, but the response to the task never arrives.
    server.faults().inject(Rule::new(Fault::StallAfterBytes(0)).verb(Verb::Create).resource("", "configmaps").once());
    let running = Running::start(controller);
    assert_eq!(reports.next().await, "0");
    scale(&server, "a", 2);
    assert!(reports.within(Duration::from_secs(60)).await.is_empty());
    server.forget_requests();
    cut.remove();
    assert_eq!(reports.next().await, "2");
    let lists = server.requests().into_iter().filter(|request| request.query == "limit=1").count();
    // One for the lost write, and one of the informer, which verifies a server after an outage.
    assert_eq!((lists, running.monitor.figures().consistency.given_up), (2, 0));
    running.stop().await;
    factory.shutdown().await;
}

/// Requests for deployments meet this fault from now on, and all watches are cut.
async fn cut_off_deployments(server: &Server, fault: Fault) -> FaultHandle {
    let watches = Rule::new(fault).verbs([Verb::Watch, Verb::List]).resource("apps", "deployments");
    let cut = server.faults().inject(watches);
    server.cut();
    sleep(Duration::from_secs(5)).await;
    cut
}

/// Deletes an object and its child while the requests for objects of its kind meet this fault.
async fn delete_while_cut_off(fault: Fault) {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, controller) = creator(&server, &reports, Duration::from_secs(3600));
    let running = Running::start(controller);
    assert_eq!(reports.within(Duration::from_secs(10)).await, ["default/a 0", "default/a 1"]);
    let cut = cut_off_deployments(&server, fault).await;
    server.objects("apps/v1", "Deployment").unwrap().delete("a").unwrap();
    // As the garbage collector does, and the watch of children shows it.
    let maps = server.objects("v1", "ConfigMap").unwrap();
    maps.delete(maps.list()[0]["metadata"]["name"].as_str().unwrap()).unwrap();
    assert!(reports.within(Duration::from_secs(60)).await.is_empty());
    cut.remove();
    assert!(reports.within(Duration::from_secs(120)).await.is_empty());
    let figures = running.monitor.figures().consistency;
    assert_eq!((created(&server), figures.disconnected_waits, figures.disconnected_given_up), (0, 1, 0));
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_for_an_object_that_was_deleted_while_its_watch_was_cut_off() {
    delete_while_cut_off(Fault::Disconnect).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_for_an_object_that_was_deleted_in_a_history_that_is_forgotten() {
    delete_while_cut_off(Fault::GoneAtOpen).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_watch_stays_cut_off_is_reconciled_after_the_bound() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, controller) = creator(&server, &reports, Duration::from_secs(30));
    let running = Running::start(controller);
    assert_eq!(reports.within(Duration::from_secs(10)).await, ["default/a 0", "default/a 1"]);
    let _cut = cut_off_deployments(&server, Fault::Disconnect).await;
    let maps = server.objects("v1", "ConfigMap").unwrap();
    let name = maps.list()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    maps.patch(&name, &json!({"data": {"changed": "yes"}})).unwrap();
    assert!(reports.within(Duration::from_secs(29)).await.is_empty());
    assert_eq!(reports.within(Duration::from_secs(10)).await, ["default/a 1"]);
    let figures = running.monitor.figures().consistency;
    assert_eq!((figures.disconnected_waits, figures.disconnected_given_up), (1, 1));
    // A worker that waits does not delay the end.
    maps.patch(&name, &json!({"data": {"changed": "again"}})).unwrap();
    running.until(|figures| figures.consistency.disconnected_waits == 2).await;
    running.stop().await;
    assert!(reports.within(Duration::from_secs(60)).await.is_empty());
    factory.shutdown().await;
}
