//! Faults of a body without I/O: chunks in, chunks out, and how the body ends.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::{Fault, GONE};
use crate::api::verbs::watch::error_frame;
use crate::encoding::protobuf;
use crate::http::negotiate::Encoding;
use crate::http::status::Status;

/// How a body ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Like a complete body.
    End,
    /// The connection is broken.
    Cut,
    /// Nothing more is sent.
    Stall,
}

/// The bytes to send, and whether the body ends after them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) bytes: Bytes,
    pub(super) stop: Option<Stop>,
}

/// Applies faults to a body. Faults that count events need complete frames, so an incomplete frame
/// is buffered.
#[derive(Debug)]
pub(super) struct Editor {
    frames: Vec<FrameFault>,
    bytes: Vec<(u64, Stop)>,
    sent: u64,
    partial: BytesMut,
    /// The encoding of the body, which determines the frame boundaries.
    encoding: Encoding,
}

#[derive(Debug)]
struct FrameFault {
    fault: Fault,
    events: u64,
    encoding: Encoding,
}

impl Editor {
    pub(super) fn new(faults: impl IntoIterator<Item = Fault>, encoding: Encoding) -> Self {
        let mut editor = Self { frames: Vec::new(), bytes: Vec::new(), sent: 0, partial: BytesMut::new(), encoding };
        for fault in faults {
            match fault {
                Fault::StallAfterBytes(bytes) => editor.bytes.push((bytes, Stop::Stall)),
                Fault::CutAfterBytes(bytes) => editor.bytes.push((bytes, Stop::Cut)),
                fault => editor.frames.push(FrameFault { fault, events: 0, encoding }),
            }
        }
        editor
    }

    /// Applies the faults that take effect before the first event.
    pub(super) fn begin(&mut self) -> Edited {
        let mut out = VecDeque::new();
        let mut stop = None;
        for position in 0..self.frames.len() {
            // Frames added by an earlier fault count as events for the later ones.
            if let Some(stopped) = self.pass(position, &mut out) {
                stop = Some(stopped);
            }
            if let Some(stopped) = self.frames[position].begin(&mut out) {
                stop = Some(stopped);
            }
        }
        self.limit(join(out), stop)
    }

    /// Processes a chunk of the body.
    pub(super) fn push(&mut self, chunk: Bytes) -> Edited {
        if self.frames.is_empty() {
            return self.limit(chunk, None);
        }
        let mut frames = self.split(chunk);
        let mut stop = None;
        for position in 0..self.frames.len() {
            if let Some(stopped) = self.pass(position, &mut frames) {
                stop = Some(stopped);
            }
        }
        self.limit(join(frames), stop)
    }

    /// Processes the end of the body. An incomplete frame is sent as it is.
    pub(super) fn finish(&mut self) -> Edited {
        let rest = self.partial.split().freeze();
        let edited = self.limit(rest, None);
        Edited { stop: edited.stop.or(Some(Stop::End)), ..edited }
    }

    /// Passes frames through one fault. The `Stop` of a later fault overrides an earlier one,
    /// because it sees only the frames that the earlier ones let through.
    fn pass(&mut self, position: usize, frames: &mut VecDeque<Bytes>) -> Option<Stop> {
        let fault = &mut self.frames[position];
        let mut out = VecDeque::with_capacity(frames.len());
        let mut stop = None;
        for frame in frames.drain(..) {
            stop = fault.edit(frame, &mut out);
            if stop.is_some() {
                break;
            }
        }
        *frames = out;
        stop
    }

    fn split(&mut self, chunk: Bytes) -> VecDeque<Bytes> {
        let mut frames = VecDeque::new();
        let mut rest = match self.partial.is_empty() {
            true => chunk,
            false => {
                self.partial.extend_from_slice(&chunk);
                self.partial.split().freeze()
            }
        };
        while let Some(end) = frame_end(&rest, self.encoding) {
            frames.push_back(rest.split_to(end));
        }
        self.partial.extend_from_slice(&rest);
        frames
    }

    /// Counts bytes and truncates at the smallest byte limit.
    fn limit(&mut self, mut bytes: Bytes, mut stop: Option<Stop>) -> Edited {
        let end = self.sent + bytes.len() as u64;
        let smallest = self.bytes.iter().min_by_key(|(limit, _)| *limit);
        if let Some(&(limit, limit_stop)) = smallest
            && end >= limit
        {
            let allowed = limit.saturating_sub(self.sent);
            bytes.truncate(usize::try_from(allowed).unwrap_or(usize::MAX));
            stop = Some(limit_stop);
        }
        self.sent += bytes.len() as u64;
        Edited { bytes, stop }
    }
}

impl FrameFault {
    /// Applies a fault that takes effect after zero events.
    fn begin(&mut self, out: &mut VecDeque<Bytes>) -> Option<Stop> {
        self.act(None, out)
    }

    fn edit(&mut self, frame: Bytes, out: &mut VecDeque<Bytes>) -> Option<Stop> {
        match &self.fault {
            Fault::OmitBookmarks if is_bookmark(&frame, self.encoding) => return None,
            Fault::OmitInitialEventsEnd if is_end_of_initial_events(&frame, self.encoding) => return None,
            Fault::CutWithinEvent(events) if self.events == *events => {
                out.push_back(frame.slice(..frame.len() / 2));
                return Some(Stop::Cut);
            }
            _ => {}
        }
        self.events += 1;
        out.push_back(frame.clone());
        self.act(Some(frame), out)
    }

    /// Applies the fault if its number of events has been reached.
    fn act(&mut self, last: Option<Bytes>, out: &mut VecDeque<Bytes>) -> Option<Stop> {
        match &self.fault {
            Fault::StallAfterEvents(events) if self.events == *events => Some(Stop::Stall),
            Fault::CutAfterEvents(events) if self.events == *events => Some(Stop::Cut),
            Fault::EndAfterEvents(events) if self.events == *events => Some(Stop::End),
            Fault::GoneAfterEvents(events) if self.events == *events => {
                out.push_back(error_frame(&Status::expired(GONE), self.encoding));
                Some(Stop::End)
            }
            Fault::GarbageAfterEvents(events, garbage) if self.events == *events => {
                out.push_back(garbage.clone());
                None
            }
            Fault::DuplicateAfterEvents(events) if self.events == *events => {
                out.extend(last);
                None
            }
            _ => None,
        }
    }
}

fn join(mut frames: VecDeque<Bytes>) -> Bytes {
    match frames.len() {
        0 => Bytes::new(),
        1 => frames.pop_front().unwrap_or_default(),
        _ => {
            let mut bytes = BytesMut::with_capacity(frames.iter().map(Bytes::len).sum());
            frames.iter().for_each(|frame| bytes.extend_from_slice(frame));
            bytes.freeze()
        }
    }
}

/// The end of the first frame. `None` if it is incomplete.
fn frame_end(bytes: &[u8], encoding: Encoding) -> Option<usize> {
    match encoding {
        Encoding::Json => bytes.iter().position(|&byte| byte == b'\n').map(|end| end + 1),
        Encoding::Protobuf => protobuf::frame_length(bytes).filter(|length| *length <= bytes.len()),
    }
}

fn is_bookmark(frame: &[u8], encoding: Encoding) -> bool {
    match encoding {
        Encoding::Json => frame.starts_with(br#"{"type":"BOOKMARK""#),
        Encoding::Protobuf => protobuf::is_frame_of(frame, "BOOKMARK"),
    }
}

fn is_end_of_initial_events(frame: &[u8], encoding: Encoding) -> bool {
    const MARK: &[u8] = b"k8s.io/initial-events-end";
    is_bookmark(frame, encoding) && frame.windows(MARK.len()).any(|window| window == MARK)
}
