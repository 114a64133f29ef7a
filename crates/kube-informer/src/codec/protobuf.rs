//! Protobuf, as API servers speak it for built-in kinds.
//!
//! An object is kept as a server sends it: `k8s\0`, then an envelope that names its kind and holds its message. Metadata is read
//! out of that without looking at the rest. Everything that lives on JSON (types of serde's, paths, projections) reads it by a
//! table of the built-in kinds, `data/messages.txt`, under the names that JSON has.

pub use self::envelope::Envelope;
pub use self::list::ProtobufList;
pub use self::watch::ProtobufFrames;

pub(crate) use self::fields::cut;
use self::message::Message;
pub(crate) use self::metadata::{each_owner, each_string, put_labels, scan};
pub(crate) use self::order::canonical;
pub(crate) use self::status::status;
pub(crate) use self::table::Table;
pub(crate) use self::to_json::{to_json, values_at};
pub(crate) use self::watch::read_frame;
pub(crate) use self::wire::{put_varint, varint};

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

/// How deep messages may be nested: as deep as JSON of the same may.
const DEEPEST: u32 = 64;

/// Reads an object without going by way of JSON; none if that cannot be done, or its fields are not in order.
#[must_use]
pub fn decode_protobuf<'de, T: serde::Deserialize<'de>>(object: &'de [u8]) -> Option<T> {
    Message::of_object(object).and_then(T::deserialize).ok()
}

/// Whether these are the bytes of an object in protobuf. No JSON begins like that.
pub(crate) fn is_protobuf(bytes: &[u8]) -> bool {
    bytes.starts_with(envelope::MAGIC)
}
