//! Frames of a protobuf watch, each preceded by its length.

use bytes::Bytes;

use super::incremental::ByteQueue;
use super::status::status;
use super::wire::{Datum, Fields, bytes_of};
use crate::codec::json::watch::bookmark;
use crate::codec::{Broken, Change, FrameTooLong, WatchFrame};

/// Splits incoming bytes into frames.
#[derive(Debug)]
pub struct ProtobufFrames {
    arriving: ByteQueue,
    /// Length of the current frame, once received.
    frame_length: Option<usize>,
    limit: usize,
}

/// Size of the length prefix of a frame.
const PREFIX: usize = 4;

impl ProtobufFrames {
    /// Splits frames of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { arriving: ByteQueue::default(), frame_length: None, limit }
    }

    /// Adds the next chunk. The frames of the previous chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        self.arriving.push(chunk);
    }

    /// The next complete frame, or none until more bytes are pushed.
    ///
    /// The stream is unusable after an error: the start of the next frame is unknown.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, FrameTooLong>> {
        let length = match self.frame_length {
            Some(length) => length,
            None => {
                let bytes = self.arriving.take(PREFIX)?;
                let length = u32::from_be_bytes(*bytes.first_chunk::<PREFIX>()?);
                *self.frame_length.insert(usize::try_from(length).unwrap_or(usize::MAX))
            }
        };
        if length > self.limit {
            return Some(Err(FrameTooLong::new(self.limit)));
        }
        let frame = self.arriving.take(length)?;
        self.frame_length = None;
        Some(Ok(frame))
    }

    /// Whether the bytes received so far end inside a frame.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.frame_length.is_some() || self.arriving.len() > 0
    }
}

/// Decodes an event: its type, and its object in an envelope.
pub(crate) fn read_frame(frame: &Bytes) -> Result<WatchFrame, Broken> {
    let (mut fields, mut kind, mut object) = (Fields::of(frame), None, None);
    while let Some(field) = fields.next()? {
        match field {
            (1, Datum::Bytes(text)) => kind = Some(text),
            (2, Datum::Bytes(extension)) => object = bytes_of(extension, 1)?,
            _ => {}
        }
    }
    let object = object.ok_or(Broken::Event)?;
    let change = match kind.ok_or(Broken::Event)? {
        b"ADDED" => Change::Added,
        b"MODIFIED" => Change::Modified,
        b"DELETED" => Change::Deleted,
        b"BOOKMARK" => return bookmark(object),
        b"ERROR" => return status(object).map(WatchFrame::Failed).ok_or(Broken::Event),
        _ => return Err(Broken::Event),
    };
    Ok(WatchFrame::Changed(change, frame.slice_ref(object)))
}
