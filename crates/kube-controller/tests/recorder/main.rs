//! The event recorder on the embedded server, on paused time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube_controller::Leadership;
use kube_controller::leadership::{Clock, LeaderElection};
use kube_controller::recorder::{NewEvent, Recorder};
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

async fn server() -> Server {
    Server::builder().in_process().seed(1).start().await.unwrap()
}

fn start(server: &Server) -> Recorder {
    let client = Client::new(server.service(), "default");
    let recorder = Recorder::new("example.com/test");
    recorder.start(&Leadership::unelected().writer(&client));
    recorder
}

fn object(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        namespace: Some("default".to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

fn events(server: &Server) -> Vec<Value> {
    server.objects("events.k8s.io/v1", "Event").unwrap().list()
}

fn served() -> NewEvent {
    NewEvent::normal("Served", "Serve", "all is well")
}

fn of_events(fault: Fault) -> Rule {
    Rule::new(fault).resource("events.k8s.io", "events")
}

#[tokio::test(start_paused = true)]
async fn what_a_recorder_has_queued_that_is_never_started_counts_as_dropped() {
    let recorder = Recorder::new("example.com/test");
    for _ in 0..3 {
        recorder.record(&object("a"), served());
    }
    recorder.shutdown().await;
    recorder.record(&object("a"), served());
    let figures = recorder.figures();
    assert_eq!((figures.recorded, figures.dropped), (4, 4));
}

#[tokio::test(start_paused = true)]
async fn an_event_has_all_that_the_server_asks_for() {
    let server = server().await;
    let recorder = start(&server);
    recorder.record(&object("a"), served().related(object("b")));
    recorder.shutdown().await;
    let event = &events(&server)[0];
    let fields = ["type", "reason", "action", "note", "reportingController"].map(|field| event[field].clone());
    assert_eq!(json!(fields), json!(["Normal", "Served", "Serve", "all is well", "example.com/test"]));
    assert_eq!((&event["regarding"]["name"], &event["related"]["name"]), (&json!("a"), &json!("b")));
    assert_eq!(recorder.figures().published, 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_object_has_its_events_in_the_default_namespace() {
    let server = server().await;
    let recorder = start(&server);
    let node = ObjectReference { namespace: None, kind: Some("Node".to_owned()), ..object("n1") };
    recorder.record(&node, served());
    recorder.shutdown().await;
    assert_eq!(events(&server)[0]["metadata"]["namespace"], "default");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_one_series_whose_end_is_written() {
    let server = server().await;
    let recorder = start(&server);
    for _ in 0..50 {
        recorder.record(&object("a"), served());
        sleep(SECOND).await;
    }
    assert_eq!((events(&server).len(), &events(&server)[0]["series"]["count"]), (1, &json!(2)));
    sleep(420 * SECOND).await;
    assert_eq!(events(&server)[0]["series"]["count"], 50);
    assert_eq!(recorder.figures().published, 3);
    // Afterwards it is another event.
    recorder.record(&object("a"), served());
    recorder.record(&object("a"), served());
    recorder.record(&object("a"), served());
    recorder.shutdown().await;
    let counts: Vec<_> = events(&server).iter().map(|event| event["series"]["count"].clone()).collect();
    assert_eq!((counts.len(), counts.contains(&json!(50)), counts.contains(&json!(3))), (2, true, true));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_has_expired_is_created_again_with_its_series() {
    let server = server().await;
    let recorder = start(&server);
    recorder.record(&object("a"), served());
    sleep(SECOND).await;
    server.objects("events.k8s.io/v1", "Event").unwrap().delete_all().unwrap();
    recorder.record(&object("a"), served());
    recorder.shutdown().await;
    assert_eq!(events(&server)[0]["series"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_and_drops_are_counted() {
    let server = server().await;
    let recorder = start(&server);
    server.faults().inject(of_events(Fault::Delay(3600 * SECOND)));
    let started = Instant::now();
    for nth in 0..1_500 {
        recorder.record(&object(&nth.to_string()), served());
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    let figures = recorder.figures();
    assert_eq!((figures.recorded, figures.dropped), (1_500, 500));
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_is_sent_12_times_10_seconds_apart() {
    let server = server().await;
    let recorder = start(&server);
    let failures = server.faults().inject(of_events(Fault::status(500)));
    let started = Instant::now();
    recorder.record(&object("a"), served());
    while recorder.figures().failed == 0 {
        sleep(SECOND).await;
    }
    assert_eq!(failures.count(), 12);
    assert!(started.elapsed() >= 100 * SECOND && started.elapsed() <= 111 * SECOND, "{:?}", started.elapsed());
    failures.remove();
    recorder.record(&object("b"), served());
    recorder.shutdown().await;
    assert_eq!(events(&server).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_sent_once_and_holds_up_no_other() {
    let server = server().await;
    let recorder = start(&server);
    let refused = server.faults().inject(of_events(Fault::status(403)).verb(Verb::Create).once());
    recorder.record(&object("a"), served());
    recorder.record(&object("b"), served());
    recorder.shutdown().await;
    let figures = recorder.figures();
    assert_eq!((refused.count(), figures.failed, figures.published), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_during_an_outage_ends_soon() {
    let server = server().await;
    let recorder = start(&server);
    server.faults().inject(of_events(Fault::status(503)));
    for nth in 0..100 {
        recorder.record(&object(&nth.to_string()), served());
    }
    let started = Instant::now();
    recorder.shutdown().await;
    assert!(started.elapsed() < SECOND);
    recorder.shutdown().await; // twice does no harm
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_is_published_when_the_last_recorder_is_dropped() {
    let server = server().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let recorder = start(&server);
    let other = recorder.clone();
    recorder.record(&object("a"), served());
    drop(recorder);
    drop(other);
    server.until(|server| events(server).len() == 1).await;
    // The task has ended with it.
    sleep(SECOND).await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_after_the_loss_of_leadership() {
    let server = server().await;
    let client = Client::new(server.service(), "default");
    let builder = LeaderElection::builder(client.clone(), "default", "lease").clock(Clock::tokio());
    let mut election = builder.build().unwrap();
    let recorder = Recorder::new("test");
    recorder.start(&election.acquire().await.writer(&client));
    recorder.record(&object("a"), served());
    drop(election);
    recorder.shutdown().await;
    assert_eq!((events(&server).len(), recorder.figures().failed), (0, 1));
}
