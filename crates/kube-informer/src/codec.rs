//! Bytes on their way in: framing, scanning, splitting lists, dropping fields, packing.
//!
//! Nothing here decodes an object. Values that nobody asks for are skipped 64 bytes at a time.

pub use self::cursor::{Broken, Text};
pub use self::fields::FieldCutter;
pub(crate) use self::fields::{find, find_all, path_to};
pub use self::frame::{FrameTooLong, Frames};
pub use self::gunzip::{Gunzip, GunzipError};
pub use self::list::{ListEnd, ListError, ListSplitter};
pub use self::protobuf::{Envelope, ProtobufFrames, ProtobufList, decode_protobuf};
pub use self::scan::{Deleted, Extent, Found, scan};
pub use self::skip::Skip;
pub use self::types::Types;
pub use self::watch::{Change, ServerStatus, StatusCause, StatusDetails, WatchFrame};
pub use self::wire::Wire;

mod cursor;
mod fields;
mod frame;
mod gunzip;
mod list;
pub(crate) mod protobuf;
mod scan;
mod skip;
mod types;
mod value;
mod watch;
mod wire;

/// The most bytes of one frame or list item: etcd's own limit is a tenth of it.
pub const LARGEST_OBJECT: usize = 16 << 20;

/// How deep values may be nested, as the server's own reader has it.
pub const DEEPEST: u32 = 10_000;
