use std::io;

use http::{HeaderMap, Method};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout};

use super::injected::{Answer, Verdict};
use super::*;
use crate::encoding::protobuf;
use crate::http::lifecycle::Lifecycle;
use crate::http::negotiate::{Encoding, Negotiated, Served};
use crate::http::query::Query;
use crate::http::request::{Head, Target, Verb};

const ADDED: &str = "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n";
const MODIFIED: &str = "{\"type\":\"MODIFIED\",\"object\":{\"b\":22}}\n";
const BOOKMARK: &str = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n";
const END_MARK: &str = "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n";
const LONG: Duration = Duration::from_secs(3_600);

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Cleanly,
    Broken,
    /// Not within an hour.
    Never,
}

fn stream() -> String {
    [ADDED, MODIFIED, END_MARK, MODIFIED, BOOKMARK, ADDED].concat()
}

/// Sends a text through faults, in chunks of this size.
async fn sent(faults: &[Fault], text: &str, chunk: usize) -> (String, Ended) {
    let (out, ended) = sent_as(Encoding::Json, faults, text.as_bytes(), chunk).await;
    (String::from_utf8_lossy(&out).into_owned(), ended)
}

/// Sends bytes through faults, in chunks of this size.
async fn sent_as(encoding: Encoding, faults: &[Fault], bytes: &[u8], chunk: usize) -> (Vec<u8>, Ended) {
    let chunks: Vec<Bytes> = bytes.chunks(chunk).map(Bytes::copy_from_slice).collect();
    let chunks = chunks.into_iter().map(|bytes| io::Result::Ok(Frame::data(bytes)));
    let inner = http_body_util::StreamBody::new(futures_util::stream::iter(chunks));
    let life = Lifecycle::new();
    let mut body = FaultyBody::new(inner, faults.iter().cloned(), encoding, life.lifetime());
    let mut out = Vec::new();
    let ended = loop {
        match timeout(LONG, body.frame()).await {
            Ok(Some(Ok(frame))) => out.extend_from_slice(&frame.into_data().unwrap()),
            Ok(Some(Err(error))) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                break Ended::Broken;
            }
            Ok(None) => break Ended::Cleanly,
            Err(_) => break Ended::Never,
        }
    };
    (out, ended)
}

/// The frames of [`stream`] in protobuf.
fn messages() -> Vec<Vec<u8>> {
    let frame = |text: &str| {
        let event: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut object = event["object"].clone();
        object["kind"] = "ConfigMap".into();
        object["apiVersion"] = "v1".into();
        let mut out = Vec::new();
        let object = protobuf::transcode(object.to_string().as_bytes()).unwrap();
        protobuf::push_frame(&mut out, event["type"].as_str().unwrap(), &object);
        out
    };
    [ADDED, MODIFIED, END_MARK, MODIFIED, BOOKMARK, ADDED].map(frame).to_vec()
}

#[tokio::test(start_paused = true)]
async fn messages_are_separated_by_their_lengths() {
    let all = messages();
    let gone = {
        let mut out = Vec::new();
        let status = protobuf::transcode(&Status::expired(GONE).to_json()).unwrap();
        protobuf::push_frame(&mut out, "ERROR", &status);
        out
    };
    let of = |places: &[usize]| places.iter().flat_map(|place| all[*place].clone()).collect::<Vec<u8>>();
    for (fault, expected, ended) in [
        (Fault::OmitBookmarks, of(&[0, 1, 3, 5]), Ended::Cleanly),
        (Fault::OmitInitialEventsEnd, of(&[0, 1, 3, 4, 5]), Ended::Cleanly),
        (Fault::CutAfterEvents(2), of(&[0, 1]), Ended::Broken),
        (Fault::CutWithinEvent(1), [&*all[0], &all[1][..all[1].len() / 2]].concat(), Ended::Broken),
        (Fault::GoneAfterEvents(1), [&*all[0], &*gone].concat(), Ended::Cleanly),
        (Fault::DuplicateAfterEvents(2), of(&[0, 1, 1, 2, 3, 4, 5]), Ended::Cleanly),
        (Fault::StallAfterEvents(3), of(&[0, 1, 2]), Ended::Never),
    ] {
        for chunk in [1, 3, 50, 97, 100_000] {
            let got = sent_as(Encoding::Protobuf, std::slice::from_ref(&fault), &all.concat(), chunk).await;
            assert_eq!(got, (expected.clone(), ended), "{fault:?} in chunks of {chunk}");
        }
    }
}

/// Checks that the result is the same for every chunk size.
async fn expect(faults: &[Fault], expected: String, ended: Ended) {
    for chunk in [1, 7, 50, 97, 100_000] {
        let got = sent(faults, &stream(), chunk).await;
        assert_eq!(got, (expected.clone(), ended), "{faults:?} in chunks of {chunk}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_faults_a_body_is_what_it_was() {
    expect(&[], stream(), Ended::Cleanly).await;
    let cut_off = "{\"type\":\"ADDED\"";
    assert_eq!(sent(&[Fault::OmitBookmarks], cut_off, 4).await, (cut_off.to_owned(), Ended::Cleanly));
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_sends_no_more_and_stays_open() {
    expect(&[Fault::StallAfterEvents(2)], [ADDED, MODIFIED].concat(), Ended::Never).await;
    expect(&[Fault::StallAfterEvents(0)], String::new(), Ended::Never).await;
    expect(&[Fault::StallAfterBytes(40)], stream()[..40].to_owned(), Ended::Never).await;
    expect(&[Fault::StallAfterBytes(0)], String::new(), Ended::Never).await;
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_ends_with_the_server() {
    for (end, broken) in [(Lifecycle::close as fn(&Lifecycle), false), (Lifecycle::cut, true)] {
        let life = Lifecycle::new();
        let inner = http_body_util::Full::new(Bytes::from(stream())).map_err(|never| match never {});
        let mut body = FaultyBody::new(inner, [Fault::StallAfterEvents(0)], Encoding::Json, life.lifetime());
        assert!(timeout(LONG, body.frame()).await.is_err());
        end(&life);
        let last = body.frame().await;
        assert_eq!(matches!(last, Some(Err(_))), broken);
        assert_eq!(last.is_none(), !broken);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_cut_after_events_after_bytes_or_within_an_event() {
    expect(&[Fault::CutAfterEvents(3)], [ADDED, MODIFIED, END_MARK].concat(), Ended::Broken).await;
    expect(&[Fault::CutAfterEvents(0)], String::new(), Ended::Broken).await;
    expect(&[Fault::CutAfterBytes(33)], stream()[..33].to_owned(), Ended::Broken).await;
    let half = &MODIFIED[..MODIFIED.len() / 2];
    expect(&[Fault::CutWithinEvent(1)], [ADDED, half].concat(), Ended::Broken).await;
    expect(&[Fault::CutAfterEvents(99), Fault::CutAfterBytes(99_999)], stream(), Ended::Cleanly).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_early_as_if_it_had_timed_out() {
    expect(&[Fault::EndAfterEvents(1)], ADDED.to_owned(), Ended::Cleanly).await;
}

#[tokio::test(start_paused = true)]
async fn garbage_comes_between_events_and_the_stream_goes_on() {
    let garbage = Bytes::from_static(b"\x00{{not json\n");
    let (head, tail) = (ADDED, [MODIFIED, END_MARK, MODIFIED, BOOKMARK, ADDED].concat());
    let expected = format!("{head}\0{{{{not json\n{tail}");
    expect(&[Fault::GarbageAfterEvents(1, garbage.clone())], expected, Ended::Cleanly).await;
    let expected = format!("\0{{{{not json\n{}", stream());
    expect(&[Fault::GarbageAfterEvents(0, garbage)], expected, Ended::Cleanly).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_too_old_is_reported_in_the_stream_and_ends_it() {
    let gone = concat!(
        r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
        r#""message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410}}"#,
        "\n"
    );
    expect(&[Fault::GoneAfterEvents(2)], [ADDED, MODIFIED, gone].concat(), Ended::Cleanly).await;
    expect(&[Fault::GoneAfterEvents(0)], gone.to_owned(), Ended::Cleanly).await;
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_left_out_all_or_only_the_one_that_ends_the_initial_events() {
    let without_end = [ADDED, MODIFIED, MODIFIED, BOOKMARK, ADDED].concat();
    expect(&[Fault::OmitInitialEventsEnd], without_end, Ended::Cleanly).await;
    expect(&[Fault::OmitBookmarks], [ADDED, MODIFIED, MODIFIED, ADDED].concat(), Ended::Cleanly).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_event_comes_twice() {
    let expected = [ADDED, MODIFIED, MODIFIED, END_MARK, MODIFIED, BOOKMARK, ADDED].concat();
    expect(&[Fault::DuplicateAfterEvents(2)], expected, Ended::Cleanly).await;
    expect(&[Fault::DuplicateAfterEvents(0)], stream(), Ended::Cleanly).await;
}

#[tokio::test(start_paused = true)]
async fn faults_of_one_stream_add_up_in_their_order() {
    let faults = [Fault::OmitBookmarks, Fault::DuplicateAfterEvents(3), Fault::CutAfterEvents(4)];
    expect(&faults, [ADDED, MODIFIED, MODIFIED, MODIFIED].concat(), Ended::Broken).await;
    let faults = [Fault::CutAfterEvents(1), Fault::OmitBookmarks];
    expect(&faults, ADDED.to_owned(), Ended::Broken).await;
    let faults = [Fault::CutAfterEvents(3), Fault::StallAfterBytes(5)];
    expect(&faults, stream()[..5].to_owned(), Ended::Never).await;
}

#[tokio::test(start_paused = true)]
async fn the_bytes_before_a_cut_get_a_moment_to_leave() {
    let begin = Instant::now();
    assert_eq!(sent(&[Fault::CutAfterEvents(1)], &stream(), 100_000).await.1, Ended::Broken);
    assert_eq!(begin.elapsed(), Duration::from_millis(20));
}

fn head(method: Method, uri: &str) -> Head {
    let uri: http::Uri = uri.parse().unwrap();
    let (headers, query) = (HeaderMap::new(), Query::parse(uri.query().unwrap_or_default()));
    let (wish, form) = Negotiated::read(&headers, &query, Served::BuiltIn);
    Head { method, target: Target::parse(uri.path()), uri, headers, query, wish, form }
}

fn decide(faults: &Faults, uri: &str) -> Verdict {
    let head = head(Method::GET, uri);
    faults.decide(&Request::new(&head, "alice"))
}

fn fails(faults: &Faults, uri: &str) -> bool {
    decide(faults, uri) != Verdict::default()
}

const LIST: &str = "/api/v1/namespaces/web/pods";
const WATCH: &str = "/api/v1/namespaces/web/pods?watch=1&sendInitialEvents=true&resourceVersion=0";

#[tokio::test(start_paused = true)]
async fn a_rule_means_only_the_requests_it_names() {
    let all = || Rule::new(Fault::Disconnect);
    for (rule, list, watch) in [
        (all(), true, true),
        (all().verb(Verb::List), true, false),
        (all().verbs([Verb::Watch, Verb::Get]), false, true),
        (all().resource("", "pods"), true, true),
        (all().resource("apps", "pods"), false, false),
        (all().resource("", "nodes").resource("", "pods"), true, true),
        (all().namespace("web"), true, true),
        (all().namespace("db"), false, false),
        (all().user("alice"), true, true),
        (all().user("bob"), false, false),
        (all().path_prefix("/api/v1/namespaces/web"), true, true),
        (all().path_prefix("/apis"), false, false),
        (all().query("sendInitialEvents", "true"), false, true),
        (all().query_given("resourceVersion"), false, true),
        (all().when(|request| request.name().is_none()).verb(Verb::List), true, false),
        (Rule::new(Fault::OmitBookmarks), false, true),
        (Rule::new(Fault::StallAfterBytes(10)), true, true),
        (all().times(0), false, false),
    ] {
        let faults = Faults::new();
        faults.inject(rule.clone());
        assert_eq!((fails(&faults, LIST), fails(&faults, WATCH)), (list, watch), "{rule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_name_an_object_or_a_subresource() {
    const POD: &str = "/api/v1/namespaces/web/pods/a";
    const STATUS: &str = "/api/v1/namespaces/web/pods/a/status";
    let all = || Rule::new(Fault::Disconnect);
    for (rule, pod, status) in [
        (all().resource("", "pods"), true, true),
        (all().resource("", "pods/status"), false, true),
        (all().resource("", "pods/log"), false, false),
        (all().name("a"), true, true),
        (all().name("b").name("a").resource("", "pods/status"), false, true),
        (all().name("b"), false, false),
    ] {
        let faults = Faults::new();
        faults.inject(rule.clone());
        assert_eq!((fails(&faults, POD), fails(&faults, STATUS)), (pod, status), "{rule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_lets_some_pass_then_fires_so_often_and_no_more() {
    let faults = Faults::new();
    let handle = faults.inject(Rule::new(Fault::Disconnect).verb(Verb::List).after(2).times(3));
    let fired: Vec<bool> = (0..7).map(|_| fails(&faults, WATCH) || fails(&faults, LIST)).collect();
    assert_eq!(fired, [false, false, true, true, true, false, false]);
    assert_eq!(handle.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_rule_may_begin_later() {
    let faults = Faults::new();
    faults.inject(Rule::new(Fault::Disconnect).after_time(Duration::from_secs(60)).after(1));
    assert!(!fails(&faults, LIST));
    tokio::time::advance(Duration::from_secs(60)).await;
    assert!(!fails(&faults, LIST), "the one that is let pass");
    assert!(fails(&faults, LIST));
}

#[tokio::test(start_paused = true)]
async fn a_rule_can_be_removed_and_all_of_them_cleared() {
    let faults = Faults::new();
    let (first, second) = (faults.inject(Rule::new(Fault::Disconnect)), faults.inject(Rule::new(Fault::GoneAtOpen)));
    first.remove();
    assert_eq!(decide(&faults, LIST).answer, Some(Answer::Status(Status::expired(GONE))));
    faults.clear();
    assert!(!fails(&faults, LIST));
    assert_eq!((first.count(), second.count()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn one_can_wait_for_a_fault() {
    let faults = Faults::new();
    let handle = faults.inject(Rule::new(Fault::Disconnect).times(2));
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.fired(2).await }
    });
    assert!(fails(&faults, LIST) && fails(&faults, LIST));
    assert_eq!(waiting.await.unwrap(), 2);
    assert_eq!(handle.fired(9).await, 2, "used up: it will not come");
}

#[tokio::test(start_paused = true)]
async fn delays_add_up_and_the_first_answer_wins() {
    let faults = Faults::new();
    let delay = |seconds| Rule::new(Fault::Delay(Duration::from_secs(seconds)));
    faults.inject(delay(1));
    let stalled = faults.inject(Rule::new(Fault::StallAfterEvents(1)));
    let first = faults.inject(Rule::new(Fault::TooManyRequests).once());
    let second = faults.inject(Rule::new(Fault::Disconnect).once());
    faults.inject(delay(2));

    let verdict = decide(&faults, WATCH);
    assert_eq!((verdict.delay, verdict.answer), (Duration::from_secs(3), Some(Answer::TooManyRequests)));
    assert_eq!((stalled.count(), first.count(), second.count()), (0, 1, 0));
    assert_eq!(decide(&faults, WATCH).answer, Some(Answer::Disconnect));
    let verdict = decide(&faults, WATCH);
    assert_eq!((verdict.answer, verdict.stream), (None, vec![Fault::StallAfterEvents(1)]));
}

async fn response(fault: Fault) -> (u16, HeaderMap, String) {
    let faults = Faults::new();
    faults.inject(Rule::new(fault));
    let head = head(Method::GET, LIST);
    let answer = faults.decide(&Request::new(&head, "alice")).answer.unwrap();
    let (parts, body) = answer.respond(&head.wish).unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status.as_u16(), parts.headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn priority_and_fairness_refuses_in_plain_text() {
    let (code, headers, body) = response(Fault::TooManyRequests).await;
    assert_eq!((code, body.as_str()), (429, "Too many requests, please try again later.\n"));
    for (name, value) in
        [("content-type", "text/plain; charset=utf-8"), ("retry-after", "1"), ("x-content-type-options", "nosniff")]
    {
        assert_eq!(headers[name], value, "{name}");
    }
}

#[tokio::test]
async fn a_status_comes_with_and_without_a_time_to_come_again() {
    let (code, headers, body) = response(Fault::status(503)).await;
    assert_eq!((code, headers.get("retry-after")), (503, None));
    assert_eq!(
        body,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"the server is currently unable to handle the request\",\"reason\":\"ServiceUnavailable\",\"code\":503}\n"
    );
    let (_, headers, body) = response(Fault::status(503).retry_after(7)).await;
    assert_eq!(headers["retry-after"], "7");
    assert!(body.contains(r#""details":{"retryAfterSeconds":7},"code":503"#), "{body}");
    let own = Status::new(500, "InternalError", "etcd is on fire");
    assert!(response(Fault::Status(own)).await.2.contains("etcd is on fire"));
}

#[tokio::test]
async fn a_version_too_old_at_open_is_a_410() {
    let (code, _, body) = response(Fault::GoneAtOpen).await;
    assert_eq!(code, 410);
    assert!(body.ends_with("\"reason\":\"Expired\",\"code\":410}\n"), "{body}");
}

#[test]
fn a_dropped_connection_has_no_answer() {
    assert!(Answer::Disconnect.respond(&head(Method::GET, LIST).wish).is_none());
}
