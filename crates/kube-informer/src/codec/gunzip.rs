//! Incremental decompression of gzip with several members.

use std::io::Write;

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;

use crate::codec::chunk;

/// Decompresses gzip incrementally. A server may end a member and begin another at every flush.
///
/// The output of one step is bounded by a few buffers, however much a small chunk decompresses to.
#[derive(Debug)]
pub struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    chunk: Bytes,
    failed: bool,
}

/// The bytes are not valid gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed gzip")]
pub struct GunzipError;

impl Default for Gunzip {
    fn default() -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), chunk: Bytes::new(), failed: false }
    }
}

impl Gunzip {
    /// Adds the next chunk. The output of the previous chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        chunk::append(&mut self.chunk, chunk);
    }

    /// The next decompressed bytes, or none until more bytes are pushed. Returns no more after an
    /// error.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, GunzipError>> {
        if self.failed {
            return None;
        }
        let plain = self.step();
        if plain.is_err() {
            self.failed = true;
            self.chunk.clear();
        }
        plain.transpose()
    }

    /// Checks that the last member was complete when the stream ended.
    pub fn finish(mut self) -> Result<(), GunzipError> {
        if self.failed || !self.chunk.is_empty() {
            return Err(GunzipError);
        }
        self.decoder.try_finish().map_err(|_| GunzipError)
    }

    fn step(&mut self) -> Result<Option<Bytes>, GunzipError> {
        while !self.chunk.is_empty() {
            let taken = self.decoder.write(&self.chunk).map_err(|_| GunzipError)?;
            if taken == 0 {
                return Err(GunzipError);
            }
            self.chunk.advance(taken);
            self.decoder.flush().map_err(|_| GunzipError)?;
            let plain = std::mem::take(self.decoder.get_mut());
            if !plain.is_empty() {
                return Ok(Some(plain.into()));
            }
        }
        Ok(None)
    }
}
