//! GOAWAY. kube's own client has HTTP/1 only, but a `kube::Client` can be made of any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use kube_informer::Informer;
use tokio::io::{self, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tower::BoxError;

use crate::held;
use crate::hostile_server::{Exchange, HostileServer};
use crate::trial::{SMALL, run, settings};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const PREFACE: usize = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// Answers the first request on a connection with the beginning of a body, says GOAWAY, and waits
/// until the client hangs up.
async fn go_away(mut stream: TcpStream, body: &[u8], error: u8) -> io::Result<()> {
    stream.read_exact(&mut [0; PREFACE]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        stream.read_exact(&mut vec![0; length as usize]).await?;
        match (head[3], head[4]) {
            (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, 1, 0, &[])).await?,
            (HEADERS, _) => {
                // `:status: 200`, and the end of the headers.
                stream.write_all(&frame(HEADERS, 4, 1, &[0x88])).await?;
                stream.write_all(&frame(DATA, 0, 1, body)).await?;
                stream.write_all(&frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, error])).await?;
            }
            _ => {}
        }
    }
}

async fn over_http1(authority: &str, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(TcpStream::connect(authority).await?)).await?;
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}

async fn over_http2(authority: &str, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
    let stream = TokioIo::new(TcpStream::connect(authority).await?);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
    tokio::spawn(connection);
    let (mut parts, body) = request.into_parts();
    parts.uri = format!("http://{authority}{}", parts.uri).parse()?;
    Ok(sender.send_request(Request::from_parts(parts, body)).await?)
}

#[test]
fn a_goaway_is_a_connection_that_broke() {
    const NO_ERROR: u8 = 0;
    const ENHANCE_YOUR_CALM: u8 = 11;
    for error in [NO_ERROR, ENHANCE_YOUR_CALM] {
        run(async {
            let held_before = held();
            let server = HostileServer::start(held, Exchange::honest).await;
            let honest = server.url().strip_prefix("http://").unwrap().to_owned();
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let hostile = listener.local_addr().unwrap().to_string();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(go_away(stream, br#"{"kind":"ConfigMapList","items":["#, error));
                }
            });
            // Six requests meet the hostile server: lists first, then watches too.
            let met = Arc::new(AtomicUsize::new(0));
            let service = tower::service_fn({
                let met = Arc::clone(&met);
                move |request: Request<Body>| {
                    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
                    let nth = met.load(Ordering::Relaxed);
                    let is_met = nth < 3 || (is_watch && nth < 6);
                    met.fetch_add(usize::from(is_met), Ordering::Relaxed);
                    let (honest, hostile) = (honest.clone(), hostile.clone());
                    async move {
                        if is_met { over_http2(&hostile, request).await } else { over_http1(&honest, request).await }
                    }
                }
            });
            let maps = Informer::<ConfigMap>::builder(Client::new(service, "default")).reflector(settings()).start();
            maps.synced().await.unwrap();
            while met.load(Ordering::Relaxed) < 6 {
                tokio::task::yield_now().await;
            }
            maps.wait_until(kube_informer::ObjectKey::namespaced("default", "honest"), |map| map.is_some())
                .await
                .unwrap();
            let mut health = maps.watch_health();
            health.wait_for(kube_informer::Health::is_synced).await.unwrap();
            assert!(server.peak() - held_before < SMALL);
            maps.shutdown().await;
        });
    }
}
