use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::Instant;

use super::*;
use crate::api::access::Access;
use crate::cluster::ClusterSettings;
use crate::http::tls::Tls;

/// The client's end of a connection.
fn connect(tls: Option<TlsAcceptor>) -> DuplexStream {
    let (client, server) = duplex(64 * 1024);
    let shared = ServerShared::new(ClusterSettings::default(), Access::open());
    let lifetime = shared.lifecycle.lifetime();
    tokio::spawn(serve(server, tls, shared, lifetime));
    client
}

/// Sends some bytes, and returns what is received until the server closes the connection, with the
/// seconds that took.
async fn until_closed(mut client: DuplexStream, bytes: &[u8]) -> (String, u64) {
    let began = Instant::now();
    client.write_all(bytes).await.expect("the server reads");
    let mut received = Vec::new();
    client.read_to_end(&mut received).await.expect("the connection is closed, not broken");
    (String::from_utf8_lossy(&received).into_owned(), began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_closed() {
    for begin in ["", "G", "PRI * HTTP/2.0", "GET /livez HTTP/1.1\r\nhost: x\r\nx-slow:"] {
        let (_, seconds) = until_closed(connect(None), begin.as_bytes()).await;
        assert!((32..=34).contains(&seconds), "{begin:?}: {seconds}");
    }
    // The preface of HTTP/2 and empty settings.
    let (_, seconds) = until_closed(connect(None), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    assert!((32..=34).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_tls_handshake_that_does_not_end_is_given_up() {
    let tls = Tls::new([127, 0, 0, 1].into()).expect("a certificate").acceptor;
    // The beginning of a handshake record of 512 bytes.
    for begin in [b"".as_slice(), b"\x16\x03\x01\x02\x00\x01"] {
        let (_, seconds) = until_closed(connect(Some(tls.clone())), begin).await;
        assert_eq!(seconds, 32);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_keeps_its_connection_open_and_the_time_after_it_is_limited() {
    let request = b"GET /api/v1/pods?watch=1&timeoutSeconds=300 HTTP/1.1\r\nhost: x\r\n\r\n";
    let (received, seconds) = until_closed(connect(None), request).await;
    assert!(received.starts_with("HTTP/1.1 200 OK\r\n") && received.ends_with("\r\n0\r\n\r\n"), "{received}");
    assert!((332..=334).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_gets_a_timeout() {
    let request = b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{";
    let (received, seconds) = until_closed(connect(None), request).await;
    assert!(received.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{received}");
    assert!((60..=62).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_of_http_2_is_closed_90_s_after_its_last_request() {
    let io = TokioIo::new(connect(None));
    let (mut sender, connection) =
        http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), io).await.expect("a handshake");
    let connection = tokio::spawn(connection);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(30)).await;
        let request = http::Request::get("http://x/livez").body(Empty::new()).expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "ok");
    }
    let began = Instant::now();
    drop(connection.await.expect("the connection does not panic"));
    assert!((90..=92).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}
