//! The HTTP server of a manager.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::status::{Report, Status};

/// The number of connections at the same time. More wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a client may take for the head of a request, and between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one connection is served, whatever it does.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);
/// How long responses may take after the end.
const SHUTDOWN: Duration = Duration::from_secs(1);
/// The wait after an error of the listener, such as too many open files.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// The largest head of a request.
const MAX_HEAD: usize = 16 * 1024;

/// Serves the status of a manager.
pub(super) struct HttpServer {
    listener: TcpListener,
    status: Arc<Status>,
}

/// A server that runs. Dropping it ends its task and connections.
pub(super) struct RunningServer {
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

impl HttpServer {
    pub(super) fn new(listener: TcpListener, status: Arc<Status>) -> Self {
        Self { listener, status }
    }

    pub(super) fn start(self) -> RunningServer {
        let stop = watch::Sender::new(false);
        let task = tokio::spawn(self.serve(stop.subscribe()));
        RunningServer { stop, task: Some(task) }
    }

    async fn serve(self, mut stop: watch::Receiver<bool>) {
        let Self { listener, status } = self;
        let (permits, mut connections) = (Arc::new(Semaphore::new(CONNECTIONS)), JoinSet::new());
        loop {
            let accepted = tokio::select! {
                biased;
                // An error: the running server was dropped.
                _ = stop.wait_for(|stop| *stop) => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&listener, &permits) => accepted,
            };
            if let Some((stream, permit)) = accepted {
                let connection = serve_connection(stream, Arc::clone(&status), stop.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(permit);
                });
            }
        }
        drop(listener);
        let rest = async { while connections.join_next().await.is_some() {} };
        timeout(SHUTDOWN, rest).await.ok();
        connections.shutdown().await;
    }
}

impl RunningServer {
    /// Answers the requests that have begun, and ends.
    pub(super) async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            // Only a panic would be an error, and has been reported.
            task.await.ok();
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    // The semaphore is never closed.
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, permit)),
        Err(error) => {
            warn!(%error, "a connection for probes and metrics could not be accepted");
            sleep(ACCEPT_RETRY).await;
            None
        }
    }
}

async fn serve_connection(stream: TcpStream, status: Arc<Status>, mut stop: watch::Receiver<bool>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &status);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    let served = async {
        tokio::pin!(connection);
        tokio::select! {
            served = &mut connection => return served,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    };
    match timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection for probes and metrics has failed"),
        Err(_) => debug!("a connection for probes and metrics has reached its time limit"),
    }
}

fn respond<B>(request: &Request<B>, status: &Status) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/healthz" | "/livez" => report(status.health()),
        "/readyz" => report(status.readiness()),
        "/metrics" => {
            let mut response = text(StatusCode::OK, status.metrics());
            let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, format);
            response
        }
        _ => text(StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_owned()),
    }
}

fn report(Report { is_ok, text: body }: Report) -> Response<Full<Bytes>> {
    text(if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
