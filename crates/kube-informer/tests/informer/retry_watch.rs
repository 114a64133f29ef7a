//! A watch that survives connection failures.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{client, put, remove, server};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::Version;
use kube_informer::client::{
    ApiListWatch, Body, Failure, Frame, ListQuery, ListWatch, Operation, ServerError, WatchQuery, WatchStart,
};
use kube_informer::one_shot::{RetryWatch, WatchEvent, WatchStream};
use kube_informer::reflector::ReflectorSettings;
use tokio::time::Instant;

fn watch(server: &Server, after: u64) -> RetryWatch<ConfigMap> {
    let source = ApiListWatch::of::<ConfigMap>(client(server));
    RetryWatch::after(source, Version::new(after.to_string()))
}

/// Waits for the next event and formats it.
async fn next(events: &mut WatchStream<ConfigMap>) -> String {
    let waited = tokio::time::timeout(Duration::from_secs(3_600), events.next()).await;
    match waited.expect("an hour is enough").expect("more to come").unwrap() {
        WatchEvent::Added(map) => format!("+ {}", map.name()),
        WatchEvent::Modified(map) => format!("~ {}", map.name()),
        WatchEvent::Deleted(map) => format!("- {}", map.name()),
    }
}

async fn last_error<K>(mut events: WatchStream<K>) -> ServerError {
    let error = loop {
        match events.next().await.expect("an error comes last") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(events.next().await.is_none(), "nothing comes after an error");
    error
}

fn watches(server: &Server) -> usize {
    server.requests().iter().filter(|seen| seen.verb == Some(Verb::Watch)).count()
}

#[tokio::test(start_paused = true)]
async fn what_happens_after_the_version_is_delivered_in_order() {
    let server = server().await;
    put(&server, "default", "before", "1");
    let mut events = watch(&server, server.revision()).stream();
    put(&server, "default", "a", "1");
    put(&server, "default", "before", "2");
    remove(&server, "default", "a");
    assert_eq!(next(&mut events).await, "+ a");
    assert_eq!(next(&mut events).await, "~ before");
    assert_eq!(next(&mut events).await, "- a");
    assert_eq!(events.version().number(), Some(server.revision()));
    assert_eq!(watches(&server), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_of_nothing_is_refused() {
    let server = server().await;
    for version in ["", "0"] {
        let source = ApiListWatch::of::<ConfigMap>(client(&server));
        let events = RetryWatch::<ConfigMap>::after(source, Version::new(version)).stream();
        let error = last_error(events).await;
        assert_eq!(error.to_string(), "watching ConfigMap: there is no version to watch from");
    }
    assert_eq!(server.request_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_goes_on_where_it_was_whatever_breaks_it() {
    for fault in [
        Fault::CutAfterEvents(1),
        Fault::CutWithinEvent(1),
        Fault::EndAfterEvents(1),
        Fault::CutAfterBytes(700),
        Fault::StallAfterEvents(1),
        Fault::Disconnect,
        Fault::TooManyRequests,
        Fault::status(500),
        Fault::status(503),
        Fault::status(504),
        Fault::GarbageAfterEvents(1, Bytes::from_static(b"{]\n")),
    ] {
        let server = server().await;
        put(&server, "default", "before", "1");
        server.faults().inject(Rule::new(fault.clone()).verb(Verb::Watch).times(2));
        // The watch timeout is shorter than the server's history, also where only the timeout ends
        // the watch.
        let settings = ReflectorSettings { watch_timeout: Duration::from_secs(30), ..ReflectorSettings::default() };
        let mut events = watch(&server, server.revision()).settings(settings).stream();
        for nth in 0..6 {
            put(&server, "default", &format!("map-{nth}"), "1");
        }
        for nth in 0..6 {
            assert_eq!(next(&mut events).await, format!("+ map-{nth}"), "{fault:?}");
        }
        assert!(watches(&server) > 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_ends_it_in_the_stream_and_at_the_opening() {
    for fault in [Fault::GoneAtOpen, Fault::GoneAfterEvents(1)] {
        let server = server().await;
        put(&server, "default", "before", "1");
        server.faults().inject(Rule::new(fault.clone()).verb(Verb::Watch));
        let events = watch(&server, server.revision()).stream();
        put(&server, "default", "a", "1");
        put(&server, "default", "b", "1");
        assert!(last_error(events).await.is_expired(), "{fault:?}");
        assert_eq!(watches(&server), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_it() {
    for code in [401, 403, 404] {
        let server = server().await;
        put(&server, "default", "before", "1");
        server.faults().inject(Rule::new(Fault::status(code)).verb(Verb::Watch));
        let error = last_error(watch(&server, server.revision()).stream()).await;
        assert_eq!(error.code(), Some(code));
        assert_eq!(watches(&server), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn waits_grow_and_respect_the_servers_retry_after() {
    let server = server().await;
    put(&server, "default", "before", "1");
    server.faults().inject(Rule::new(Fault::status(503)).verb(Verb::Watch).times(6));
    let mut events = watch(&server, server.revision()).stream();
    put(&server, "default", "a", "1");
    let begun = Instant::now();
    assert_eq!(next(&mut events).await, "+ a");
    // Waits of 0.8 s, doubled five times, each reduced by jitter to at least half.
    assert!(begun.elapsed() >= Duration::from_secs(25), "{:?}", begun.elapsed());

    server.faults().inject(Rule::new(Fault::status(429).retry_after(50)).verb(Verb::Watch).once());
    let mut events = watch(&server, server.revision()).stream();
    put(&server, "default", "b", "1");
    let begun = Instant::now();
    assert_eq!(next(&mut events).await, "+ b");
    assert!(begun.elapsed() >= Duration::from_secs(50));
}

#[tokio::test(start_paused = true)]
async fn watches_that_close_at_once_make_no_hot_loop() {
    let server = server().await;
    put(&server, "default", "before", "1");
    server.faults().inject(Rule::new(Fault::EndAfterEvents(0)).verb(Verb::Watch));
    let mut events = watch(&server, server.revision()).stream();
    assert!(tokio::time::timeout(Duration::from_secs(300), events.next()).await.is_err());
    assert!(watches(&server) < 25, "{}", watches(&server));
}

#[tokio::test(start_paused = true)]
async fn failures_that_are_retried_are_reported_too() {
    let server = server().await;
    put(&server, "default", "before", "1");
    server.faults().inject(Rule::new(Fault::status(503)).verb(Verb::Watch).times(3));
    let errors: Arc<Mutex<Vec<ServerError>>> = Arc::default();
    let recorded = Arc::clone(&errors);
    let mut events =
        watch(&server, server.revision()).on_error(move |error| recorded.lock().unwrap().push(error.clone())).stream();
    put(&server, "default", "a", "1");
    next(&mut events).await;
    let codes: Vec<Option<u16>> = errors.lock().unwrap().iter().map(ServerError::code).collect();
    assert_eq!(codes, [Some(503); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_leaves_no_watch() {
    let server = server().await;
    put(&server, "default", "before", "1");
    let mut events = watch(&server, server.revision()).stream();
    put(&server, "default", "a", "1");
    next(&mut events).await;
    assert_eq!(server.watches().len(), 1);
    drop(events);
    while !server.watches().is_empty() {
        tokio::task::yield_now().await;
    }
}

/// A source that answers each watch with the next scripted response, and records the requested
/// versions.
struct Script {
    answers: Mutex<Vec<Result<Vec<Frame>, Failure>>>,
    requested: Mutex<Vec<String>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Result<Vec<Frame>, Failure>>) -> Arc<Self> {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), requested: Mutex::default() })
    }
}

impl ListWatch for Script {
    async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
        panic!("a watch lists nothing")
    }

    async fn watch(&self, query: WatchQuery) -> Result<Body, ServerError> {
        let WatchStart::After(version) = &query.start else { panic!("{query:?}") };
        self.requested.lock().unwrap().push(version.to_string());
        let answer = self.answers.lock().unwrap().pop();
        match answer {
            Some(Ok(frames)) => Ok(Body::from_frames(stream::iter(frames))),
            Some(Err(failure)) => Err(ServerError::new(Operation::Watch, "things", failure)),
            None => std::future::pending().await,
        }
    }
}

fn thing(name: &str, version: &str) -> Bytes {
    format!(r#"{{"kind":"Thing","apiVersion":"v1","metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#)
        .into()
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_not_delivered_but_move_where_the_next_watch_begins() {
    let source = Script::new([
        Ok(vec![Frame::Added(thing("a", "5")), Frame::Bookmark(Version::new("9"))]),
        Ok(vec![Frame::Modified(thing("a", "12"))]),
    ]);
    let mut events = RetryWatch::<ConfigMap>::after(Arc::clone(&source), Version::new("3")).stream();
    assert_eq!(next(&mut events).await, "+ a");
    assert_eq!(next(&mut events).await, "~ a");
    assert_eq!(*source.requested.lock().unwrap(), ["3", "9"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_failure_in_the_stream_is_retried_and_a_refusal_is_not() {
    let failed = |code, reason: &str| Frame::Failed { code, reason: reason.to_owned(), message: String::new() };
    let source = Script::new([
        Ok(vec![failed(0, "")]),
        Ok(vec![failed(500, "InternalError")]),
        Ok(vec![failed(504, "Timeout")]),
        Err(Failure::ConnectionRefused),
        Ok(vec![Frame::Added(thing("a", "5"))]),
        Ok(vec![failed(403, "Forbidden")]),
    ]);
    let mut events = RetryWatch::<ConfigMap>::after(Arc::clone(&source), Version::new("3")).stream();
    assert_eq!(next(&mut events).await, "+ a");
    assert!(last_error(events).await.is_forbidden());
    assert_eq!(*source.requested.lock().unwrap(), ["3", "3", "3", "3", "3", "5"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_version_or_a_name_ends_it() {
    let nameless = Bytes::from_static(br#"{"kind":"Thing","metadata":{"resourceVersion":"5"}}"#);
    for frame in [Frame::Added(thing("a", "")), Frame::Added(nameless)] {
        let source = Script::new([Ok(vec![frame])]);
        let error = last_error(RetryWatch::<ConfigMap>::after(source, Version::new("3")).stream()).await;
        assert!(matches!(error.failure(), Failure::NoVersion | Failure::UndecodableObject(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_stays_unreadable_ends_it_after_three_tries() {
    let broken = || Ok(vec![Frame::Modified(Bytes::from_static(br#"{"metadata":{"name":"#))]);
    let source = Script::new([broken(), broken(), broken()]);
    let error = last_error(RetryWatch::<ConfigMap>::after(Arc::clone(&source), Version::new("3")).stream()).await;
    assert!(matches!(error.failure(), Failure::Undecodable(_)), "{error}");
    assert_eq!(source.requested.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_answers_is_asked_again() {
    let source = Script::new([]);
    let mut events = RetryWatch::<ConfigMap>::after(Arc::clone(&source), Version::new("3")).stream();
    assert!(tokio::time::timeout(Duration::from_secs(600), events.next()).await.is_err());
    let requested = source.requested.lock().unwrap().len();
    assert!((5..=10).contains(&requested), "{requested}");
}
