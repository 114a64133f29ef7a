//! Access to a server: list and watch requests, their errors, and discovery.
//!
//! [`client()`] creates a client for informers, [`client_with_retries()`] one for writes.
//! [`ListWatch`] is the interface between an informer and its server, and [`ApiListWatch`]
//! implements it with a [`kube::Client`].

// Uses only `codec` and `object`. Every network request of the crate goes through here.

pub use self::discovery::lookup::LookupError;
pub use self::discovery::served::{ResourceScope, Resources, Served};
pub use self::list_watch::{
    ApiListWatch, Body, Bookmarks, Compression, Detail, Frame, ListQuery, ListVersion, ListWatch, Parameters,
    RequestedWire, WatchQuery, WatchStart, client, client_with_retries,
};
pub use self::scoped_resource::ScopedResource;
pub use self::server_error::{Failure, Operation, ServerError};

pub(crate) use self::list_watch::Source;
pub(crate) use self::server_error::answer;

pub(crate) mod discovery;
mod list_watch;
mod scoped_resource;
mod server_error;
