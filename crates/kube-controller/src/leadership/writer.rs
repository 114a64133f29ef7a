//! The writing half of a client.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::header::UPGRADE;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Service};

use super::Leadership;
use super::guarded_body::{BodyGuard, Guard};
use super::term::Term;

/// The writing half of a client: each request is checked against the [`Leadership`] it came from.
/// Cheap to clone.
///
/// A request other than GET, HEAD and OPTIONS is sent only while the leadership is held. That is
/// checked when the connection asks for its body: what waits in a queue, for a connection, a
/// handshake or a token does not leave the process once the leadership is lost, and fails with
/// [`LeadershipLost`](super::LeadershipLost). A response that does not arrive before another
/// process may write is no longer waited for: [`WriteTimedOut`].
///
/// Reads are passed on as they are, also after a loss. kube's retries do not repeat checked writes.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    leadership: Leadership,
}

/// A write was sent, and no response arrived while the leadership lasted. Whether it was executed
/// is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no response to the write arrived while the leadership by lease {lease} lasted; it may have been executed")]
pub struct WriteTimedOut {
    lease: String,
}

impl Writer {
    pub(super) fn new(client: Client, leadership: Leadership) -> Self {
        let client = match leadership.term() {
            None => client,
            Some(term) => {
                let namespace = client.default_namespace().to_owned();
                Client::new(Guarded { client, bodies: BodyGuard::new(), term: Arc::clone(term) }, namespace)
            }
        };
        Self { client, leadership }
    }

    /// Returns a client whose requests are checked.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The leadership that the requests are checked against.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

/// The service below the client of an elected [`Writer`].
struct Guarded {
    client: Client,
    bodies: BodyGuard,
    term: Arc<Term>,
}

impl Service<Request<Body>> for Guarded {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    /// The client has a queue of its own, which `send` waits for.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client.clone();
        if !is_write(&request) {
            return Box::pin(async move { Ok(client.send(request).await?) });
        }
        let (bodies, term) = (self.bodies.clone(), Arc::clone(&self.term));
        Box::pin(write(client, bodies, term, request))
    }
}

async fn write(
    client: Client,
    bodies: BodyGuard,
    term: Arc<Term>,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let limit = term.check()?;
    // Counted before the last check, so that a release waits for every write that passes it.
    let _in_flight = term.begin_write();
    let guard = Guard::new(Arc::clone(&term));
    let response = async {
        let (parts, body) = request.into_parts();
        let body = bodies.guarded(body, guard.clone()).await?;
        client.send(Request::from_parts(parts, body)).await
    };
    match term.until(limit, response).await {
        Some(Ok(response)) => Ok(response),
        // Not what hyper made of it.
        Some(Err(_)) if guard.was_stopped() => Err(term.lost().await.into()),
        Some(Err(error)) => Err(error.into()),
        None => Err(WriteTimedOut { lease: term.lease().to_owned() }.into()),
    }
}

/// Whether a request may change something: also what is upgraded to a connection, such as `exec`.
fn is_write(request: &Request<Body>) -> bool {
    !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        || request.headers().contains_key(UPGRADE)
}
