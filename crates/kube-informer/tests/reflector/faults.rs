//! A reflector under each fault that the embedded server can inject, on paused time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use crate::rig::{Rig, map, server};
use bytes::Bytes;
use kube_embedded::Verb;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::client::Failure;
use kube_informer::reflector::{ReflectorSettings, ReflectorState, Streaming};
use kube_informer::store::History;

fn paged() -> ReflectorSettings {
    ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() }
}

/// Applies to watches that are not streaming lists.
fn on_watch(fault: Fault) -> Rule {
    Rule::new(fault).verb(Verb::Watch).when(|request| request.query("sendInitialEvents").is_none())
}

fn on_stream(fault: Fault) -> Rule {
    Rule::new(fault).query("sendInitialEvents", "true")
}

fn on_list(fault: Fault) -> Rule {
    Rule::new(fault).verb(Verb::List).when(|request| request.query("limit") != Some("1"))
}

fn every_fault() -> Vec<Fault> {
    let garbage = |bytes: &'static [u8]| Bytes::from_static(bytes);
    vec![
        Fault::Disconnect,
        Fault::status(401),
        Fault::status(403),
        Fault::status(404),
        Fault::status(410),
        Fault::status(429).retry_after(2),
        Fault::status(500),
        Fault::status(503),
        Fault::status(504),
        Fault::TooManyRequests,
        Fault::GoneAtOpen,
        Fault::Delay(Duration::from_secs(20)),
        Fault::Delay(Duration::from_secs(200)),
        Fault::StallAfterBytes(0),
        Fault::StallAfterBytes(100),
        Fault::CutAfterBytes(0),
        Fault::CutAfterBytes(100),
        Fault::StallAfterEvents(0),
        Fault::StallAfterEvents(1),
        Fault::CutAfterEvents(1),
        Fault::CutWithinEvent(0),
        Fault::CutWithinEvent(1),
        Fault::EndAfterEvents(0),
        Fault::EndAfterEvents(1),
        Fault::GarbageAfterEvents(0, garbage(b"\x00\xffno frame\n")),
        Fault::GarbageAfterEvents(1, garbage(b"no line break ")),
        Fault::GarbageAfterEvents(1, garbage(b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{}}}\n")),
        Fault::GarbageAfterEvents(1, garbage(b"{\"type\":\"SOMETHING\",\"object\":{}}\n")),
        Fault::GoneAfterEvents(0),
        Fault::GoneAfterEvents(1),
        Fault::OmitInitialEventsEnd,
        Fault::OmitBookmarks,
        Fault::DuplicateAfterEvents(1),
    ]
}

/// Changes objects while requests of one kind fail several times, then waits for convergence.
async fn converges_under(fault: Fault, on: fn(Fault) -> Rule, settings: ReflectorSettings, times: u64) {
    let server = server().await;
    server.create(&map("before")).unwrap();
    server.faults().inject(on(fault.clone()).times(times));
    let mut rig = Rig::start(server, settings);
    rig.put("a");
    rig.put("b");
    rig.converges().await;
    rig.server.cut();
    rig.change("a", 1);
    rig.delete("b");
    rig.converges().await;
    rig.server.restart();
    rig.put("b");
    rig.change("before", 2);
    rig.converges().await;
    for value in 0..5 {
        rig.change("a", 10 + value);
        rig.converges().await;
    }
    let requests = rig.server.request_count();
    assert!(requests < 60, "{fault:?}: {requests} requests; {:?}", rig.kinds_of_requests());
    rig.pass(300).await;
    rig.server.forget_requests();
    rig.pass(600).await;
    let settled = rig.requests().len();
    assert!(settled < 20, "{fault:?}: not at rest, {settled} requests; {:?}", rig.kinds_of_requests());
}

#[tokio::test(start_paused = true)]
async fn the_cache_converges_whatever_befalls_streaming_lists() {
    for fault in every_fault() {
        for times in [1, 3] {
            converges_under(fault.clone(), on_stream, ReflectorSettings::default(), times).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_converges_whatever_befalls_watches() {
    for fault in every_fault() {
        for times in [1, 3] {
            converges_under(fault.clone(), on_watch, paged(), times).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_converges_whatever_befalls_lists() {
    for fault in every_fault() {
        for times in [1, 3] {
            converges_under(fault.clone(), on_list, paged(), times).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_converges_whatever_befalls_every_request() {
    for fault in every_fault() {
        converges_under(fault.clone(), Rule::new, ReflectorSettings::default(), 4).await;
    }
}

// Streaming lists.

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_never_ends_its_first_phase_is_listed_after_its_deadline_and_that_is_remembered() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_stream(Fault::OmitInitialEventsEnd));
    let mut rig = Rig::start(server, ReflectorSettings::default());
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests()[..2], ["stream", "list"]);
    assert!(rig.started.elapsed() < Duration::from_secs(31));
    assert!(matches!(rig.errors.lock().unwrap()[0].failure(), Failure::NoInitialEventsEnd { .. }));
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    rig.put("b");
    rig.server.restart();
    rig.put("c");
    rig.converges().await;
    assert!(!rig.kinds_of_requests()[1..].contains(&"stream"), "{:?}", rig.kinds_of_requests());
}

#[tokio::test(start_paused = true)]
async fn no_end_mark_and_then_too_many_lists_is_waited_out() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_stream(Fault::OmitInitialEventsEnd));
    server.faults().inject(on_list(Fault::TooManyRequests).times(5));
    let mut rig = Rig::start(server, ReflectorSettings::default());
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests().iter().filter(|kind| **kind == "list").count(), 6);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_of_a_streaming_list_are_tried_again_and_nothing_is_listed() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_stream(Fault::TooManyRequests).times(2));
    let mut rig = Rig::start(server, ReflectorSettings::default());
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests(), ["stream", "stream", "stream"]);
}

#[tokio::test(start_paused = true)]
async fn streaming_lists_that_close_at_once_make_no_hot_loop() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_stream(Fault::EndAfterEvents(0)));
    let mut rig = Rig::start(server, ReflectorSettings::default());
    rig.converges().await;
    rig.pass(600).await;
    assert!(rig.requests().len() < 20, "{:?}", rig.kinds_of_requests());
}

// Lists.

#[tokio::test(start_paused = true)]
async fn waits_between_failing_lists_grow_to_the_cap_and_stay_there() {
    for settings in [ReflectorSettings::default(), paged()] {
        let server = server().await;
        server.faults().inject(Rule::new(Fault::status(500)));
        let rig = Rig::start(server, settings);
        rig.pass(3_600).await;
        let kind = if settings.streaming == Streaming::Never { "list" } else { "stream" };
        let gaps = rig.gaps(kind);
        assert!(gaps.iter().all(|gap| *gap <= 30.1), "never beyond the cap: {gaps:?}");
        assert!(gaps[..4].iter().sum::<f64>() < 15.0, "quick at first: {gaps:?}");
        assert!(gaps[8..].iter().all(|gap| *gap >= 15.0), "slow for as long as it lasts: {gaps:?}");
        assert!((100..=250).contains(&gaps.len()), "{} tries in an hour", gaps.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_expired_makes_one_list_without_pages() {
    let server = server().await;
    for nth in 0..30 {
        server.create(&map(&format!("m{nth}"))).unwrap();
    }
    server.faults().inject(Rule::new(Fault::status(410)).query_given("continue"));
    let settings = ReflectorSettings { page_size: Some(10), ..paged() };
    let source =
        kube_informer::client::ApiListWatch::of::<k8s_openapi::api::core::v1::ConfigMap>(crate::rig::client(&server))
            .tweak(|parameters| parameters.remove("resourceVersion"));
    let mut rig = Rig::start_on(server, settings, kube_informer::store::WatchScope::Everything, source);
    rig.until("listed", |rig| rig.ended() == 1).await;
    assert_eq!(rig.cache(), rig.truth());
    let queries: Vec<String> = rig.requests().into_iter().map(|seen| seen.query).collect();
    assert_eq!(queries[0], "limit=10");
    assert!(queries[1].contains("continue="));
    assert_eq!(queries[2], "", "all of it, at once");
}

// Watches.

#[tokio::test(start_paused = true)]
async fn gone_at_the_opening_of_a_watch_makes_a_new_list() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_watch(Fault::GoneAtOpen).times(3));
    let mut rig = Rig::start(server, paged());
    rig.converges().await;
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    let kinds = rig.kinds_of_requests();
    assert_eq!(kinds, ["list", "watch", "list", "watch", "list", "watch", "list", "watch"]);
    assert_eq!(rig.counters().relists.expired, 3);
    rig.put("b");
    rig.converges().await;
}

#[tokio::test(start_paused = true)]
async fn watches_that_close_at_once_make_no_hot_loop() {
    let server = server().await;
    server.faults().inject(on_watch(Fault::EndAfterEvents(0)));
    let rig = Rig::start(server, paged());
    rig.pass(3_600).await;
    let kinds = rig.kinds_of_requests();
    assert!(kinds.len() < 300, "{} requests in an hour", kinds.len());
    let gaps = rig.gaps("watch");
    assert!(gaps[10..].iter().all(|gap| *gap >= 15.0), "{gaps:?}");
    assert!(rig.errors.lock().unwrap().iter().any(|error| matches!(error.failure(), Failure::ShortWatch)));
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_of_a_watch_never_make_a_list() {
    let server = server().await;
    server.faults().inject(on_watch(Fault::TooManyRequests).times(4));
    let mut rig = Rig::start(server, paged());
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    assert_eq!(rig.kinds_of_requests(), ["list", "watch", "watch", "watch", "watch", "watch"]);
    let gaps = rig.gaps("watch");
    assert!(gaps.iter().all(|gap| *gap >= 0.99), "as long as the server asks: {gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_watch_is_found_out_and_replaced_without_a_list() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_watch(Fault::StallAfterEvents(1)).once());
    let mut rig = Rig::start(server, paged());
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    rig.change("a", 1);
    rig.converges().await;
    let stalled = tokio::time::Instant::now();
    rig.change("a", 2);
    rig.put("b");
    rig.converges().await;
    assert!(stalled.elapsed() < Duration::from_secs(80), "{:?}", stalled.elapsed());
    assert_eq!((rig.counters().stalls, rig.counters().lists), (1, 1));
    assert_eq!(rig.relists().len(), 1);
    rig.delete("a");
    rig.converges().await;
    rig.pass(10).await;
    assert_eq!(rig.server.watches().len(), 1, "the stalled one is gone");
}

#[tokio::test(start_paused = true)]
async fn a_stall_and_then_an_expired_version_make_a_new_list() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_watch(Fault::StallAfterEvents(0)).once());
    let mut rig = Rig::start(server, paged());
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    rig.change("a", 1);
    rig.server.compact_now();
    rig.put("b");
    rig.converges().await;
    assert_eq!(rig.counters().relists.expired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_on_a_server_that_went_back_is_found_out() {
    let server = server().await;
    let mut rig = Rig::start(server, paged());
    rig.put("a");
    rig.converges().await;
    let backup = rig.server.backup();
    rig.change("a", 1);
    rig.put("b");
    rig.converges().await;
    // The probe that follows a failure fails too, so only the detection of silence is left.
    rig.server.faults().inject(Rule::new(Fault::status(403)).query("limit", "1").once());
    rig.server.restore(&backup);
    let restored = tokio::time::Instant::now();
    rig.converges().await;
    assert!(restored.elapsed() < Duration::from_secs(75), "{:?}", restored.elapsed());
    assert_eq!(rig.relists().last(), Some(&History::WentBack));
}

#[tokio::test(start_paused = true)]
async fn cut_within_a_frame_and_then_refused_is_waited_out() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_watch(Fault::CutWithinEvent(1)).once());
    server.faults().inject(on_watch(Fault::Disconnect).after(1).times(6));
    let mut rig = Rig::start(server, paged());
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    rig.change("a", 1);
    rig.change("a", 2);
    rig.converges().await;
    assert_eq!(rig.counters().lists, 1);
    let gaps = rig.gaps("watch");
    assert!(gaps.windows(2).skip(1).take(4).all(|pair| pair[1] > pair[0]), "ever longer: {gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_sent_twice_is_delivered_to_handlers_once() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_watch(Fault::DuplicateAfterEvents(1)));
    let mut rig = Rig::start(server, paged());
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    rig.change("a", 1);
    rig.converges().await;
    rig.server.cut();
    rig.change("a", 2);
    rig.converges().await;
    assert_eq!(rig.relists().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn permission_revoked_during_a_relist_is_reported_and_retried() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    let mut rig = Rig::synced(server, ReflectorSettings::default()).await;
    rig.server.faults().inject(Rule::new(Fault::status(403)).times(12));
    rig.delete("a");
    rig.server.restart();
    rig.until(
        "forbidden",
        |rig| matches!(&rig.status.borrow().state, ReflectorState::Waiting { cause, .. } if cause.is_forbidden()),
    )
    .await;
    assert!(rig.cache().contains_key("default/a"), "nothing is taken away meanwhile");
    rig.converges().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_opens_the_watch_again_from_where_it_was() {
    for event in [r#"{"type":"MODIFIED","object":{"metadata":{"labels":{}}}}"#, r#"{"type":"NEW","object":{}}"#] {
        let server = server().await;
        server.create(&map("a")).unwrap();
        let event = Bytes::from(format!("{event}\n"));
        server.faults().inject(on_watch(Fault::GarbageAfterEvents(0, event)).once());
        let mut rig = Rig::start(server, paged());
        rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
        rig.change("a", 1);
        rig.converges().await;
        assert_eq!(rig.kinds_of_requests(), ["list", "watch", "watch"]);
        assert_eq!((rig.counters().decode_errors, rig.counters().relists.total()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_with_an_object_that_cannot_be_read_takes_nothing_away() {
    let server = server().await;
    for name in ["a", "b"] {
        server.create(&map(name)).unwrap();
    }
    let mut rig = Rig::synced(server, ReflectorSettings::default()).await;
    let nameless = Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"labels\":{}}}}\n");
    rig.server.faults().inject(on_stream(Fault::GarbageAfterEvents(0, nameless)).times(3));
    rig.delete("a");
    rig.server.restart();
    let fails = |state: &ReflectorState| match state {
        ReflectorState::Waiting { cause, .. } => matches!(cause.failure(), Failure::UndecodableObject(_)),
        _ => false,
    };
    rig.until("a list that fails", |rig| fails(&rig.status.borrow().state)).await;
    assert!(rig.cache().contains_key("default/a") && rig.cache().contains_key("default/b"));
    rig.converges().await;
    assert_eq!(rig.counters().decode_errors, 3);
}

#[tokio::test(start_paused = true)]
async fn garbage_in_a_watch_opens_it_again_from_where_it_was() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    server.faults().inject(on_watch(Fault::GarbageAfterEvents(1, Bytes::from_static(b"<html>oh no</html>\n"))).once());
    let mut rig = Rig::start(server, paged());
    rig.until("watching", |rig| matches!(rig.status.borrow().state, ReflectorState::Watching)).await;
    rig.change("a", 1);
    rig.change("a", 2);
    rig.converges().await;
    assert_eq!(rig.kinds_of_requests(), ["list", "watch", "watch"]);
    assert_eq!((rig.counters().decode_errors, rig.counters().relists.total()), (1, 0));
}
