//! The server itself: starting it, reaching it, and shutting down without leaks.

use std::time::Duration;

use crate::support::Client;
use http_body_util::{BodyExt as _, Full};
use kube_embedded::Server;
use serde_json::json;
use tokio::time::Instant;

#[tokio::test]
async fn a_server_says_which_release_it_is() {
    let server = Server::builder().in_process().start().await.unwrap();
    let answer = Client::of(&server).get("/version").await.expect(200);
    assert_eq!(answer.json()["minor"], "37");
    assert!(answer.text().starts_with("{\n  \"major\": \"1\""), "always indented");
    for probe in ["/livez", "/readyz", "/healthz"] {
        assert_eq!(Client::of(&server).get(probe).await.expect(200).text(), "ok");
    }
    assert_eq!(Client::of(&server).get("/nowhere").await.expect(404).text(), "404 page not found\n");
}

#[tokio::test]
async fn many_servers_run_side_by_side() {
    let mut servers = Vec::new();
    for _ in 0..20 {
        servers.push(Server::builder().start().await.unwrap());
    }
    let mut urls: Vec<_> = servers.iter().map(Server::url).collect();
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_watching_passes_at_once_on_a_paused_clock() {
    let server = Server::builder().in_process().start().await.unwrap();
    let started = Instant::now();
    let mut watch = Client::of(&server).watch("/api/v1/pods?watch=1&timeoutSeconds=3600").await;
    assert_eq!(watch.next().await, None, "an idle kind ends without a word");
    assert_eq!(started.elapsed(), Duration::from_secs(3600));
}

#[tokio::test]
async fn shutdown_ends_open_watches_cleanly() {
    let server = Server::builder().in_process().start().await.unwrap();
    let mut watch = Client::of(&server).watch("/api/v1/pods?watch=1").await;
    assert_eq!(server.watches().len(), 1);
    server.shutdown().await;
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_test_waits_until_the_server_is_in_a_state() {
    let server = Server::builder().in_process().start().await.unwrap();
    let client = Client::of(&server);
    let opened = server.until(|server| server.watches().len() == 1);
    let (watch, ()) = tokio::join!(client.watch("/api/v1/pods?watch=1"), opened);
    tokio::join!(server.until(|server| server.watches().is_empty()), async move { drop(watch) });
    tokio::join!(server.until(|server| server.request_count() == 2), client.get("/version"));
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let before = server.revision();
    let written = async { server.create(&body).unwrap() };
    tokio::join!(server.until(|server| server.revision() > before), written);
    // Not before the state is reached.
    let never = tokio::time::timeout(Duration::from_secs(3600), server.until(|_| false));
    assert!(never.await.is_err());
}

#[tokio::test]
async fn a_restart_cuts_open_watches() {
    let server = Server::builder().in_process().start().await.unwrap();
    let mut watch = Client::of(&server).watch("/api/v1/pods?watch=1").await;
    server.restart();
    assert!(watch.try_next().await.is_err());
    drop(watch);
    assert!(server.watches().is_empty());
}

#[tokio::test]
async fn a_server_that_refuses_is_refused_by_the_operating_system() {
    let server = Server::builder().start().await.unwrap();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    drop(tokio::net::TcpStream::connect(&address).await.unwrap());
    server.refuse().await;
    let refused = tokio::net::TcpStream::connect(&address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    server.accept().await;
    drop(tokio::net::TcpStream::connect(&address).await.unwrap());
}

#[tokio::test]
async fn one_http2_connection_carries_many_watches() {
    let server = Server::builder().start().await.unwrap();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut bodies = Vec::new();
    for _ in 0..20 {
        let uri = format!("http://{address}/api/v1/configmaps?watch=1&resourceVersion={}", server.revision());
        let request = http::Request::get(uri).body(Full::<bytes::Bytes>::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
        bodies.push(response.into_body());
    }
    assert_eq!(server.watches().len(), 20);
    server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).unwrap();
    for body in &mut bodies {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(frame.starts_with(b"{\"type\":\"ADDED\""));
    }
    server.shutdown().await;
    for body in bodies {
        let rest = body.collect().await.expect("every stream ends cleanly").to_bytes();
        assert!(rest.is_empty(), "{rest:?}");
    }
    drop(sender);
    connection.await.unwrap().unwrap();
}

#[tokio::test]
async fn after_shutdown_no_task_and_no_connection_is_left() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let server = Server::builder().garbage_collection().namespace_deletion().tls().start().await.unwrap();
    let address = server.url().strip_prefix("https://").unwrap().to_owned();
    let client = tokio::net::TcpStream::connect(&address).await.unwrap();
    let mut watch = Client::of(&server).watch("/api/v1/pods?watch=1").await;
    assert!(alive() > before);
    server.shutdown().await;
    assert_eq!(watch.next().await, None);
    assert_eq!(alive(), before);
    let refused = tokio::net::TcpStream::connect(&address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    drop(client);
}
