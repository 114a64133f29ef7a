//! Protobuf, which API servers support for built-in kinds.
//!
//! An object is kept as the server sends it: `k8s\0`, then an envelope with its kind and its
//! message. Metadata is read from the message without reading the rest. Everything that works on
//! JSON (serde types, paths, projections) reads it through a table of the built-in kinds,
//! `data/messages.txt`, with the field names of JSON.

pub use self::envelope::Envelope;
pub use self::list::ProtobufList;
pub use self::watch::ProtobufFrames;

pub(crate) use self::fields::cut;
use self::message::Message;
pub(crate) use self::metadata::{each_owner, each_string, put_labels, scan};
pub(crate) use self::order::sort_fields;
pub(crate) use self::status::status;
pub(crate) use self::table::{RELEASE, Table};
pub(crate) use self::to_json::{to_json, values_at};
pub(crate) use self::watch::read_frame;
pub(crate) use self::wire::{put_varint, varint};
use super::omit::Omit;

mod base64;
mod envelope;
mod fields;
mod incremental;
mod list;
mod message;
mod metadata;
mod order;
mod status;
mod table;
mod timestamp;
mod to_json;
mod value;
mod watch;
mod wire;

/// Maximum nesting depth of messages: as deep as the same object may be nested in JSON.
const MAX_DEPTH: u32 = 64;

/// Decodes an object without converting it to JSON; none if it cannot be decoded that way, or if
/// its fields are not in order.
#[must_use]
pub fn decode_protobuf<'de, T: serde::Deserialize<'de>>(object: &'de [u8]) -> Option<T> {
    decode(object, Omit::Nothing)
}

/// Decodes an object without some fields; none as for [`decode_protobuf`].
pub(crate) fn decode<'de, T: serde::Deserialize<'de>>(object: &'de [u8], omit: Omit) -> Option<T> {
    Message::of_object(object, omit).and_then(T::deserialize).ok()
}

/// Whether these are the bytes of an object in protobuf. No JSON starts with the same bytes.
pub(crate) fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(envelope::MAGIC)
}
