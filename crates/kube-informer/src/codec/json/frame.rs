//! Frames of a watch: one line each.

use bytes::{Buf, Bytes, BytesMut};

use super::cursor::Cursor;

/// Cuts arriving bytes into lines.
///
/// A line that lies in one chunk is a slice of that chunk; one that spans chunks is gathered. Empty lines are passed over.
#[derive(Debug)]
pub struct Frames {
    /// The beginning of a line whose end has not arrived.
    gathered: BytesMut,
    /// What has arrived and is not yet cut.
    chunk: Bytes,
    limit: usize,
}

/// A line longer than a frame may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a watch frame is longer than {limit} bytes")]
pub struct FrameTooLong {
    limit: usize,
}

impl FrameTooLong {
    pub(in crate::codec) fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// How long a frame may be.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl Frames {
    /// Frames of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { gathered: BytesMut::new(), chunk: Bytes::new(), limit }
    }

    /// Takes the next chunk. The frames of the one before must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            self.chunk = [&self.chunk[..], &chunk[..]].concat().into();
        }
    }

    /// The next whole frame, or none until more bytes are pushed.
    ///
    /// After an error the stream is lost: where the next frame begins is not known.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, FrameTooLong>> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.chunk) else {
                return self.gather().err().map(Err);
            };
            if self.gathered.len() + end > self.limit {
                return Some(Err(FrameTooLong { limit: self.limit }));
            }
            let mut frame = self.chunk.split_to(end);
            self.chunk.advance(1);
            if !self.gathered.is_empty() {
                self.gathered.extend_from_slice(&frame);
                frame = self.gathered.split().freeze();
            }
            if !frame.trim_ascii().is_empty() {
                return Some(Ok(frame));
            }
        }
    }

    /// Whether the bytes so far end within a frame.
    #[must_use]
    pub fn is_within(&self) -> bool {
        !self.gathered.trim_ascii().is_empty() || !self.chunk.trim_ascii().is_empty()
    }

    /// What stands after the last newline when the stream has ended, if it is a whole value. A frame that was cut short is none:
    /// its beginning may well look like a smaller object.
    pub fn finish(mut self) -> Result<Option<Bytes>, FrameTooLong> {
        self.gather()?;
        let mut cursor = Cursor::new(&self.gathered);
        let whole = cursor.skip().is_ok() && self.gathered[cursor.at()..].trim_ascii().is_empty();
        Ok(whole.then(|| self.gathered.freeze()))
    }

    fn gather(&mut self) -> Result<(), FrameTooLong> {
        if self.gathered.len() + self.chunk.len() > self.limit {
            return Err(FrameTooLong { limit: self.limit });
        }
        self.gathered.extend_from_slice(&self.chunk);
        self.chunk.clear();
        Ok(())
    }
}
