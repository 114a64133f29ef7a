//! The only door to a server.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use self::api::{ApiListWatch, Compression, client};
pub use self::body::{Body, Frame};
pub use self::query::{Bookmarks, Detail, ListQuery, ListVersion, Parameters, WatchQuery, WatchStart};

use super::ServerError;

mod api;
mod body;
mod query;

/// Where objects come from: an API server, or anything that can speak for one.
///
/// [`ApiListWatch`] is the one for a `kube::Client`. Implement it for sources of your own and for fakes: what is asked for is typed,
/// what is answered is bytes as a server would send them, which [`Body`] makes out of objects and events.
/// Write `async fn`:
///
/// ```
/// use kube_informer::{Body, Frame, ListQuery, ListWatch, ServerError, Version, WatchQuery};
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
/// `Arc<S>` is a source if `S` is, and wrappers that count or delay are a few lines.
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
    /// Asks for a list, or a page of one. The answer is the JSON of a list, unless it says [otherwise](Body::in_form).
    #[doc(alias("ListWithContext", "ListFunc", "ListWithContextFunc"))]
    fn list(&self, query: ListQuery) -> impl Future<Output = Result<Body, ServerError>> + Send;

    /// Opens a watch. The answer is one JSON event on each line, until it ends, unless it says [otherwise](Body::in_form).
    #[doc(alias("Watch", "WatchWithContext", "WatchFunc", "WatchFuncWithContext"))]
    fn watch(&self, query: WatchQuery) -> impl Future<Output = Result<Body, ServerError>> + Send;
}

impl<S: ListWatch> ListWatch for Arc<S> {
    async fn list(&self, query: ListQuery) -> Result<Body, ServerError> {
        S::list(self, query).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<Body, ServerError> {
        S::watch(self, query).await
    }
}

/// A source whose type nobody needs to know. Its futures own what they need, so that they can be held beside it.
#[derive(Clone)]
pub(crate) struct Source(Arc<dyn Boxed>);

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
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// [`ListWatch`] with its futures boxed, which a trait object can have.
trait Boxed: Send + Sync {
    fn list(self: Arc<Self>, query: ListQuery) -> BoxFuture<'static, Result<Body, ServerError>>;
    fn watch(self: Arc<Self>, query: WatchQuery) -> BoxFuture<'static, Result<Body, ServerError>>;
}

impl<S: ListWatch> Boxed for S {
    fn list(self: Arc<Self>, query: ListQuery) -> BoxFuture<'static, Result<Body, ServerError>> {
        Box::pin(async move { ListWatch::list(&*self, query).await })
    }

    fn watch(self: Arc<Self>, query: WatchQuery) -> BoxFuture<'static, Result<Body, ServerError>> {
        Box::pin(async move { ListWatch::watch(&*self, query).await })
    }
}
