//! A reflector on custom sources: the requests it sends, and how it handles the responses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::rig::{Rig, intake, map, server};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::client::{
    ApiListWatch, Body, Failure, Frame, ListQuery, ListVersion, ListWatch, Operation, ServerError, WatchQuery,
    WatchStart,
};
use kube_informer::reflector::{Intake, ObjectSource, Reflector, ReflectorSettings, ReflectorState, Streaming};
use kube_informer::store::{Delta, WatchScope};
use kube_informer::{DecodeError, Obj, Untyped, Version};
use tokio::sync::mpsc;

/// Answers each request with the next scripted response.
#[derive(Default)]
struct Script {
    lists: Mutex<Vec<Answer>>,
    watches: Mutex<Vec<Answer>>,
    requests: Mutex<Vec<String>>,
}

enum Answer {
    Body(Body),
    Error(Failure),
    Never,
}

impl Script {
    fn new(lists: impl IntoIterator<Item = Answer>, watches: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        let reversed = |answers: Vec<Answer>| Mutex::new(answers.into_iter().rev().collect());
        Arc::new(Self {
            lists: reversed(lists.into_iter().collect()),
            watches: reversed(watches.into_iter().collect()),
            requests: Mutex::default(),
        })
    }

    async fn answer(answers: &Mutex<Vec<Answer>>, operation: Operation) -> Result<Body, ServerError> {
        let next = answers.lock().unwrap().pop().unwrap_or(Answer::Never);
        match next {
            Answer::Body(body) => Ok(body),
            Answer::Error(failure) => Err(ServerError::new(operation, "things", failure)),
            Answer::Never => std::future::pending().await,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl ListWatch for Script {
    async fn list(&self, query: ListQuery) -> Result<Body, ServerError> {
        let version = match &query.version {
            ListVersion::Any => "0".to_owned(),
            ListVersion::Latest => String::new(),
            ListVersion::NotOlderThan(version) => version.to_string(),
            other => panic!("{other:?}"),
        };
        self.requests.lock().unwrap().push(format!("list {version:?}"));
        Self::answer(&self.lists, Operation::List).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<Body, ServerError> {
        let word = match &query.start {
            WatchStart::After(version) => format!("watch {version:?}"),
            other => format!("{other:?}"),
        };
        self.requests.lock().unwrap().push(word);
        Self::answer(&self.watches, Operation::Watch).await
    }
}

fn thing(name: &str, version: u64) -> Bytes {
    format!(r#"{{"kind":"Thing","apiVersion":"v1","metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#)
        .into()
}

fn list(version: &str, things: &[Bytes]) -> Answer {
    Answer::Body(Body::from_list(&Version::new(version), things))
}

/// A watch that stays open after these frames.
fn watch(frames: impl IntoIterator<Item = Frame>) -> Answer {
    let frames: Vec<Frame> = frames.into_iter().collect();
    Answer::Body(Body::from_frames(stream::iter(frames).chain(stream::pending())))
}

fn paged() -> ReflectorSettings {
    ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() }
}

/// Runs a reflector on this source for some seconds; returns its deltas in short form.
async fn deltas_of(source: Arc<Script>, settings: ReflectorSettings, seconds: u64) -> Vec<String> {
    let (sender, mut deltas) = mpsc::channel(1_000);
    let reflector = Reflector::new("things", WatchScope::Everything, source, settings, intake()).seed(1);
    let running = tokio::time::timeout(Duration::from_secs(seconds), reflector.run(sender));
    assert!(running.await.is_err(), "it ran for as long as it was let");
    let mut words = Vec::new();
    while let Some(delta) = deltas.recv().await {
        words.push(match delta {
            Delta::Changed(object) => format!("changed {}", object.name()),
            Delta::Deleted(object) => format!("deleted {}", object.name()),
            Delta::Listed(object) => format!("listed {}", object.name()),
            Delta::RelistBegun(_) => "begun".to_owned(),
            Delta::RelistEnded { version, .. } => format!("ended {version}"),
            Delta::RelistAbandoned(_) => "abandoned".to_owned(),
            Delta::Bookmark { version, .. } => format!("bookmark {version}"),
            other => panic!("{other:?}"),
        });
    }
    words
}

#[tokio::test(start_paused = true)]
async fn events_of_a_source_are_delivered_in_their_order() {
    let frames = [
        Frame::Added(thing("b", 2)),
        Frame::Modified(thing("a", 3)),
        Frame::Bookmark(Version::new("9")),
        Frame::Deleted(thing("a", 10)),
    ];
    let source = Script::new([list("1", &[thing("a", 1)])], [watch(frames)]);
    let words = deltas_of(Arc::clone(&source), paged(), 10).await;
    assert_eq!(words, ["begun", "listed a", "ended 1", "changed b", "changed a", "bookmark 9", "deleted a"]);
    assert_eq!(source.requests(), ["list \"0\"", "watch Version(1)"]);
}

/// An intake that is behind after every object, and records its calls.
struct Behind(Arc<Mutex<Vec<String>>>, usize);

impl Intake for Behind {
    fn accept(&mut self, json: &Bytes, _: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
        self.1 += 1;
        Obj::from_json(json.clone())
    }

    fn is_behind(&self) -> bool {
        self.1 > 0
    }

    fn catch_up(&mut self) {
        self.0.lock().unwrap().push(format!("caught up with {}", self.1));
        self.1 = 0;
    }
}

#[tokio::test(start_paused = true)]
async fn received_events_are_delivered_before_the_intake_catches_up() {
    let frames = ["b", "c"].map(|name| [&br#"{"type":"ADDED","object":"#[..], &thing(name, 2), b"}\n"].concat());
    let body = Body::from_stream(stream::iter([Ok(frames.concat().into())]).chain(stream::pending()));
    let source = Script::new([list("1", &[])], [Answer::Body(body)]);
    let notes: Arc<Mutex<Vec<String>>> = Arc::default();
    let intake = Behind(Arc::clone(&notes), 0);
    let (sender, mut deltas) = mpsc::channel(1_000);
    let reflector = Reflector::new("things", WatchScope::Everything, source, paged(), intake).seed(1);
    let running = tokio::spawn(reflector.run(sender));
    let recorder = Arc::clone(&notes);
    let receiving = tokio::spawn(async move {
        while let Some(delta) = deltas.recv().await {
            if let Delta::Changed(object) = delta {
                recorder.lock().unwrap().push(format!("received {}", object.name()));
            }
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.abort();
    receiving.await.unwrap();
    assert_eq!(*notes.lock().unwrap(), ["received b", "received c", "caught up with 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_cannot_stream_is_listed() {
    let streamed = Answer::Error(Failure::Request("no streaming here".into()));
    let source = Script::new([list("1", &[thing("a", 1)])], [streamed, watch([])]);
    assert_eq!(deltas_of(source, ReflectorSettings::default(), 10).await, ["begun", "listed a", "ended 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_breaks_off_delivers_nothing_partially() {
    let half = Body::from_stream(stream::iter([
        Ok(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n{\"ty")),
        Err(ServerError::new(Operation::StreamingList, "things", Failure::BodyCut("reset".into()))),
    ]));
    let source = Script::new([list("5", &[thing("b", 5)])], [Answer::Body(half), watch([])]);
    let words = deltas_of(source, ReflectorSettings::default(), 10).await;
    assert_eq!(words, ["begun", "listed a", "abandoned", "begun", "listed b", "ended 5"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_ends_in_the_middle_of_an_object_is_abandoned() {
    let half = Body::from_stream(stream::iter([Ok(Bytes::from_static(
        b"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"meta",
    ))]));
    let source = Script::new([Answer::Body(half), list("2", &[])], [watch([])]);
    let words = deltas_of(source, paged(), 10).await;
    assert_eq!(words, ["begun", "listed a", "abandoned", "begun", "ended 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_the_middle_of_a_frame_did_not_end_well() {
    let half = Body::from_stream(stream::iter([Ok(Bytes::from_static(b"{\"type\":\"ADDED\",\"obj"))]));
    let source = Script::new([list("1", &[])], [Answer::Body(half), watch([])]);
    let errors: Arc<Mutex<Vec<ServerError>>> = Arc::default();
    let recorded = Arc::clone(&errors);
    let reflector = Reflector::new("things", WatchScope::Everything, Arc::clone(&source), paged(), intake())
        .on_error(move |error| recorded.lock().unwrap().push(error.clone()));
    let (sender, _deltas) = mpsc::channel(10);
    let running = tokio::time::timeout(Duration::from_secs(10), reflector.run(sender));
    assert!(running.await.is_err());
    assert_eq!(
        errors.lock().unwrap()[0].to_string(),
        "watching things: the answer broke off: in the middle of a frame"
    );
    assert_eq!(source.requests()[..3], ["list \"0\"", "watch Version(1)", "watch Version(1)"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_frame_of_a_watch_may_lack_its_line_break() {
    let line = format!("{{\"type\":\"ADDED\",\"object\":{}}}", String::from_utf8(thing("a", 2).to_vec()).unwrap());
    let body = Body::from_stream(stream::iter([Ok(Bytes::from(line))]));
    let source = Script::new([list("1", &[])], [Answer::Body(body), watch([])]);
    assert_eq!(deltas_of(Arc::clone(&source), paged(), 10).await, ["begun", "ended 1", "changed a"]);
    assert_eq!(source.requests(), ["list \"0\"", "watch Version(1)", "watch Version(2)"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_with_an_object_that_cannot_be_read_is_tried_again() {
    let unreadable = Bytes::from_static(b"{\"metadata\":{\"name\":7}}");
    let lists = [list("1", &[thing("a", 1), unreadable, thing("c", 1)]), list("2", &[thing("a", 1)])];
    let source = Script::new(lists, [watch([])]);
    let deltas = ["begun", "listed a", "abandoned", "begun", "listed a", "ended 2"];
    assert_eq!(deltas_of(source, paged(), 10).await, deltas);
}

#[tokio::test(start_paused = true)]
async fn a_table_is_not_taken_for_an_empty_list() {
    let table = Body::from_stream(stream::iter([Ok(Bytes::from_static(
        b"{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"1\"},\"rows\":[]}",
    ))]));
    let source = Script::new([Answer::Body(table), list("2", &[])], [watch([])]);
    assert_eq!(deltas_of(source, paged(), 10).await, ["begun", "ended 2"]);
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_do() {
    let frames = [Frame::Bookmark(Version::new("v2"))];
    let source = Script::new([list("v1", &[])], [watch(frames), watch([])]);
    assert_eq!(deltas_of(Arc::clone(&source), paged(), 10).await, ["begun", "ended v1", "bookmark v2"]);
    assert_eq!(source.requests(), ["list \"0\"", "watch Version(v1)"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_servers_store_makes_a_list_without_what_it_lost() {
    let failed = Frame::Failed { code: 500, reason: "StoreReadError".to_owned(), message: "corrupt object".to_owned() };
    let lists = [list("1", &[thing("a", 1), thing("b", 1)]), list("5", &[thing("b", 1)])];
    let source = Script::new(lists, [watch([failed]), watch([])]);
    let words = deltas_of(Arc::clone(&source), paged(), 10).await;
    assert_eq!(words, ["begun", "listed a", "listed b", "ended 1", "begun", "listed b", "ended 5"]);
    assert_eq!(source.requests()[2], "list \"1\"", "none older than ours");
}

#[tokio::test(start_paused = true)]
async fn an_end_mark_that_says_false_ends_nothing() {
    let marked = |value: &str| {
        let mark = format!(
            r#"{{"metadata":{{"resourceVersion":"7","annotations":{{"k8s.io/initial-events-end":"{value}"}}}}}}"#
        );
        Ok(Bytes::from(format!("{{\"type\":\"BOOKMARK\",\"object\":{mark}}}\n")))
    };
    let lines = [marked("false"), marked("true")];
    for (lines, words) in [(&lines[..1], vec![]), (&lines[..], vec!["begun", "ended 7"])] {
        let body = Body::from_stream(stream::iter(lines.to_vec()).chain(stream::pending()));
        let source = Script::new([], [Answer::Body(body)]);
        assert_eq!(deltas_of(source, ReflectorSettings::default(), 10).await, words);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_kept_does_not_keep_what_it_came_in() {
    struct Page(Vec<u8>, #[expect(dead_code, reason = "counted while the page lives")] Arc<()>);
    impl AsRef<[u8]> for Page {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let alive = Arc::new(());
    let json = format!(
        r#"{{"kind":"ThingList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{},{}]}}"#,
        String::from_utf8(thing("a", 1).to_vec()).unwrap(),
        String::from_utf8(thing("b", 1).to_vec()).unwrap(),
    );
    let page = Bytes::from_owner(Page(json.into_bytes(), Arc::clone(&alive)));
    let source = Script::new([Answer::Body(Body::from_stream(stream::iter([Ok(page)])))], [watch([])]);
    let (sender, mut deltas) = mpsc::channel(10);
    let reflector = Reflector::new("things", WatchScope::Everything, source, paged(), intake());
    let running = tokio::spawn(reflector.run(sender));
    let mut kept = Vec::new();
    loop {
        let delta = deltas.recv().await.unwrap();
        if matches!(delta, Delta::RelistEnded { .. }) {
            break;
        }
        kept.push(delta);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!((kept.len(), Arc::strong_count(&alive)), (3, 1));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_before_it_began_has_asked_nothing() {
    let source = Script::new([], []);
    let (sender, _deltas) = mpsc::channel(1);
    let reflector = Reflector::new("things", WatchScope::Everything, Arc::clone(&source), paged(), intake());
    let status = reflector.status();
    drop(reflector.run(sender));
    assert!(source.requests().is_empty());
    assert!(!status.has_changed().is_ok_and(|changed| changed));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_answers_is_asked_again_but_not_often() {
    let source = Script::new([], []);
    assert!(deltas_of(Arc::clone(&source), ReflectorSettings::default(), 3_600).await.is_empty());
    let requests = source.requests().len();
    assert!((40..=90).contains(&requests), "{requests} requests in an hour");
}

#[tokio::test(start_paused = true)]
async fn a_sink_without_room_keeps_the_source_waiting_and_nothing_is_held_against_it() {
    let things: Vec<Bytes> = (0..1_000).map(|nth| thing(&format!("t{nth}"), 1)).collect();
    let read = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&read);
    // One chunk per object, so that reading can stop between any two.
    let body = Body::from_stream(Body::from_list(&Version::new("1"), &things).flat_map(move |bytes| {
        let counted = Arc::clone(&counted);
        let bytes = bytes.unwrap();
        let chunks: Vec<Bytes> = bytes.chunks(80).map(Bytes::copy_from_slice).collect();
        stream::iter(chunks).map(move |chunk| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(chunk)
        })
    }));
    let source = Script::new([Answer::Body(body)], [watch([])]);
    let (sender, mut deltas) = mpsc::channel(1);
    let reflector = Reflector::new("things", WatchScope::Everything, source, paged(), intake());
    let status = reflector.status();
    let running = tokio::spawn(reflector.run(sender));
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(read.load(Ordering::Relaxed) < 10, "nothing is read ahead of the sink");
    assert_eq!(status.borrow().counters.errors, 0, "an hour of our own slowness is not the server's");
    let mut listed = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        match deltas.recv().await.unwrap() {
            Delta::RelistBegun(_) => {}
            Delta::Listed(_) => listed += 1,
            Delta::RelistEnded { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(listed, 1_000);
    assert_eq!(status.borrow().counters.errors, 0);
    drop(deltas);
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_consumer_of_deltas_is_gone() {
    let source = Script::new([list("1", &[thing("a", 1)])], [watch([])]);
    let (sender, deltas) = mpsc::channel(1);
    let reflector = Reflector::new("things", WatchScope::Everything, source, paged(), intake());
    let status = reflector.status();
    drop(deltas);
    reflector.run(sender).await;
    assert!(matches!(status.borrow().state, ReflectorState::Stopped));
}

/// Counts the requests to another source.
struct Counting<S>(S, Arc<AtomicUsize>);

impl<S: ListWatch> ListWatch for Counting<S> {
    async fn list(&self, query: ListQuery) -> Result<Body, ServerError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.list(query).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<Body, ServerError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.watch(query).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_around_another_one_is_a_source() {
    let server = server().await;
    server.create(&map("a")).unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let source = Counting(ApiListWatch::of::<ConfigMap>(crate::rig::client(&server)), Arc::clone(&requests));
    let mut rig = Rig::start_on(server, ReflectorSettings::default(), WatchScope::Everything, source);
    rig.converges().await;
    assert_eq!(requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn over_a_real_socket_it_is_the_same() {
    let server = kube_embedded::Server::builder().start().await.unwrap();
    for nth in 0..300 {
        server.create(&map(&format!("m{nth}"))).unwrap();
    }
    let config = kube::Config::new(server.url().parse().unwrap());
    let source = ApiListWatch::of::<ConfigMap>(kube_informer::client(config).unwrap());
    let quick = kube_informer::reflector::BackoffSettings { cap: Duration::from_millis(50), ..Default::default() };
    let settings = ReflectorSettings { backoff: quick, ..ReflectorSettings::default() };
    let mut rig = Rig::start_on(server, settings, WatchScope::Everything, source);
    rig.converges().await;
    rig.server.cut();
    rig.change("m3", 1);
    rig.converges().await;
    rig.server.refuse().await;
    rig.server.cut();
    rig.delete("m4");
    rig.until("refused", |rig| rig.errors.lock().unwrap().iter().any(ServerError::is_connection_refused)).await;
    rig.server.accept().await;
    rig.converges().await;
    rig.server.restart();
    rig.put("new");
    rig.converges().await;
    rig.stop().await;
}
