//! One request and its response: turns bytes into inputs of the machine.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt};

use super::step::{Frame, Input, Lane, ServerState};
use super::{Intake, ObjectSource};
use crate::body::{Arrival, BodyEncoder};
use crate::client::Body;
use crate::client::{Failure, Operation, ServerError};
use crate::codec::{
    Frames, ListEnd, ListError, ListSplitter, MAX_OBJECT_SIZE, ProtobufFrames, ProtobufList, WatchFrame, Wire,
};
use crate::object::ObjectKey;
use crate::shard::{Shard, Sharded};
use crate::store::guarded;

/// A list or watch request, until the end of its response.
pub(crate) struct Flow {
    lane: Lane,
    operation: Operation,
    what: Arc<str>,
    stage: Stage,
    decoder: Decoder,
    /// The shard whose objects are accepted; none for all objects.
    shard: Option<Arc<Shard>>,
}

enum Stage {
    Requesting(BoxFuture<'static, Result<Body, ServerError>>),
    Reading(Body),
    /// Everything has been read, but not everything has been decoded.
    Ending,
    Finished,
}

enum Decoder {
    List(Splitter),
    Watch(Frames),
    ProtobufWatch(ProtobufFrames),
    Done,
}

/// A list in either wire format.
enum Splitter {
    Json(ListSplitter),
    Protobuf(ProtobufList),
}

impl Splitter {
    fn new(wire: Wire) -> Self {
        match wire {
            Wire::Json => Self::Json(ListSplitter::new(MAX_OBJECT_SIZE)),
            Wire::Protobuf => Self::Protobuf(ProtobufList::new(MAX_OBJECT_SIZE)),
        }
    }

    fn push(&mut self, bytes: Bytes) {
        match self {
            Self::Json(list) => list.push(bytes),
            Self::Protobuf(list) => list.push(bytes),
        }
    }

    fn next(&mut self) -> Option<Result<Bytes, ListError>> {
        match self {
            Self::Json(list) => list.next(),
            Self::Protobuf(list) => list.next(),
        }
    }

    fn finish(self) -> Result<ListEnd, ListError> {
        match self {
            Self::Json(list) => list.finish(),
            Self::Protobuf(list) => list.finish(),
        }
    }
}

impl Flow {
    pub(crate) fn list(what: Arc<str>, answer: BoxFuture<'static, Result<Body, ServerError>>) -> Self {
        let decoder = Decoder::List(Splitter::new(Wire::Json));
        Self {
            lane: Lane::Main,
            operation: Operation::List,
            what,
            stage: Stage::Requesting(answer),
            decoder,
            shard: None,
        }
    }

    pub(crate) fn watch(
        lane: Lane,
        operation: Operation,
        what: Arc<str>,
        answer: BoxFuture<'static, Result<Body, ServerError>>,
    ) -> Self {
        let decoder = Decoder::Watch(Frames::new(MAX_OBJECT_SIZE));
        Self { lane, operation, what, stage: Stage::Requesting(answer), decoder, shard: None }
    }

    /// Accepts only the objects of a shard.
    pub(super) fn of_shard(mut self, shard: Option<Arc<Shard>>) -> Self {
        self.shard = shard;
        self
    }

    /// The wire format of the response, while it is being read.
    pub(super) fn wire(&self) -> Option<Wire> {
        match &self.stage {
            Stage::Reading(body) => Some(body.wire()),
            Stage::Requesting(_) | Stage::Ending | Stage::Finished => None,
        }
    }

    /// Makes this the main stream.
    pub(super) fn into_main(mut self) -> Self {
        self.lane = Lane::Main;
        self
    }

    /// Decodes the next input from the bytes already received.
    pub(crate) fn decode(&mut self, source: ObjectSource, intake: &mut dyn Intake) -> Option<Input> {
        match &mut self.decoder {
            Decoder::List(splitter) => splitter.next().map(|item| match item {
                Ok(object) => match accept(intake, &object, ObjectSource::List, self.shard.as_deref()) {
                    Ok(Sharded::Inside(object)) => Input::Item(object),
                    Ok(Sharded::Outside(_)) => Input::ItemOutside,
                    Err(failure) => Input::BadFrame(self.lane, failure),
                },
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            }),
            Decoder::Watch(frames) => frames.next().map(|frame| match frame {
                Ok(frame) => self.frame(&frame, Wire::Json, source, intake),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            }),
            Decoder::ProtobufWatch(frames) => frames.next().map(|frame| match frame {
                Ok(frame) => self.frame(&frame, Wire::Protobuf, source, intake),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            }),
            Decoder::Done => None,
        }
    }

    /// Selects the decoder for the response's wire format.
    fn select_decoder(&mut self, wire: Wire) {
        match (&self.decoder, wire) {
            (Decoder::List(_), wire) => self.decoder = Decoder::List(Splitter::new(wire)),
            (Decoder::Watch(_), Wire::Protobuf) => {
                self.decoder = Decoder::ProtobufWatch(ProtobufFrames::new(MAX_OBJECT_SIZE));
            }
            _ => {}
        }
    }

    fn frame(&self, frame: &Bytes, wire: Wire, source: ObjectSource, intake: &mut dyn Intake) -> Input {
        let frame = match wire {
            Wire::Json => WatchFrame::read(frame),
            Wire::Protobuf => WatchFrame::read_protobuf(frame),
        };
        match frame {
            Ok(WatchFrame::Changed(change, object)) => match accept(intake, &object, source, self.shard.as_deref()) {
                Ok(Sharded::Inside(object)) => Input::Frame(self.lane, Frame::Changed(change, object)),
                Ok(Sharded::Outside(version)) => Input::Frame(self.lane, Frame::Outside { version }),
                Err(failure) => Input::BadFrame(self.lane, failure),
            },
            Ok(WatchFrame::Bookmark { version, initial_events_end }) => {
                Input::Frame(self.lane, Frame::Bookmark { version, initial_events_end })
            }
            Ok(WatchFrame::Failed(status)) => Input::FailureFrame(self.lane, self.error(Failure::of_frame(status))),
            Err(broken) => Input::BadFrame(self.lane, Failure::Undecodable(broken)),
        }
    }

    /// Waits for the response, or for more of its bytes, which [`decode`](Self::decode) then reads.
    ///
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Input {
        match &mut self.stage {
            Stage::Requesting(answer) => match caught(answer).await {
                Ok(Ok(body)) => {
                    self.select_decoder(body.wire());
                    self.stage = Stage::Reading(body);
                    Input::Opened(self.lane)
                }
                Ok(Err(error)) => {
                    self.stage = Stage::Finished;
                    Input::Failed(self.lane, error)
                }
                Err(panic) => self.panicked(panic),
            },
            Stage::Reading(body) => match next_chunk(body).await {
                Ok(Some(Ok(bytes))) => {
                    match &mut self.decoder {
                        Decoder::List(splitter) => splitter.push(bytes),
                        Decoder::Watch(frames) => frames.push(bytes),
                        Decoder::ProtobufWatch(frames) => frames.push(bytes),
                        Decoder::Done => {}
                    }
                    Input::Bytes(self.lane)
                }
                Ok(Some(Err(error))) => {
                    self.stage = Stage::Finished;
                    Input::Failed(self.lane, error)
                }
                Ok(None) => {
                    self.stage = Stage::Finished;
                    self.finish()
                }
                Err(panic) => self.panicked(panic),
            },
            Stage::Ending => {
                self.stage = Stage::Finished;
                self.finish()
            }
            Stage::Finished => std::future::pending().await,
        }
    }

    /// Interprets the end of the response.
    fn finish(&mut self) -> Input {
        match std::mem::replace(&mut self.decoder, Decoder::Done) {
            Decoder::List(splitter) => match splitter.finish() {
                Ok(end) => Input::PageEnded(end),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            },
            Decoder::Watch(frames) if frames.is_within() => match frames.finish() {
                Ok(Some(frame)) => {
                    // The last frame is complete except for its line break.
                    let mut last = Frames::new(MAX_OBJECT_SIZE + 1);
                    last.push([&frame[..], b"\n"].concat().into());
                    self.decoder = Decoder::Watch(last);
                    self.stage = Stage::Ending;
                    Input::Bytes(self.lane)
                }
                Ok(None) => Input::Failed(self.lane, self.error(Failure::BodyCut("in the middle of a frame".into()))),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            },
            Decoder::ProtobufWatch(frames) if frames.is_within() => {
                Input::Failed(self.lane, self.error(Failure::BodyCut("in the middle of a frame".into())))
            }
            Decoder::Watch(_) | Decoder::ProtobufWatch(_) => Input::Ended(self.lane),
            Decoder::Done => Input::Ended(self.lane),
        }
    }

    /// The source panicked: its future is not polled again.
    fn panicked(&mut self, panic: Failure) -> Input {
        self.stage = Stage::Finished;
        Input::Failed(self.lane, self.error(panic))
    }

    fn error(&self, failure: Failure) -> ServerError {
        ServerError::new(self.operation, Arc::clone(&self.what), failure)
    }
}

/// The next bytes of a body. Yields now and then, also if decompression keeps the body ready for
/// longer than its bytes take to arrive. Cancel-safe.
async fn next_chunk(body: &mut Body) -> Result<Option<Result<Bytes, ServerError>>, Failure> {
    tokio::task::coop::consume_budget().await;
    caught(body.next()).await
}

/// Runs code of the source, which may panic.
async fn caught<T>(run: impl Future<Output = T>) -> Result<T, Failure> {
    AssertUnwindSafe(run).catch_unwind().await.map_err(|panic| Failure::of_panic(&*panic))
}

/// Builds an object; fails if it cannot be read, or if the intake panics.
fn accept(
    intake: &mut dyn Intake,
    json: &Bytes,
    source: ObjectSource,
    shard: Option<&Shard>,
) -> Result<Sharded, Failure> {
    let mut accept = || match shard {
        None => intake.accept(json, source).map(Sharded::Inside),
        Some(shard) => intake.accept_sharded(json, source, shard),
    };
    match guarded("intake", &mut accept) {
        Some(accepted) => accepted.map_err(Failure::from),
        None => Err(Failure::UndecodableObject("the intake panicked".into())),
    }
}

/// Reads a list for its resource version, and for the state of one object.
pub(super) async fn read_revision(
    what: Arc<str>,
    object: Option<ObjectKey>,
    answer: BoxFuture<'static, Result<Body, ServerError>>,
) -> Result<ServerState, ServerError> {
    let error = |failure| ServerError::new(Operation::Probe, Arc::clone(&what), failure);
    let mut body = caught(answer).await.map_err(error)??;
    let mut splitter = Splitter::new(body.wire());
    let (mut found, mut has_others) = (None, false);
    while let Some(bytes) = next_chunk(&mut body).await.map_err(error)? {
        splitter.push(bytes?);
        while let Some(item) = splitter.next() {
            let item = item.map_err(|broken| error(broken.into()))?;
            let item = BodyEncoder::detached().accept(&item, Arrival::Listed);
            match item.ok().filter(|item| object.as_ref() == Some(item.key())) {
                Some(item) => found = Some(item),
                None => has_others = true,
            }
        }
    }
    let end = splitter.finish().map_err(|broken| error(broken.into()))?;
    let version = end.version.ok_or_else(|| error(Failure::NoVersion))?;
    Ok(ServerState { version, object: found, has_others })
}
