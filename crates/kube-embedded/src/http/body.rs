//! Response bodies: complete, generated chunk by chunk, or unbounded streams.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

/// The body of a response.
///
/// Implements [`http_body::Body`]; the [in-process service](crate::Service) returns it.
pub struct Body(Inner);

enum Inner {
    Whole(Option<Bytes>),
    /// Generated while it is sent, so that a long list is never in memory twice.
    Chunks(Box<dyn Iterator<Item = Bytes> + Send>),
    Stream(Pin<Box<dyn http_body::Body<Data = Bytes, Error = io::Error> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self(Inner::Whole(None))
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self(Inner::Whole((!bytes.is_empty()).then_some(bytes)))
    }

    pub(crate) fn chunks(chunks: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Inner::Chunks(Box::new(chunks)))
    }

    pub(crate) fn stream(stream: impl http_body::Body<Data = Bytes, Error = io::Error> + Send + 'static) -> Self {
        Self(Inner::Stream(Box::pin(stream)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Inner::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Chunks(chunks) => Poll::Ready(chunks.next().map(|bytes| Ok(Frame::data(bytes)))),
            Inner::Stream(stream) => stream.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Whole(bytes) => bytes.is_none(),
            Inner::Chunks(_) => false,
            Inner::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Inner::Chunks(_) | Inner::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Inner::Whole(_) => "Body(whole)",
            Inner::Chunks(_) => "Body(chunks)",
            Inner::Stream(_) => "Body(stream)",
        })
    }
}

/// A stream of chunks as a body, with a guard that is dropped together with it.
pub(crate) struct StreamBody<S, L> {
    stream: Pin<Box<S>>,
    _guard: L,
}

impl<S, L> StreamBody<S, L> {
    pub(crate) fn new(stream: S, guard: L) -> Self {
        Self { stream: Box::pin(stream), _guard: guard }
    }
}

impl<S, L> http_body::Body for StreamBody<S, L>
where
    S: Stream<Item = io::Result<Bytes>>,
    L: Unpin,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.stream.as_mut().poll_next(cx).map_ok(Frame::data)
    }
}

/// A body with a guard that is dropped together with it.
pub(crate) struct GuardedBody<G> {
    body: Body,
    _guard: G,
}

impl<G> GuardedBody<G> {
    pub(crate) fn new(body: Body, guard: G) -> Self {
        Self { body, _guard: guard }
    }
}

impl<G: Unpin> http_body::Body for GuardedBody<G> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
