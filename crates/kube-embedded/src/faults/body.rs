//! A response body with faults.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::{Sleep, sleep};

use super::Fault;
use super::editor::{Edited, Editor, Stop};
use crate::http::lifecycle::{Ending, Lifetime};
use crate::http::negotiate::Encoding;

/// Delay between the last bytes and breaking the connection. Bytes still queued in the server are
/// lost with the connection, so without it the client would not receive them.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// A response body with faults.
///
/// Needs uncompressed frames, so it wraps a stream before compression.
pub(crate) struct FaultyBody<B> {
    inner: Pin<Box<B>>,
    editor: Editor,
    state: BodyState,
    lifetime: Option<Lifetime>,
}

enum BodyState {
    New,
    Open,
    Cutting(Pin<Box<Sleep>>),
    /// Until the server stops.
    Stalled(Pin<Box<dyn Future<Output = Ending> + Send>>),
    Ended,
}

impl<B> FaultyBody<B> {
    /// A stalled body ends with `lifetime`.
    pub(crate) fn new(
        inner: B,
        faults: impl IntoIterator<Item = Fault>,
        encoding: Encoding,
        lifetime: Lifetime,
    ) -> Self {
        let editor = Editor::new(faults, encoding);
        Self { inner: Box::pin(inner), editor, state: BodyState::New, lifetime: Some(lifetime) }
    }

    /// Enters the state that the edit requires, and returns the bytes to send.
    fn follow(&mut self, edited: Edited) -> Option<Bytes> {
        match edited.stop {
            None => self.state = BodyState::Open,
            Some(Stop::End) => self.state = BodyState::Ended,
            Some(Stop::Cut) => self.state = BodyState::Cutting(Box::pin(sleep(BEFORE_CUT))),
            Some(Stop::Stall) => {
                let lifetime = self.lifetime.take();
                self.state = BodyState::Stalled(Box::pin(async move {
                    match lifetime {
                        Some(mut lifetime) => lifetime.ended().await,
                        None => std::future::pending().await,
                    }
                }));
            }
        }
        (!edited.bytes.is_empty()).then_some(edited.bytes)
    }
}

impl<B: http_body::Body<Data = Bytes, Error = io::Error>> http_body::Body for FaultyBody<B> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        loop {
            let edited = match &mut this.state {
                BodyState::New => this.editor.begin(),
                BodyState::Open => match ready!(this.inner.as_mut().poll_frame(cx)) {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => this.editor.push(data),
                        Err(other) => return Poll::Ready(Some(Ok(other))),
                    },
                    Some(Err(error)) => {
                        this.state = BodyState::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                    None => this.editor.finish(),
                },
                BodyState::Cutting(pause) => {
                    ready!(pause.as_mut().poll(cx));
                    this.state = BodyState::Ended;
                    return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
                }
                BodyState::Stalled(ended) => {
                    let ending = ready!(ended.as_mut().poll(cx));
                    this.state = BodyState::Ended;
                    return Poll::Ready(match ending {
                        Ending::Closed => None,
                        Ending::Cut => Some(Err(io::ErrorKind::ConnectionReset.into())),
                    });
                }
                BodyState::Ended => return Poll::Ready(None),
            };
            if let Some(bytes) = this.follow(edited) {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }
}

impl<B> fmt::Debug for FaultyBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyBody").field("editor", &self.editor).finish_non_exhaustive()
    }
}
