//! Incremental decompression of gzip with several members.

use bytes::{Buf, Bytes};
use flate2::{Crc, Decompress, FlushDecompress, Status};

use self::header::Header;
use crate::codec::chunk;

mod header;

/// Decompresses gzip incrementally. A server may end a member and begin another at every flush.
///
/// The output of one step is bounded by a buffer, however much a small chunk decompresses to. The
/// state of the decompression is 48 KB. It is reused for all members: each event of a watch is one.
#[derive(Debug)]
pub struct Gunzip {
    part: Part,
    inflate: Decompress,
    /// Of the member's output.
    crc: Crc,
    buffer: Vec<u8>,
    /// The output has filled the buffer, and more may be pending.
    is_full: bool,
    /// A member is complete, and nothing follows it.
    is_complete: bool,
    chunk: Bytes,
    failed: bool,
}

/// What the next bytes are.
#[derive(Debug)]
enum Part {
    Header(Header),
    Body,
    /// The checksum and the length of the output.
    Trailer {
        bytes: [u8; 8],
        len: usize,
    },
}

/// The bytes are not valid gzip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed gzip")]
pub struct GunzipError;

/// The largest output of one step.
const BUFFER: usize = 32 << 10;

impl Default for Gunzip {
    fn default() -> Self {
        Self {
            part: Part::Header(Header::default()),
            inflate: Decompress::new(false),
            crc: Crc::new(),
            buffer: Vec::with_capacity(BUFFER),
            is_full: false,
            is_complete: false,
            chunk: Bytes::new(),
            failed: false,
        }
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
    pub fn finish(self) -> Result<(), GunzipError> {
        if self.failed || !self.chunk.is_empty() || !self.is_complete {
            return Err(GunzipError);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Bytes>, GunzipError> {
        loop {
            if let Part::Body = self.part {
                if self.chunk.is_empty() && !self.is_full {
                    return Ok(None);
                }
                self.inflate()?;
                if !self.buffer.is_empty() {
                    return Ok(Some(Bytes::copy_from_slice(&self.buffer)));
                }
                continue;
            }
            if self.chunk.is_empty() {
                return Ok(None);
            }
            let byte = self.chunk.get_u8();
            self.is_complete = false;
            match &mut self.part {
                Part::Header(header) => {
                    if header.push(byte)? {
                        self.inflate.reset(false);
                        self.crc.reset();
                        self.part = Part::Body;
                    }
                }
                Part::Body => {}
                Part::Trailer { bytes, len } => {
                    bytes[*len] = byte;
                    *len += 1;
                    if *len == bytes.len() {
                        let expected = (u64::from(self.crc.amount()) << 32) | u64::from(self.crc.sum());
                        if u64::from_le_bytes(*bytes) != expected {
                            return Err(GunzipError);
                        }
                        self.is_complete = true;
                        self.part = Part::Header(Header::default());
                    }
                }
            }
        }
    }

    /// Decompresses into the buffer.
    fn inflate(&mut self) -> Result<(), GunzipError> {
        self.buffer.clear();
        let before = self.inflate.total_in();
        let status = self.inflate.decompress_vec(&self.chunk, &mut self.buffer, FlushDecompress::None);
        let status = status.map_err(|_| GunzipError)?;
        let taken = usize::try_from(self.inflate.total_in() - before).map_err(|_| GunzipError)?;
        let had_input = !self.chunk.is_empty();
        self.chunk.advance(taken);
        self.crc.update(&self.buffer);
        self.is_full = self.buffer.len() == self.buffer.capacity();
        match status {
            Status::StreamEnd => {
                self.is_full = false;
                self.part = Part::Trailer { bytes: [0; 8], len: 0 };
            }
            Status::Ok | Status::BufError if had_input && taken == 0 && self.buffer.is_empty() => {
                return Err(GunzipError);
            }
            Status::Ok | Status::BufError => {}
        }
        Ok(())
    }
}
