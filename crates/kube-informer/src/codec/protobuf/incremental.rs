//! Bytes as they arrive, taken in pieces of known lengths.

use bytes::{Buf, Bytes, BytesMut};

use super::wire::varint;
use crate::codec::Broken;

/// A tag and a length have at most so many bytes.
const LONGEST_HEAD: usize = 20;

/// What has arrived and is not yet used.
///
/// A piece that lies in one chunk is a slice of that chunk; one that spans chunks is gathered.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    /// The beginning of a piece whose end has not arrived.
    gathered: BytesMut,
    chunk: Bytes,
}

/// What stands before a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u64,
    /// Whether it is bytes; if not, it is of no interest.
    pub(super) is_bytes: bool,
    /// How many bytes its value has.
    pub(super) length: usize,
    /// How many bytes it has itself.
    pub(super) own: usize,
}

impl Arriving {
    pub(super) fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            self.chunk = [&self.chunk[..], &chunk[..]].concat().into();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.gathered.len() + self.chunk.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The next so many bytes, once they are all there.
    pub(super) fn take(&mut self, length: usize) -> Option<Bytes> {
        if self.gathered.is_empty() && self.chunk.len() >= length {
            return Some(self.chunk.split_to(length));
        }
        if self.gathered.is_empty() {
            self.gathered.reserve(length.min(1 << 20));
        }
        let missing = length.saturating_sub(self.gathered.len()).min(self.chunk.len());
        self.gathered.extend_from_slice(&self.chunk.split_to(missing));
        (self.gathered.len() >= length).then(|| self.gathered.split_to(length).freeze())
    }

    /// Passes over so many bytes of those that are there. Says how many.
    pub(super) fn skip(&mut self, length: usize) -> usize {
        let gathered = length.min(self.gathered.len());
        self.gathered.advance(gathered);
        let further = (length - gathered).min(self.chunk.len());
        self.chunk.advance(further);
        gathered + further
    }

    /// The tag and length that stand next, once they are there. They are not taken.
    pub(super) fn head(&self) -> Result<Option<Head>, Broken> {
        let mut bytes = [0; LONGEST_HEAD];
        let mut len = self.gathered.len().min(LONGEST_HEAD);
        bytes[..len].copy_from_slice(&self.gathered[..len]);
        let further = self.chunk.len().min(LONGEST_HEAD - len);
        bytes[len..len + further].copy_from_slice(&self.chunk[..further]);
        len += further;
        let mut rest = &bytes[..len];
        let head = head(&mut rest);
        match head {
            Ok(head) => Ok(Some(Head { own: head.own + (len - rest.len()), ..head })),
            // There may be more to come.
            Err(_) if len < LONGEST_HEAD && Self::may_go_on(&bytes[..len]) => Ok(None),
            Err(broken) => Err(broken),
        }
    }

    /// Whether these bytes are the beginning of a tag and a length, and not all of them.
    fn may_go_on(bytes: &[u8]) -> bool {
        let mut rest = bytes;
        match varint(&mut rest) {
            Ok(tag) => matches!(tag & 7, 0 | 2) && tag >> 3 != 0 && is_beginning(rest),
            Err(_) => is_beginning(bytes),
        }
    }
}

/// Whether more may follow on these bytes of a number.
fn is_beginning(bytes: &[u8]) -> bool {
    bytes.len() < 10 && bytes.iter().all(|byte| byte & 0x80 != 0)
}

/// Takes a tag and a length. A number has no length: it is taken too.
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
