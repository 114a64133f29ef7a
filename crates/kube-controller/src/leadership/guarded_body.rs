//! The body of a write, which is not handed out once the leadership is lost.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::{Ready, ready};
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, service_fn};

use super::lost::LeadershipLost;
use super::term::Term;

/// The body of one write. It checks the leadership when it is first read.
///
/// The connection reads a body after it has taken the request from the last queue, and writes
/// nothing to the socket before: hyper buffers the head of a request until the body is ready, and
/// drops the connection if it fails. So this is the last point in the process at which a request
/// can be stopped, after connecting, TLS handshakes, tokens that are fetched, and waits of
/// middleware. An empty body is sent as a chunked one, because one of known length 0 would never be
/// read.
pub(super) struct GuardedBody {
    inner: Body,
    guard: Guard,
    is_checked: bool,
}

/// The check of one write, shared by its body and the future of its response.
#[derive(Clone)]
pub(super) struct Guard {
    term: Arc<Term>,
    was_stopped: Arc<AtomicBool>,
}

impl Guard {
    pub(super) fn new(term: Arc<Term>) -> Self {
        Self { term, was_stopped: Arc::default() }
    }

    /// Whether the body was not handed out, so that the server has not received the request.
    pub(super) fn was_stopped(&self) -> bool {
        self.was_stopped.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<(), LeadershipLost> {
        self.term.check().map(drop).inspect_err(|_| self.was_stopped.store(true, Ordering::Release))
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.is_checked {
            if let Err(lost) = self.guard.check() {
                return Poll::Ready(Some(Err(lost.into())));
            }
            self.is_checked = true;
        }
        Pin::new(&mut self.inner).poll_frame(cx).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.is_checked && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.inner.size_hint();
        if !self.is_checked && hint.exact() == Some(0) { SizeHint::new() } else { hint }
    }
}

/// Puts a [`Guard`] into bodies.
///
/// kube has no public constructor for a request body that is a stream, but makes one of the
/// response of any service: so this is a client whose responses are the bodies of its requests.
#[derive(Clone)]
pub(super) struct BodyGuard(Client);

impl BodyGuard {
    pub(super) fn new() -> Self {
        Self(Client::new(service_fn(echo), ""))
    }

    pub(super) async fn guarded(&self, body: Body, guard: Guard) -> Result<Body, kube::Error> {
        let mut request = Request::new(body);
        request.extensions_mut().insert(guard);
        Ok(self.0.send(request).await?.into_body())
    }
}

fn echo(request: Request<Body>) -> Ready<Result<Response<GuardedBody>, BoxError>> {
    let (mut parts, inner) = request.into_parts();
    let guard = parts.extensions.remove::<Guard>();
    ready(
        guard
            .map(|guard| Response::new(GuardedBody { inner, guard, is_checked: false }))
            .ok_or_else(|| "a body without a guard".into()),
    )
}
