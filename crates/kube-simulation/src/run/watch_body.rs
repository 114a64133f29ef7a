//! The body of a watch: each event is held back until the view of the replica has reached it.

use std::collections::VecDeque;
use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use futures_util::stream;
use http_body::Frame;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::watch;

use super::conductor::{Session, Signal};

struct Watching<B> {
    inner: B,
    signals: watch::Receiver<Signal>,
    cuts: u64,
    views: watch::Receiver<u64>,
    partial: BytesMut,
    /// Complete frames, with their revisions.
    held: VecDeque<(u64, Bytes)>,
    /// The number of frames after which the connection breaks.
    cut_after: Option<usize>,
}

/// The frames of a watch of this session, after those with which it begins.
pub(crate) fn frames<B>(
    inner: B,
    session: &Session,
    cut_after: Option<usize>,
    initial: Vec<Bytes>,
) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Send + use<B>
where
    B: http_body::Body<Data = Bytes, Error = io::Error> + Unpin + Send,
{
    let signals = session.signals();
    let cuts = signals.borrow().cuts;
    let views = session.replica().views();
    let partial = BytesMut::new();
    let held = initial.into_iter().map(|frame| (0, frame)).collect();
    let watching = Watching { inner, signals, cuts, views, partial, held, cut_after };
    stream::unfold(Some(watching), async |watching| {
        let mut watching = watching?;
        match watching.next().await? {
            Ok(frame) => Some((Ok(Frame::data(frame)), Some(watching))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl<B> Watching<B>
where
    B: http_body::Body<Data = Bytes, Error = io::Error> + Unpin,
{
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            if self.cut_after == Some(0) {
                return Some(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let signal = *self.signals.borrow_and_update();
            if signal.is_severed {
                std::future::pending::<()>().await;
            }
            if signal.cuts != self.cuts {
                return Some(Err(io::ErrorKind::ConnectionReset.into()));
            }
            let due = self.held.front().map(|(revision, _)| *revision);
            let shown = *self.views.borrow_and_update();
            if due.is_some_and(|due| due <= shown) {
                self.cut_after = self.cut_after.map(|left| left - 1);
                return self.held.pop_front().map(|(_, frame)| Ok(frame));
            }
            tokio::select! {
                biased;
                _ = self.signals.changed() => {}
                _ = self.views.changed(), if due.is_some() => {}
                frame = self.inner.frame(), if due.is_none() => match frame? {
                    Ok(frame) => self.split(&frame.into_data().unwrap_or_default()),
                    Err(error) => return Some(Err(error)),
                }
            }
        }
    }

    fn split(&mut self, chunk: &[u8]) {
        self.partial.extend_from_slice(chunk);
        while let Some(end) = self.partial.iter().position(|byte| *byte == b'\n') {
            let frame = self.partial.split_to(end + 1).freeze();
            let event: Value = serde_json::from_slice(&frame).unwrap_or_default();
            let revision = event["object"]["metadata"]["resourceVersion"].as_str();
            self.held.push_back((revision.and_then(|revision| revision.parse().ok()).unwrap_or(0), frame));
        }
    }
}
