//! Bytes on their way in: framing, scanning, splitting lists, dropping fields, packing.
//!
//! Nothing here decodes an object. Values that nobody asks for are skipped 64 bytes at a time.

pub use self::gunzip::{Gunzip, GunzipError};
pub use self::json::cursor::{Broken, Text};
pub use self::json::fields::FieldCutter;
pub(crate) use self::json::fields::{find, find_all, path_to};
pub use self::json::frame::{FrameTooLong, Frames};
pub use self::json::list::{ListEnd, ListError, ListSplitter};
pub use self::json::scan::{Deleted, Extent, Found, scan};
pub use self::json::skip::Skip;
pub use self::json::types::Types;
pub use self::json::watch::{Change, ServerStatus, StatusCause, StatusDetails, WatchFrame};
pub use self::protobuf::{Envelope, ProtobufFrames, ProtobufList, decode_protobuf};
pub use self::wire::Wire;

mod gunzip;
mod json;
pub(crate) mod protobuf;
mod wire;

/// The most bytes of one frame or list item: etcd's own limit is a tenth of it.
pub const LARGEST_OBJECT: usize = 16 << 20;

/// How deep values may be nested, as the server's own reader has it.
pub const DEEPEST: u32 = 10_000;
