//! One connection: the TLS handshake, HTTP, and how long it may stay open without a request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use super::body::GuardedBody;
use super::lifecycle::{Ending, Lifetime};
use super::service::{ServerShared, Service};

/// How long a connection may take for the TLS handshake, for the head of its first request, and for
/// that of any HTTP/1.1 request. As on kube-apiserver.
const HEAD_TIMEOUT: Duration = Duration::from_secs(32);

/// How long a connection stays open after its last request. As on kube-apiserver.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// How long a connection may take to finish when it is closed.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Serves a connection until it ends.
pub(super) async fn serve<S>(stream: S, tls: Option<TlsAcceptor>, shared: Arc<ServerShared>, mut lifetime: Lifetime)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = tls else { return http(stream, shared, lifetime).await };
    let accepted = tokio::select! {
        accepted = timeout(HEAD_TIMEOUT, tls.accept(stream)) => accepted,
        _ = lifetime.ended() => return,
    };
    match accepted {
        Ok(Ok(stream)) => http(stream, shared, lifetime).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn http<S>(stream: S, shared: Arc<ServerShared>, mut lifetime: Lifetime)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).half_close(false);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .max_frame_size(256 * 1024);
    let activity = Activity::new();
    let service = hyper::service::service_fn(|request| {
        let pending = activity.begin();
        let response = Service::new(shared.clone()).call(request);
        async { io::Result::Ok(response.await?.map(|body| GuardedBody::new(body, pending))) }
    });
    let serving = server.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        ending = lifetime.ended() => match ending {
            Ending::Cut => return,
            Ending::Closed => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        },
        () = activity.idle() => {
            serving.as_mut().graceful_shutdown();
            // What is left of a half-sent request would keep the connection open.
            timeout(GRACE, serving).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The requests of one connection.
#[derive(Debug)]
struct Activity(Arc<watch::Sender<Requests>>);

/// The number of requests so far, and of those whose responses are not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Requests {
    begun: u64,
    pending: usize,
}

/// A request whose response is not complete.
#[derive(Debug)]
struct Pending(Arc<watch::Sender<Requests>>);

impl Activity {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Requests::default())))
    }

    fn begin(&self) -> Pending {
        self.0.send_modify(|requests| {
            requests.begun += 1;
            requests.pending += 1;
        });
        Pending(Arc::clone(&self.0))
    }

    /// Waits until there was no request for too long.
    async fn idle(&self) {
        let mut changes = self.0.subscribe();
        loop {
            let Requests { begun, pending } = *changes.borrow_and_update();
            let limit = if begun == 0 { HEAD_TIMEOUT } else { IDLE_TIMEOUT };
            // An error of `changed` would mean that the sender is gone, which `self` holds.
            match pending {
                0 if timeout(limit, changes.changed()).await.is_err() => return,
                0 => {}
                _ => drop(changes.changed().await),
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.send_modify(|requests| requests.pending -= 1);
    }
}

#[cfg(test)]
mod tests;
