//! Fault injection in the server, in process and over sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::ErrorKind;
use std::time::Duration;

use crate::support::Client;
use http::Method;
use http_body_util::{BodyExt as _, Full};
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use serde_json::json;
use tokio::time::Instant;

async fn with_config_maps(count: usize) -> Server {
    let server = Server::builder().in_process().start().await.unwrap();
    for i in 0..count {
        server
            .create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")}}))
            .unwrap();
    }
    server
}

const WATCH: &str =
    "/api/v1/configmaps?watch=1&allowWatchBookmarks=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan";

#[tokio::test]
async fn a_status_is_answered_as_often_as_the_rule_says() {
    let server = with_config_maps(1).await;
    let rule = Rule::new(Fault::status(503).retry_after(7)).verb(Verb::List).resource("", "configmaps").times(2);
    let handle = server.faults().inject(rule);
    let client = Client::of(&server);
    for _ in 0..2 {
        let refused = client.get("/api/v1/configmaps").await.expect(503);
        assert_eq!(refused.header("retry-after"), Some("7"));
    }
    client.get("/api/v1/configmaps").await.expect(200);
    assert_eq!(handle.count(), 2);
}

#[tokio::test]
async fn a_rule_may_be_for_one_object_or_one_subresource() {
    let server = with_config_maps(2).await;
    let client = Client::of(&server);
    let faults = server.faults();
    faults.inject(Rule::new(Fault::status(503)).resource("", "configmaps").name("c1"));
    client.get("/api/v1/namespaces/default/configmaps/c0").await.expect(200);
    client.get("/api/v1/namespaces/default/configmaps/c1").await.expect(503);
    client.get("/api/v1/configmaps").await.expect(200);

    faults.inject(Rule::new(Fault::status(418)).verb(Verb::Get).subresource("status"));
    faults.inject(Rule::new(Fault::status(429)).resource("", "namespaces").subresource(""));
    client.get("/api/v1/namespaces/default/status").await.expect(418);
    client.get("/api/v1/namespaces/default").await.expect(429);
    client.get("/version").await.expect(200);
}

#[tokio::test]
async fn too_many_requests_are_refused_in_plain_text() {
    let server = with_config_maps(1).await;
    server.faults().inject(Rule::new(Fault::TooManyRequests).once());
    let refused = Client::of(&server).get("/api/v1/configmaps").await.expect(429);
    assert_eq!(refused.text(), "Too many requests, please try again later.\n");
    assert_eq!(refused.header("content-type"), Some("text/plain; charset=utf-8"));
}

#[tokio::test]
async fn a_dropped_connection_gives_no_answer_and_is_remembered() {
    let server = with_config_maps(1).await;
    server.faults().inject(Rule::new(Fault::Disconnect).once());
    let client = Client::of(&server);
    let broken = client.open(Method::GET, "/api/v1/configmaps", &[], "").await.unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.requests().last().unwrap().code, None);
}

#[tokio::test]
async fn a_response_may_be_lost_after_the_write_was_stored() {
    let server = with_config_maps(1).await;
    server.faults().inject(Rule::new(Fault::LoseResponse).verb(Verb::Delete).once());
    let client = Client::of(&server);
    let path = "/api/v1/namespaces/default/configmaps/c0";
    let broken = client.open(Method::DELETE, path, &[], "").await.unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.requests().last().unwrap().code, None);
    client.get(path).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_come_late() {
    let server = with_config_maps(1).await;
    server.faults().inject(Rule::new(Fault::Delay(Duration::from_secs(40))).once());
    let began = Instant::now();
    Client::of(&server).get("/api/v1/configmaps").await.expect(200);
    assert_eq!(began.elapsed(), Duration::from_secs(40));
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_stays_open_and_says_nothing() {
    let server = with_config_maps(3).await;
    server.faults().inject(Rule::new(Fault::StallAfterEvents(2)).once());
    let mut watch = Client::of(&server).watch(WATCH).await;
    watch.next().await.unwrap();
    watch.next().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_secs(3600), watch.next()).await;
    assert!(waited.is_err(), "nothing for an hour");
    assert_eq!(server.watches().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_may_never_end_its_first_phase() {
    let server = with_config_maps(2).await;
    server.faults().inject(Rule::new(Fault::OmitInitialEventsEnd).query_given("sendInitialEvents").once());
    let mut watch = Client::of(&server).watch(WATCH).await;
    assert_eq!(watch.step().await.unwrap().0, "ADDED");
    assert_eq!(watch.step().await.unwrap().0, "ADDED");
    server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}})).unwrap();
    assert_eq!(watch.step().await.unwrap().1, "later", "the stream goes on without the bookmark");
}

#[tokio::test]
async fn an_established_stream_may_say_gone() {
    let server = with_config_maps(3).await;
    server.faults().inject(Rule::new(Fault::GoneAfterEvents(1)).once());
    let mut watch = Client::of(&server).watch(WATCH).await;
    watch.next().await.unwrap();
    let gone = watch.next().await.unwrap();
    assert_eq!((&gone["type"], &gone["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.next().await, None);
}

/// Sends a request over a raw socket, to observe what the operating system delivers.
async fn over_socket(server: &Server, path: &str) -> Result<Vec<u8>, hyper::Error> {
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = http::Request::get(path).header("host", "embedded").body(Full::<bytes::Bytes>::default()).unwrap();
    let mut body = sender.send_request(request).await?.into_body();
    let mut read = Vec::new();
    let broken = loop {
        match body.frame().await {
            Some(Ok(frame)) => read.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Some(Err(error)) => break Err(error),
            None => break Ok(()),
        }
    };
    drop(connection);
    match broken {
        Ok(()) => Ok(read),
        Err(_) => {
            read.extend_from_slice(b"<broken>");
            Ok(read)
        }
    }
}

#[tokio::test]
async fn a_cut_in_the_middle_of_a_frame_reaches_the_socket() {
    let server = Server::builder().start().await.unwrap();
    for i in 0..3 {
        server
            .create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")}}))
            .unwrap();
    }
    server.faults().inject(Rule::new(Fault::CutWithinEvent(1)).once());
    let read = String::from_utf8(over_socket(&server, WATCH).await.unwrap()).unwrap();
    let (whole, rest) = read.split_once('\n').expect("one whole event came through");
    assert!(serde_json::from_str::<serde_json::Value>(whole).is_ok());
    assert!(rest.ends_with("<broken>") && rest.len() > "<broken>".len() && !rest.contains('\n'), "{rest:?}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_dropped_connection_is_dropped_on_the_socket_too() {
    let server = Server::builder().start().await.unwrap();
    server.faults().inject(Rule::new(Fault::Disconnect).once());
    assert!(over_socket(&server, "/api/v1/configmaps").await.is_err());
    assert!(over_socket(&server, "/api/v1/configmaps").await.is_ok());
    server.shutdown().await;
}
