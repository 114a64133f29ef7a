//! Incremental reading of pieces of known lengths.

use bytes::{Buf, Bytes, BytesMut};

use super::wire::varint;
use crate::codec::Broken;
use crate::codec::chunk;

/// Maximum size of a tag and a length: two varints of 10 bytes.
const MAX_HEAD: usize = 20;

/// Received bytes that are not yet consumed.
///
/// A piece within one chunk is a slice of that chunk; a piece that spans chunks is copied into a
/// buffer.
#[derive(Debug, Default)]
pub(super) struct ByteQueue {
    /// The beginning of a piece whose end has not yet been received.
    buffered: BytesMut,
    chunk: Bytes,
}

/// The tag and length of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u64,
    /// Whether the field is length-delimited; other fields are skipped.
    pub(super) is_bytes: bool,
    /// Size of the value; 0 for a varint, which counts as part of the head.
    pub(super) length: usize,
    /// Size of the head itself.
    pub(super) own: usize,
}

impl ByteQueue {
    pub(super) fn push(&mut self, chunk: Bytes) {
        chunk::append(&mut self.chunk, chunk);
    }

    pub(super) fn len(&self) -> usize {
        self.buffered.len() + self.chunk.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Consumes `length` bytes; none until all of them are received.
    pub(super) fn take(&mut self, length: usize) -> Option<Bytes> {
        if self.buffered.is_empty() && self.chunk.len() >= length {
            return Some(self.chunk.split_to(length));
        }
        if self.buffered.is_empty() {
            self.buffered.reserve(length.min(1 << 20));
        }
        let missing = length.saturating_sub(self.buffered.len()).min(self.chunk.len());
        self.buffered.extend_from_slice(&self.chunk.split_to(missing));
        (self.buffered.len() >= length).then(|| self.buffered.split_to(length).freeze())
    }

    /// Skips up to `length` of the received bytes. Returns the number of bytes skipped.
    pub(super) fn skip(&mut self, length: usize) -> usize {
        let buffered = length.min(self.buffered.len());
        self.buffered.advance(buffered);
        let further = (length - buffered).min(self.chunk.len());
        self.chunk.advance(further);
        buffered + further
    }

    /// The next tag and length, without consuming them; none until they are received.
    pub(super) fn head(&self) -> Result<Option<Head>, Broken> {
        let mut bytes = [0; MAX_HEAD];
        let mut len = self.buffered.len().min(MAX_HEAD);
        bytes[..len].copy_from_slice(&self.buffered[..len]);
        let further = self.chunk.len().min(MAX_HEAD - len);
        bytes[len..len + further].copy_from_slice(&self.chunk[..further]);
        len += further;
        let mut rest = &bytes[..len];
        let head = head(&mut rest);
        match head {
            Ok(head) => Ok(Some(Head { own: head.own + (len - rest.len()), ..head })),
            // Incomplete: more bytes may follow.
            Err(_) if len < MAX_HEAD && Self::is_incomplete(&bytes[..len]) => Ok(None),
            Err(broken) => Err(broken),
        }
    }

    /// Whether these bytes are an incomplete tag and length.
    fn is_incomplete(bytes: &[u8]) -> bool {
        let mut rest = bytes;
        match varint(&mut rest) {
            Ok(tag) => matches!(tag & 7, 0 | 2) && tag >> 3 != 0 && is_incomplete_varint(rest),
            Err(_) => is_incomplete_varint(bytes),
        }
    }
}

/// Whether these bytes are an incomplete varint.
fn is_incomplete_varint(bytes: &[u8]) -> bool {
    bytes.len() < 10 && bytes.iter().all(|byte| byte & 0x80 != 0)
}

/// Consumes a tag and a length. A varint has no length; its value is consumed instead.
fn head(rest: &mut &[u8]) -> Result<Head, Broken> {
    let tag = varint(rest)?;
    let number = tag >> 3;
    let (is_bytes, length) = match tag & 7 {
        _ if number == 0 => return Err(Broken::Protobuf),
        0 => varint(rest).map(|_| (false, 0))?,
        1 => (false, 8),
        2 => (true, usize::try_from(varint(rest)?).map_err(|_| Broken::Protobuf)?),
        5 => (false, 4),
        _ => return Err(Broken::Protobuf),
    };
    Ok(Head { number, is_bytes, length, own: 0 })
}
