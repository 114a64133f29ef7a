//! The wire formats, JSON and protobuf: framing of watches, splitting of lists, metadata scans,
//! field removal and lookup, and gunzip.
//!
//! Framing and scans do not decode objects; JSON values that are not needed are skipped 64 bytes at
//! a time. Except for [`Wire`] and [`ServerStatus`] this is the advanced layer, for programs that
//! read the API server's responses themselves, and for benchmarks.

// Uses only `object` (which uses `codec` in turn), and must not use any other module.

pub use self::gunzip::{Gunzip, GunzipError};
pub use self::json::cursor::{Broken, Text};
pub(crate) use self::json::deserializer::{JsonError, JsonFault, decode_json};
pub use self::json::fields::FieldCutter;
pub(crate) use self::json::fields::{find, find_all, steps_to};
pub use self::json::frame::{FrameTooLong, Frames};
pub use self::json::list::{ListEnd, ListError, ListSplitter};
pub use self::json::scan::{Deleted, Extent, ScannedObject, scan};
pub use self::json::skip::Skip;
pub use self::json::watch::{Change, ServerStatus, StatusCause, StatusDetails, WatchFrame};
pub(crate) use self::omit::Omit;
pub use self::protobuf::{Envelope, ProtobufFrames, ProtobufList, decode_protobuf};
pub use self::wire::Wire;

mod chunk;
mod gunzip;
mod json;
mod name;
mod omit;
pub(crate) mod protobuf;
mod wire;

/// Maximum size of a frame or list item in bytes: ten times etcd's own limit.
pub const MAX_OBJECT_SIZE: usize = 16 << 20;

/// Maximum nesting depth of values, the same as in the server's own decoder.
pub(crate) const MAX_DEPTH: u32 = 10_000;
