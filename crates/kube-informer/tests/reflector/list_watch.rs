//! The client interface `ListWatch`: requests sent, and responses parsed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Client;
use kube_informer::client::{
    ApiListWatch, Body, Compression, Detail, Failure, Frame, ListQuery, ListVersion, ListWatch, ServerError,
    WatchQuery, WatchStart,
};
use kube_informer::{Kind, MetadataOnly, Version};

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Received requests: path and query, Accept, Accept-Encoding.
type Seen = Arc<Mutex<Vec<(String, String, String)>>>;

/// A client whose requests are answered by this function.
fn client(answer: impl Fn(&Request<kube::client::Body>) -> Answer + Send + Sync + 'static) -> (Client, Seen) {
    let seen = Seen::default();
    let seen_too = Arc::clone(&seen);
    let answer = Arc::new(answer);
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let header = |name| request.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        let line = (request.uri().to_string(), header("accept"), header("accept-encoding"));
        seen_too.lock().unwrap().push(line);
        let answer = answer(&request);
        async move { Ok::<_, Infallible>(answer) }
    });
    (Client::new(service, "default"), seen)
}

fn chunks(chunks: impl IntoIterator<Item = io::Result<Bytes>>) -> UnsyncBoxBody<Bytes, io::Error> {
    let chunks: Vec<_> = chunks.into_iter().map(|chunk| chunk.map(http_body::Frame::data)).collect();
    StreamBody::new(stream::iter(chunks)).boxed_unsync()
}

fn json(body: &str) -> Answer {
    Response::builder()
        .header("content-type", "application/json")
        .body(chunks([Ok(Bytes::copy_from_slice(body.as_bytes()))]))
        .unwrap()
}

fn failing(code: u16, content_type: &str, body: &[u8]) -> Answer {
    let body = chunks([Ok(Bytes::copy_from_slice(body))]);
    Response::builder().status(code).header("content-type", content_type).body(body).unwrap()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

async fn text(body: Body) -> Result<String, ServerError> {
    let chunks: Vec<_> = body.collect().await;
    let bytes: Vec<Bytes> = chunks.into_iter().collect::<Result<_, _>>()?;
    Ok(String::from_utf8(bytes.concat()).unwrap())
}

fn everything() -> ListQuery {
    ListQuery::new(ListVersion::Any)
}

fn watch_from(version: &str) -> WatchQuery {
    WatchQuery::new(WatchStart::After(Version::new(version)), Duration::from_secs(300))
}

#[tokio::test]
async fn a_request_names_resource_namespace_selectors_and_version() {
    let (client, seen) = client(|_| json("{}"));
    let source = ApiListWatch::new(client, Pod::resource())
        .namespace("kube-system")
        .labels("app in (a,b)")
        .fields("spec.nodeName=n 1")
        .tweak(|parameters| parameters.set("shardSelector", "x&y"));
    source.list(everything()).await.unwrap();
    source.watch(watch_from("7")).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen[0].0,
        "/api/v1/namespaces/kube-system/pods?resourceVersion=0&labelSelector=app+in+%28a%2Cb%29\
         &fieldSelector=spec.nodeName%3Dn+1&shardSelector=x%26y"
    );
    assert!(
        seen[1]
            .0
            .starts_with("/api/v1/namespaces/kube-system/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7")
    );
    assert_eq!(seen[0].1, "application/json");
}

#[tokio::test]
async fn metadata_alone_is_requested_where_the_type_says_so_or_no_body_is_needed() {
    let (client, seen) = client(|_| json("{}"));
    let metadata = ApiListWatch::of::<MetadataOnly<ConfigMap>>(client.clone());
    metadata.list(everything()).await.unwrap();
    metadata.watch(watch_from("7")).await.unwrap();
    let mut probe = everything();
    probe.detail = Detail::Metadata;
    ApiListWatch::of::<ConfigMap>(client).list(probe).await.unwrap();
    let accepts: Vec<String> = seen.lock().unwrap().iter().map(|(_, accept, _)| accept.clone()).collect();
    assert_eq!(
        accepts,
        [
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        ]
    );
}

#[tokio::test]
async fn a_watch_of_many_gzip_members_is_unpacked() {
    let (client, _) = client(|_| {
        let members = [gzip("{\"a\":1}\n"), gzip("{\"b\":2}\n")].concat();
        let split = members.chunks(5).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect::<Vec<_>>();
        Response::builder()
            .header("content-type", "application/json")
            .header("content-encoding", "gzip")
            .header("vary", "Accept-Encoding")
            .body(chunks(split))
            .unwrap()
    });
    let source = ApiListWatch::new(client, Pod::resource());
    assert_eq!(text(source.watch(watch_from("7")).await.unwrap()).await.unwrap(), "{\"a\":1}\n{\"b\":2}\n");
}

#[tokio::test]
async fn a_watch_that_a_proxy_decompressed_is_requested_again_uncompressed() {
    let (client, seen) = client(|request| {
        let mut answer = json("{}\n");
        if request.headers()["accept-encoding"] == "gzip" {
            answer.headers_mut().insert("vary", "Accept-Encoding".parse().unwrap());
        }
        answer
    });
    let source = ApiListWatch::new(client, Pod::resource()).compression(Compression::Gzip);
    source.watch(watch_from("7")).await.unwrap();
    source.watch(watch_from("8")).await.unwrap();
    let encodings: Vec<String> = seen.lock().unwrap().iter().map(|(_, _, encoding)| encoding.clone()).collect();
    assert_eq!(encodings, ["gzip", "identity", "identity"], "and that is remembered");
}

#[tokio::test]
async fn responses_are_compressed_if_set_and_by_default_if_this_crate_is_optimised() {
    // The workspace optimises this crate in debug builds too; `bench/first-hour` builds it without.
    let (gzip, identity) = ("gzip", "identity");
    let (by_default, auto) = (None, Some(Compression::Auto));
    let (on, off) = (Some(Compression::Gzip), Some(Compression::None));
    for (compression, encoding) in [(by_default, gzip), (auto, gzip), (on, gzip), (off, identity)] {
        let (client, seen) = client(|_| json("{}"));
        let source = ApiListWatch::new(client, Pod::resource());
        let source = compression.into_iter().fold(source, ApiListWatch::compression);
        source.list(everything()).await.unwrap();
        assert_eq!(seen.lock().unwrap()[0].2, encoding);
    }
}

#[tokio::test]
async fn bytes_that_are_no_gzip_are_an_error_and_a_broken_off_member_too() {
    for (body, broken_off) in [(b"plain text, and no gzip at all".to_vec(), false), (gzip("{}")[..12].to_vec(), true)] {
        let (client, _) = client(move |_| {
            Response::builder()
                .header("content-encoding", "gzip")
                .body(chunks([Ok(Bytes::from(body.clone()))]))
                .unwrap()
        });
        let source = ApiListWatch::new(client, Pod::resource());
        let error = text(source.list(everything()).await.unwrap()).await.unwrap_err();
        match error.failure() {
            Failure::Gzip => assert!(!broken_off),
            Failure::BodyCut(_) => assert!(broken_off),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_says_so() {
    let (client, _) = client(|_| {
        let broken = io::Error::from(io::ErrorKind::ConnectionReset);
        Response::new(chunks([Ok(Bytes::from_static(b"{\"items\":[")), Err(broken)]))
    });
    let source = ApiListWatch::new(client, Pod::resource()).namespace("a");
    let mut body = source.list(everything()).await.unwrap();
    assert!(body.next().await.unwrap().is_ok());
    let error = body.next().await.unwrap().unwrap_err();
    assert!(error.to_string().starts_with("listing pods in namespace a: the answer broke off: "), "{error}");
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_refused_connection_is_distinguished_from_other_failures() {
    for (kind, refused) in [(io::ErrorKind::ConnectionRefused, true), (io::ErrorKind::HostUnreachable, false)] {
        let service =
            tower::service_fn(
                move |_: Request<kube::client::Body>| async move { Err::<Answer, io::Error>(kind.into()) },
            );
        let source = ApiListWatch::new(Client::new(service, "default"), Pod::resource());
        let error = source.watch(watch_from("7")).await.unwrap_err();
        assert_eq!(error.is_connection_refused(), refused, "{error}");
        assert_eq!(matches!(error.failure(), Failure::Transport(_)), !refused);
    }
}

#[tokio::test]
async fn failure_responses_are_reported_in_any_format() {
    let cases: [(u16, &str, &[u8], &str); 5] = [
        (
            403,
            "application/json",
            br#"{"kind":"Status","message":"no","reason":"Forbidden","code":403}"#,
            "403 Forbidden: no",
        ),
        (404, "text/plain; charset=utf-8", b"404 page not found\n", "404 NotFound: 404 page not found"),
        (502, "text/html", b"<html>secret</html>", "502 BadGateway: (a page of 19 bytes, probably of a proxy)"),
        (
            500,
            "application/json",
            br#"{"kind":"Secret","data":{}}"#,
            "500 InternalServerError: (a body of 27 bytes that is no Status)",
        ),
        (401, "application/vnd.kubernetes.protobuf", b"k8s\0\x12\x07\x1a\x02no\x30\x91\x03", "401 Unauthorized: no"),
    ];
    for (code, content_type, body, expected) in cases {
        let (client, _) = client(move |_| failing(code, content_type, body));
        let error = ApiListWatch::new(client, Pod::resource()).list(everything()).await.unwrap_err();
        assert_eq!(error.to_string(), format!("listing pods: the server answered {expected}"));
        assert_eq!(error.code(), Some(code));
    }
}

#[tokio::test]
async fn a_failure_without_end_is_read_only_so_far() {
    let (client, _) = client(|_| {
        let endless = stream::repeat_with(|| Ok(http_body::Frame::data(Bytes::from(vec![b'x'; 1 << 20]))));
        Response::builder().status(500).body(StreamBody::new(endless).boxed_unsync()).unwrap()
    });
    let error = ApiListWatch::new(client, Pod::resource()).list(everything()).await.unwrap_err();
    assert!(error.to_string().len() < 2_000);
}

#[tokio::test]
async fn a_page_in_place_of_a_list_is_no_list() {
    let (client, _) = client(|_| failing(200, "text/html; charset=utf-8", b"<html>please log in</html>"));
    let error = ApiListWatch::new(client, Pod::resource()).list(everything()).await.unwrap_err();
    assert_eq!(error.to_string(), "listing pods: the answer is no JSON but text/html");
}

#[tokio::test]
async fn a_namespace_that_cannot_stand_in_a_path_is_an_error_not_a_panic() {
    let (client, _) = client(|_| json("{}"));
    let error = ApiListWatch::new(client, Pod::resource()).namespace("a b\n").list(everything()).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Request(_)), "{error}");
}

#[tokio::test]
async fn a_source_of_ones_own_answers_as_a_server_would() {
    let map = "{\"metadata\":\n{\"name\":\"a\"}}";
    let list = text(Body::from_list(&Version::new("7"), [map, map])).await.unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["metadata"]["resourceVersion"], "7");
    assert_eq!(list["items"].as_array().unwrap().len(), 2);

    let frames = [
        Frame::Added(map.into()),
        Frame::Bookmark(Version::new("8")),
        Frame::InitialEventsEnd(Version::new("9")),
        Frame::expired("too \"old\""),
    ];
    let watch = text(Body::from_frames(stream::iter(frames))).await.unwrap();
    let lines: Vec<serde_json::Value> = watch.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4, "a line break within an object breaks no line");
    assert_eq!(lines[0]["object"]["metadata"]["name"], "a");
    assert_eq!(lines[1]["object"]["metadata"]["resourceVersion"], "8");
    assert_eq!(lines[2]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!((&lines[3]["object"]["code"], &lines[3]["object"]["message"]), (&410.into(), &"too \"old\"".into()));
}

#[tokio::test]
async fn a_shared_source_is_a_source() {
    fn is_source(_: &impl ListWatch) {}
    let (client, seen) = client(|_| json("{}"));
    let source = Arc::new(ApiListWatch::new(client, Pod::resource()));
    is_source(&source);
    ListWatch::list(&source, everything()).await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
}
