//! Frames of a JSON watch, one per line.

use bytes::{Buf, Bytes, BytesMut};

use super::cursor::Cursor;
use crate::codec::chunk;

/// Splits incoming bytes into lines.
///
/// A line within one chunk is a slice of that chunk; a line that spans chunks is copied into a
/// buffer. Empty lines are skipped.
#[derive(Debug)]
pub struct Frames {
    /// The beginning of a line whose end has not yet been received.
    buffered: BytesMut,
    /// Received bytes that are not yet split.
    chunk: Bytes,
    limit: usize,
}

/// A frame exceeds the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a watch frame is longer than {limit} bytes")]
pub struct FrameTooLong {
    limit: usize,
}

impl FrameTooLong {
    pub(in crate::codec) fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl Frames {
    /// Splits frames of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { buffered: BytesMut::new(), chunk: Bytes::new(), limit }
    }

    /// Adds the next chunk. The frames of the previous chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        chunk::append(&mut self.chunk, chunk);
    }

    /// The next complete frame, or none until more bytes are pushed.
    ///
    /// The stream is unusable after an error: the start of the next frame is unknown.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, FrameTooLong>> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.chunk) else {
                return self.gather().err().map(Err);
            };
            if self.buffered.len() + end > self.limit {
                return Some(Err(FrameTooLong { limit: self.limit }));
            }
            let mut frame = self.chunk.split_to(end);
            self.chunk.advance(1);
            if !self.buffered.is_empty() {
                self.buffered.extend_from_slice(&frame);
                frame = self.buffered.split().freeze();
            }
            if !frame.trim_ascii().is_empty() {
                return Some(Ok(frame));
            }
        }
    }

    /// Whether the bytes received so far end inside a frame.
    #[must_use]
    pub fn is_within(&self) -> bool {
        !self.buffered.trim_ascii().is_empty() || !self.chunk.trim_ascii().is_empty()
    }

    /// The bytes after the last newline of a stream that has ended, if they are a complete value. A
    /// truncated frame is not returned: its beginning may look like a smaller object.
    pub fn finish(mut self) -> Result<Option<Bytes>, FrameTooLong> {
        self.gather()?;
        let mut cursor = Cursor::new(&self.buffered);
        let whole = cursor.skip().is_ok() && self.buffered[cursor.at()..].trim_ascii().is_empty();
        Ok(whole.then(|| self.buffered.freeze()))
    }

    fn gather(&mut self) -> Result<(), FrameTooLong> {
        if self.buffered.len() + self.chunk.len() > self.limit {
            return Err(FrameTooLong { limit: self.limit });
        }
        self.buffered.extend_from_slice(&self.chunk);
        self.chunk.clear();
        Ok(())
    }
}
