//! One request and its answer: from bytes to inputs of the machine.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::BoxFuture;

use super::step::{Frame, Input, Lane};
use super::{Intake, ObjectSource};
use crate::client::Body;
use crate::client::{Doing, Failure, ServerError};
use crate::codec::{
    Broken, Frames, LARGEST_OBJECT, ListEnd, ListError, ListSplitter, ProtobufFrames, ProtobufList, WatchFrame, Wire,
};

/// A list or a watch, from the request to the end of its answer.
pub(crate) struct Flow {
    lane: Lane,
    doing: Doing,
    what: Arc<str>,
    stage: Stage,
    cutter: Cutter,
}

enum Stage {
    Asking(BoxFuture<'static, Result<Body, ServerError>>),
    Reading(Body),
    /// All has been read, but not all of it has been decoded.
    Ending,
    Over,
}

enum Cutter {
    List(Splitter),
    Watch(Frames),
    ProtobufWatch(ProtobufFrames),
    Done,
}

/// A list in either form.
enum Splitter {
    Json(ListSplitter),
    Protobuf(ProtobufList),
}

impl Splitter {
    fn new(wire: Wire) -> Self {
        match wire {
            Wire::Json => Self::Json(ListSplitter::new(LARGEST_OBJECT)),
            Wire::Protobuf => Self::Protobuf(ProtobufList::new(LARGEST_OBJECT)),
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
        let cutter = Cutter::List(Splitter::new(Wire::Json));
        Self { lane: Lane::Main, doing: Doing::List, what, stage: Stage::Asking(answer), cutter }
    }

    pub(crate) fn watch(
        lane: Lane,
        doing: Doing,
        what: Arc<str>,
        answer: BoxFuture<'static, Result<Body, ServerError>>,
    ) -> Self {
        let cutter = Cutter::Watch(Frames::new(LARGEST_OBJECT));
        Self { lane, doing, what, stage: Stage::Asking(answer), cutter }
    }

    /// It takes the place of the main stream.
    pub(super) fn into_main(mut self) -> Self {
        self.lane = Lane::Main;
        self
    }

    /// What can be read out of the bytes at hand.
    pub(crate) fn decode(&mut self, source: ObjectSource, intake: &mut dyn Intake) -> Option<Input> {
        match &mut self.cutter {
            Cutter::List(splitter) => splitter.next().map(|item| match item {
                Ok(object) => {
                    intake.accept(&object, ObjectSource::List).map_or(Input::BadObject(self.lane), Input::Item)
                }
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            }),
            Cutter::Watch(frames) => frames.next().map(|frame| match frame {
                Ok(frame) => self.frame(&frame, Wire::Json, source, intake),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            }),
            Cutter::ProtobufWatch(frames) => frames.next().map(|frame| match frame {
                Ok(frame) => self.frame(&frame, Wire::Protobuf, source, intake),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            }),
            Cutter::Done => None,
        }
    }

    /// The answer's form is known: cuts it accordingly.
    fn opened(&mut self, wire: Wire) {
        match (&self.cutter, wire) {
            (Cutter::List(_), wire) => self.cutter = Cutter::List(Splitter::new(wire)),
            (Cutter::Watch(_), Wire::Protobuf) => {
                self.cutter = Cutter::ProtobufWatch(ProtobufFrames::new(LARGEST_OBJECT));
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
            Ok(WatchFrame::Changed(change, object)) => match intake.accept(&object, source) {
                Ok(object) => Input::Frame(self.lane, Frame::Changed(change, object)),
                Err(_) => Input::BadObject(self.lane),
            },
            Ok(WatchFrame::Bookmark { version, initial_events_end }) => {
                Input::Frame(self.lane, Frame::Bookmark { version, initial_events_end })
            }
            Ok(WatchFrame::Failed(status)) => Input::FailureFrame(self.lane, self.error(Failure::of_frame(status))),
            // Whole, but nothing we know.
            Err(Broken::Shape) => Input::BadObject(self.lane),
            Err(broken) => Input::BadFrame(self.lane, broken),
        }
    }

    /// Waits for the answer, or for more of it. What it brings is then to be had from [`decode`](Self::decode).
    ///
    /// Nothing is lost if this is dropped half-way.
    pub(crate) async fn next(&mut self) -> Input {
        match &mut self.stage {
            Stage::Asking(answer) => match answer.await {
                Ok(body) => {
                    self.opened(body.wire());
                    self.stage = Stage::Reading(body);
                    Input::Opened(self.lane)
                }
                Err(error) => {
                    self.stage = Stage::Over;
                    Input::Failed(self.lane, error)
                }
            },
            Stage::Reading(body) => match body.next().await {
                Some(Ok(bytes)) => {
                    match &mut self.cutter {
                        Cutter::List(splitter) => splitter.push(bytes),
                        Cutter::Watch(frames) => frames.push(bytes),
                        Cutter::ProtobufWatch(frames) => frames.push(bytes),
                        Cutter::Done => {}
                    }
                    Input::Bytes(self.lane)
                }
                Some(Err(error)) => {
                    self.stage = Stage::Over;
                    Input::Failed(self.lane, error)
                }
                None => {
                    self.stage = Stage::Over;
                    self.finish()
                }
            },
            Stage::Ending => {
                self.stage = Stage::Over;
                self.finish()
            }
            Stage::Over => std::future::pending().await,
        }
    }

    /// The answer has ended: what does that mean?
    fn finish(&mut self) -> Input {
        match std::mem::replace(&mut self.cutter, Cutter::Done) {
            Cutter::List(splitter) => match splitter.finish() {
                Ok(end) => Input::PageEnded(end),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            },
            Cutter::Watch(frames) if frames.is_within() => match frames.finish() {
                Ok(Some(frame)) => {
                    // The last frame lacks nothing but its line break.
                    let mut last = Frames::new(LARGEST_OBJECT + 1);
                    last.push([&frame[..], b"\n"].concat().into());
                    self.cutter = Cutter::Watch(last);
                    self.stage = Stage::Ending;
                    Input::Bytes(self.lane)
                }
                Ok(None) => Input::Failed(self.lane, self.error(Failure::BodyCut("in the middle of a frame".into()))),
                Err(error) => Input::Failed(self.lane, self.error(error.into())),
            },
            Cutter::ProtobufWatch(frames) if frames.is_within() => {
                Input::Failed(self.lane, self.error(Failure::BodyCut("in the middle of a frame".into())))
            }
            Cutter::Watch(_) | Cutter::ProtobufWatch(_) => Input::Ended(self.lane),
            Cutter::Done => Input::Ended(self.lane),
        }
    }

    fn error(&self, failure: Failure) -> ServerError {
        ServerError::new(self.doing, Arc::clone(&self.what), failure)
    }
}

/// Reads a list for its version alone.
pub(super) async fn read_revision(
    what: Arc<str>,
    answer: BoxFuture<'static, Result<Body, ServerError>>,
) -> Result<crate::object::Version, ServerError> {
    let error = |failure| ServerError::new(Doing::Probe, Arc::clone(&what), failure);
    let mut body = answer.await?;
    let mut splitter = Splitter::new(body.wire());
    while let Some(bytes) = body.next().await {
        splitter.push(bytes?);
        while let Some(item) = splitter.next() {
            item.map_err(|broken| error(broken.into()))?;
        }
    }
    let end = splitter.finish().map_err(|broken| error(broken.into()))?;
    end.version.ok_or_else(|| error(Failure::NoVersion))
}
