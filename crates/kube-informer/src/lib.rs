//! Kubernetes informers.

#[doc(hidden)]
pub mod codec;
mod error;
#[doc(hidden)]
pub mod keeper;
mod key;
mod object;
mod path;
mod selector;
mod version;

pub use self::error::{DecodeError, ParseError};
pub use self::keeper::Keep;
pub use self::key::ObjectKey;
pub use self::object::{Encoded, Kind, Labels, Obj, Object, Owner, Uid, Untyped};
pub use self::path::FieldPath;
pub use self::selector::{FieldSelector, Selector};
pub use self::version::Version;
