//! Informers of kinds that are not defined yet, or no longer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::{EventRecorder, client, drained, server};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_embedded::access::{Access, Rule};
use kube_embedded::faults::{Fault, Rule as FaultRule};
use kube_embedded::{Server, Verb};
use kube_informer::factory::NotSynced;
use kube_informer::informer::WhenRefused;
use kube_informer::{Factory, Informer, ObjectKey};
use serde_json::json;
use tokio::time::Instant;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const HOUR: Duration = Duration::from_secs(3600);

fn define(server: &Server, plural: &str, kind: &str) {
    server
        .create(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }))
        .unwrap();
}

fn undefine(server: &Server, plural: &str) {
    let all = server.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    all.delete(&format!("{plural}.example.com")).unwrap();
}

fn make(server: &Server, kind: &str, name: &str) {
    let object =
        json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}});
    server.create(&object).unwrap();
}

fn waiting_factory(server: &Server) -> Factory {
    Factory::builder(client(server)).defaults(|all| all.when_refused(WhenRefused::Wait)).build().unwrap()
}

fn informer(factory: &Factory, kind: &str) -> Informer<DynamicObject> {
    factory.informer_for(ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", kind)))
}

fn watches_of(server: &Server, path: &str) -> usize {
    server.watches().iter().filter(|watch| watch.path == path).count()
}

/// Like [`watches_of`], without the second watch that probes for some seconds when the first was
/// idle for long.
async fn lasting_watches_of(server: &Server, path: &str) -> usize {
    let now = watches_of(server, path);
    tokio::time::sleep(Duration::from_secs(60)).await;
    now.min(watches_of(server, path))
}

/// Number of requests for this path since the last call.
fn requests_for(server: &Server, path: &str) -> usize {
    let count = server.requests().iter().filter(|seen| seen.path.ends_with(path)).count();
    server.forget_requests();
    count
}

/// Time until an informer is synced.
async fn time_to_sync(informer: &Informer<DynamicObject>) -> Duration {
    let began = Instant::now();
    informer.synced().await.unwrap();
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_kind_that_does_not_exist_yet_starts_when_its_definition_appears() {
    let server = server().await;
    let factory = waiting_factory(&server);
    let (widgets, gadgets) = (informer(&factory, "Widget"), informer(&factory, "Gadget"));
    factory.start();
    tokio::time::sleep(HOUR).await;
    assert_eq!(factory.missing().len(), 2);
    assert_eq!(lasting_watches_of(&server, DEFINITIONS).await, 1, "one for both");
    requests_for(&server, "/widgets");
    tokio::time::sleep(HOUR).await;
    assert!(requests_for(&server, "/widgets") <= 13, "it rests");
    define(&server, "widgets", "Widget");
    make(&server, "Widget", "a");
    assert!(time_to_sync(&widgets).await < Duration::from_secs(5));
    assert_eq!(widgets.lister().len(), 1);
    assert_eq!(lasting_watches_of(&server, DEFINITIONS).await, 1, "gadgets are still waited for");
    define(&server, "gadgets", "Gadget");
    assert!(time_to_sync(&gadgets).await < Duration::from_secs(5));
    factory.synced().await.unwrap();
    while watches_of(&server, DEFINITIONS) > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.watches().len(), 2, "no caller waits for a definition any more");
}

#[tokio::test(start_paused = true)]
async fn definitions_are_watched_only_while_one_is_waited_for() {
    let server = server().await;
    define(&server, "widgets", "Widget");
    let factory = waiting_factory(&server);
    // A group without a dot cannot be that of a CustomResourceDefinition.
    let unknown: Informer<DynamicObject> =
        factory.informer_for(ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v9", "Deployment")));
    let widgets = informer(&factory, "Widget");
    factory.start();
    widgets.synced().await.unwrap();
    tokio::time::sleep(HOUR).await;
    assert!(!unknown.is_synced());
    assert_eq!(requests_for(&server, "/customresourcedefinitions"), 0);
}

#[tokio::test(start_paused = true)]
async fn where_definitions_may_not_be_watched_a_kind_is_found_by_asking_again() {
    let server = server().await;
    let refused =
        Rule::new().verbs([Verb::List, Verb::Watch]).resource("apiextensions.k8s.io", "customresourcedefinitions");
    server.set_access(Access::open().deny(refused));
    let factory = waiting_factory(&server);
    let widgets = informer(&factory, "Widget");
    factory.start();
    tokio::time::sleep(HOUR).await;
    assert_eq!(watches_of(&server, DEFINITIONS), 0);
    let requests = requests_for(&server, "/customresourcedefinitions");
    assert!((2..=14).contains(&requests), "now and then, and not in between: {requests}");
    define(&server, "widgets", "Widget");
    let passed = time_to_sync(&widgets).await;
    assert!(passed > Duration::from_secs(1) && passed < Duration::from_secs(35), "{passed:?}");
}

#[tokio::test(start_paused = true)]
async fn without_waiting_set_a_kind_that_does_not_exist_is_why_not_everything_is_synced() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let widgets = informer(&factory, "Widget");
    factory.start();
    let error = factory.synced().await.unwrap_err();
    assert!(matches!(&error.missing[0].cause, NotSynced::Refused(cause) if cause.is_not_found()));
    assert!(error.to_string().starts_with("not every cache can be filled: widgets.example.com: listing"), "{error}");
    define(&server, "widgets", "Widget");
    widgets.watch_health().wait_for(kube_informer::Health::is_synced).await.unwrap();
    factory.synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_informer_rests_when_its_definition_goes_and_goes_on_when_it_comes_back() {
    let server = server().await;
    define(&server, "widgets", "Widget");
    make(&server, "Widget", "a");
    let factory = Factory::new(client(&server));
    let widgets = informer(&factory, "Widget");
    let recorder = EventRecorder::default();
    let handler = widgets.on_event(recorder.handler());
    factory.start();
    handler.synced().await.unwrap();
    undefine(&server, "widgets");
    tokio::time::sleep(HOUR).await;
    drained(&handler).await;
    assert_eq!((widgets.lister().len(), recorder.objects().len()), (0, 0));
    requests_for(&server, "/widgets");
    tokio::time::sleep(HOUR).await;
    assert!(requests_for(&server, "/widgets") <= 13, "it rests");
    define(&server, "widgets", "Widget");
    make(&server, "Widget", "b");
    let came = Instant::now();
    let key = ObjectKey::namespaced("default", "b");
    widgets.wait_until(key, |widget| widget.is_some()).await.unwrap();
    assert!(came.elapsed() < Duration::from_secs(5), "{:?}", came.elapsed());
    drained(&handler).await;
    assert_eq!(recorder.objects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn objects_that_went_with_their_definition_while_unwatched_are_deleted() {
    let server = server().await;
    define(&server, "widgets", "Widget");
    make(&server, "Widget", "a");
    let factory = Factory::new(client(&server));
    let widgets = informer(&factory, "Widget");
    let recorder = EventRecorder::default();
    let handler = widgets.on_event(recorder.handler());
    factory.start();
    handler.synced().await.unwrap();
    recorder.take();
    server.faults().inject(FaultRule::new(Fault::Disconnect));
    server.cut();
    tokio::time::sleep(Duration::from_secs(60)).await;
    undefine(&server, "widgets");
    server.faults().clear();
    widgets.wait_until(ObjectKey::namespaced("default", "a"), |widget| widget.is_none()).await.unwrap();
    drained(&handler).await;
    assert_eq!(recorder.take(), ["- default/a Missed (Relist)"]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_the_watch_of_definitions_too() {
    let server = server().await;
    let client = client(&server);
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let factory = Factory::new(client.clone());
    let widgets = informer(&factory, "Widget");
    factory.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(watches_of(&server, DEFINITIONS), 1);
    factory.shutdown().await;
    assert_eq!((tasks.num_alive_tasks(), server.watches().len()), (before, 0));
    drop(widgets);
    // Dropping the last user stops it too.
    let factory = Factory::new(client.clone());
    let widgets = informer(&factory, "Widget");
    factory.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(watches_of(&server, DEFINITIONS), 1);
    drop(widgets);
    factory.shutdown().await;
    assert_eq!((tasks.num_alive_tasks(), server.watches().len()), (before, 0));
}
