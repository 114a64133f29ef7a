//! Kubernetes informers.

#[doc(hidden)]
pub mod codec;
#[doc(hidden)]
pub mod delta;
#[doc(hidden)]
pub mod delta_fifo;
mod error;
mod event;
mod index;
#[doc(hidden)]
pub mod keeper;
mod key;
mod list_watch;
mod lister;
mod object;
mod path;
#[doc(hidden)]
pub mod reflector;
mod selector;
mod server_error;
#[doc(hidden)]
pub mod store;
mod version;

pub use self::codec::{ServerStatus, StatusCause, StatusDetails};
pub use self::error::{DecodeError, ParseError};
pub use self::event::{Event, FinalState, Origin};
pub use self::index::Index;
pub use self::keeper::Keep;
pub use self::key::ObjectKey;
pub use self::list_watch::{
    ApiListWatch, Body, Bookmarks, Compression, Detail, Frame, ListQuery, ListVersion, ListWatch, Parameters,
    WatchQuery, WatchStart, client,
};
pub use self::lister::{Lister, NamespaceLister, ObjRef, Snapshot};
pub use self::object::{Encoded, Kind, Labels, Obj, Object, Owner, Uid, Untyped};
pub use self::path::FieldPath;
pub use self::selector::{FieldSelector, Selector};
pub use self::server_error::{Doing, Failure, ServerError};
pub use self::store::Verdict;
pub use self::version::Version;
