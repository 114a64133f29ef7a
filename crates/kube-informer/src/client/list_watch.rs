//! The list and watch requests of a source of objects.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use self::api::ApiListWatch;
pub use self::body::{Body, Frame};
pub use self::compression::Compression;
pub use self::connect::{client, client_with_retries};
pub use self::query::{Bookmarks, Detail, ListQuery, ListVersion, Parameters, WatchQuery, WatchStart};
pub use self::requested_wire::RequestedWire;

use super::ServerError;
use crate::shard::{Shard, ShardSupport};

mod api;
mod body;
mod compression;
mod connect;
mod followed;
mod query;
mod representation;
mod requested_wire;
mod response;
mod server_name;
mod shard_support;

/// A source of objects: an API server, or anything that behaves like one.
///
/// [`ApiListWatch`] is the implementation for a `kube::Client`. Implement the trait for custom
/// sources and fakes: queries are typed, responses are bytes as a server would send them, which
/// [`Body`] builds from objects and events. Write `async fn`:
///
/// ```
/// use kube_informer::Version;
/// use kube_informer::client::{Body, Frame, ListQuery, ListWatch, ServerError, WatchQuery};
///
/// struct OneMap;
///
/// impl ListWatch for OneMap {
///     async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
///         let map = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
///         Ok(Body::from_list(&Version::new("1"), [map]))
///     }
///
///     async fn watch(&self, _: WatchQuery) -> Result<Body, ServerError> {
///         Ok(Body::from_frames(futures_util::stream::pending::<Frame>()))
///     }
/// }
/// ```
///
/// `Arc<S>` is a source if `S` is, and wrappers that count or delay requests take a few lines.
#[doc(alias(
    "ListerWatcher",
    "ListerWatcherWithContext",
    "ListerWithContext",
    "Watcher",
    "WatcherWithContext",
    "FakeControllerSource",
    "FakePVControllerSource",
    "FakePVCControllerSource",
    "NewFakeControllerSource",
    "NewFakePVControllerSource",
    "NewFakePVCControllerSource"
))]
pub trait ListWatch: Send + Sync + 'static {
    /// Requests a list, or a page of one. The response is the JSON of a list, unless it has another
    /// [wire format](Body::in_form).
    #[doc(alias("ListWithContext", "ListFunc", "ListWithContextFunc"))]
    fn list(&self, query: ListQuery) -> impl Future<Output = Result<Body, ServerError>> + Send;

    /// Opens a watch. The response is one JSON event per line, until it ends, unless it has another
    /// [wire format](Body::in_form).
    #[doc(alias("Watch", "WatchWithContext", "WatchFunc", "WatchFuncWithContext"))]
    fn watch(&self, query: WatchQuery) -> impl Future<Output = Result<Body, ServerError>> + Send;

    /// Asks whether lists and watches of a shard contain only its objects. Unknown by default.
    ///
    /// Called after lists that do not show it themselves.
    fn shard_support(&self, shard: Arc<Shard>) -> impl Future<Output = Result<ShardSupport, ServerError>> + Send {
        drop(shard);
        std::future::ready(Ok(ShardSupport::Unknown))
    }

    /// The address of the server, if it is known, for the log.
    fn server(&self) -> Option<Arc<str>> {
        None
    }
}

impl<S: ListWatch> ListWatch for Arc<S> {
    async fn list(&self, query: ListQuery) -> Result<Body, ServerError> {
        S::list(self, query).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<Body, ServerError> {
        S::watch(self, query).await
    }

    async fn shard_support(&self, shard: Arc<Shard>) -> Result<ShardSupport, ServerError> {
        S::shard_support(self, shard).await
    }

    fn server(&self) -> Option<Arc<str>> {
        S::server(self)
    }
}

/// A type-erased source. Its futures are `'static`, so that they can be stored next to it.
#[derive(Clone)]
pub(crate) struct Source(Arc<dyn DynListWatch>);

impl Source {
    pub(crate) fn new(source: impl ListWatch) -> Self {
        Self(Arc::new(source))
    }

    pub(crate) fn list(&self, query: ListQuery) -> BoxFuture<'static, Result<Body, ServerError>> {
        Arc::clone(&self.0).list(query)
    }

    pub(crate) fn watch(&self, query: WatchQuery) -> BoxFuture<'static, Result<Body, ServerError>> {
        Arc::clone(&self.0).watch(query)
    }

    pub(crate) fn shard_support(&self, shard: Arc<Shard>) -> BoxFuture<'static, Result<ShardSupport, ServerError>> {
        Arc::clone(&self.0).shard_support(shard)
    }

    pub(crate) fn server(&self) -> Option<Arc<str>> {
        self.0.server()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// Object-safe [`ListWatch`], with boxed futures.
trait DynListWatch: Send + Sync {
    fn list(self: Arc<Self>, query: ListQuery) -> BoxFuture<'static, Result<Body, ServerError>>;
    fn watch(self: Arc<Self>, query: WatchQuery) -> BoxFuture<'static, Result<Body, ServerError>>;
    fn shard_support(self: Arc<Self>, shard: Arc<Shard>) -> BoxFuture<'static, Result<ShardSupport, ServerError>>;
    fn server(&self) -> Option<Arc<str>>;
}

impl<S: ListWatch> DynListWatch for S {
    fn list(self: Arc<Self>, query: ListQuery) -> BoxFuture<'static, Result<Body, ServerError>> {
        Box::pin(async move { ListWatch::list(&*self, query).await })
    }

    fn watch(self: Arc<Self>, query: WatchQuery) -> BoxFuture<'static, Result<Body, ServerError>> {
        Box::pin(async move { ListWatch::watch(&*self, query).await })
    }

    fn shard_support(self: Arc<Self>, shard: Arc<Shard>) -> BoxFuture<'static, Result<ShardSupport, ServerError>> {
        Box::pin(async move { ListWatch::shard_support(&*self, shard).await })
    }

    fn server(&self) -> Option<Arc<str>> {
        ListWatch::server(self)
    }
}
