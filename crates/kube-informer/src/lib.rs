//! Kubernetes informers.

#[doc(hidden)]
pub mod codec;
mod controller;
#[doc(hidden)]
pub mod delta;
#[doc(hidden)]
pub mod delta_fifo;
mod error;
mod event;
mod handler;
mod health;
mod index;
mod informer;
#[doc(hidden)]
pub mod keeper;
mod key;
mod list_watch;
mod lister;
mod metrics;
mod object;
mod path;
mod processor;
pub mod reflector;
mod selector;
mod server_error;
#[doc(hidden)]
pub mod store;
mod subscription;
mod version;
mod workqueue;

pub use self::codec::{ServerStatus, StatusCause, StatusDetails};
pub use self::delta_fifo::Discipline;
pub use self::error::{DecodeError, ParseError, Stale, SyncError, WaitError};
pub use self::event::{Event, FinalState, Origin};
pub use self::handler::HandlerBuilder;
pub use self::health::{Condition, Health};
pub use self::index::Index;
pub use self::informer::{Informer, InformerBuilder, Settings, WhenRefused};
pub use self::keeper::Keep;
pub use self::key::ObjectKey;
pub use self::list_watch::{
    ApiListWatch, Body, Bookmarks, Compression, Detail, Frame, ListQuery, ListVersion, ListWatch, Parameters,
    WatchQuery, WatchStart, client,
};
pub use self::lister::{Lister, NamespaceLister, ObjRef, Snapshot};
#[cfg(feature = "metrics")]
pub use self::metrics::Facade;
pub use self::metrics::{Figures, HandlerFigures, Metrics};
pub use self::object::{Encoded, Kind, Labels, Obj, Object, Owner, Uid, Untyped};
pub use self::path::FieldPath;
pub use self::processor::{Backlog, Overflow};
pub use self::selector::{FieldSelector, Selector};
pub use self::server_error::{Doing, Failure, ServerError};
pub use self::store::Verdict;
pub use self::subscription::{Registration, Subscription};
pub use self::version::Version;
pub use self::workqueue::{Item, Next, Priority, QueueMetrics, RateLimit, WorkQueue, WorkQueueBuilder};
