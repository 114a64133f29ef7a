//! The envelope of every object in protobuf.

use super::wire::{Datum, Fields, put_bytes, put_varint};
use crate::codec::Broken;

/// The bytes that every envelope begins with.
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// The types and the message of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Envelope<'a> {
    /// The apiVersion.
    pub api_version: &'a [u8],
    /// The kind.
    pub kind: &'a [u8],
    /// The encoded message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Decodes an envelope.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut envelope = Self::default();
        let mut fields = Fields::of(bytes.strip_prefix(MAGIC).ok_or(Broken::Protobuf)?);
        while let Some(field) = fields.next()? {
            match field {
                (1, Datum::Bytes(types)) => envelope.types(types)?,
                (2, Datum::Bytes(raw)) => envelope.raw = raw,
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Decodes the types in the envelope.
    pub(super) fn types(&mut self, types: &'a [u8]) -> Result<(), Broken> {
        let mut fields = Fields::of(types);
        while let Some(field) = fields.next()? {
            match field {
                (1, Datum::Bytes(text)) => self.api_version = text,
                (2, Datum::Bytes(text)) => self.kind = text,
                _ => {}
            }
        }
        Ok(())
    }

    /// Encodes the envelope.
    #[must_use]
    pub fn close(&self) -> Vec<u8> {
        let mut types = Vec::with_capacity(self.api_version.len() + self.kind.len() + 4);
        put_bytes(&mut types, 1, self.api_version);
        put_bytes(&mut types, 2, self.kind);
        let mut bytes = Vec::with_capacity(MAGIC.len() + types.len() + self.raw.len() + 12);
        bytes.extend_from_slice(MAGIC);
        put_bytes(&mut bytes, 1, &types);
        put_varint(&mut bytes, 2 << 3 | 2);
        put_varint(&mut bytes, self.raw.len() as u64);
        bytes.extend_from_slice(self.raw);
        bytes
    }

    pub(super) fn texts(&self) -> Result<(&'a str, &'a str), Broken> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Broken::Protobuf);
        Ok((text(self.api_version)?, text(self.kind)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_can_be_opened() {
        let envelope = Envelope { api_version: b"v1", kind: b"Pod", raw: &[10, 0] };
        assert_eq!(Envelope::open(&envelope.close()), Ok(envelope));
        let further = [&envelope.close()[..], b"\x1a\0\x22\0"].concat();
        assert_eq!(Envelope::open(&further), Ok(envelope), "servers write two empty fields behind it");
        assert_eq!(Envelope::open(b"k8s"), Err(Broken::Protobuf));
    }
}
