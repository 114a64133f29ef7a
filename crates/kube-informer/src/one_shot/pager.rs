//! A list, asked for in pages.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::accept::{accept, name_of};
use crate::body::{Obj, Untyped};
use crate::client::{Doing, Failure, ServerError};
use crate::client::{ListQuery, ListVersion, ListWatch, Source};
use crate::object::Object;
use crate::object::Version;
use crate::reflector::flow::Flow;
use crate::reflector::settings::PAGE;
use crate::reflector::step::Input;
use crate::reflector::{ObjectSource, ReflectorSettings};

/// Lists in pages, so that neither the server nor we have to hold everything at once. Keeps nothing and watches nothing.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # for nth in 0..10 {
/// #     let metadata = json!({"name": format!("map-{nth}")});
/// #     server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))?;
/// # }
/// # let client = kube::Client::new(server.service(), "default");
/// use futures_util::TryStreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{ApiListWatch, Pager};
///
/// let maps = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(3);
/// let mut objects = maps.stream();
/// let mut names = Vec::new();
/// while let Some(map) = objects.try_next().await? {
///     names.push(map.name().to_owned());
/// }
/// assert_eq!(names.len(), 10);
/// assert_eq!(server.request_count(), 4);
/// # Ok(())
/// # }
/// ```
///
/// A request that fails is not repeated: whether that would help, the [error](ServerError) tells.
#[doc(alias = "ListPager")]
#[must_use = "nothing is asked for before `list` or `stream`"]
#[doc(alias("ListPageFunc", "SimplePageFunc", "PageFn"))]
pub struct Pager<K> {
    source: Source,
    query: ListQuery,
    settings: ReflectorSettings,
    ahead: Ahead,
    kind: PhantomData<fn() -> K>,
}

/// Whether objects are fetched before they are asked for.
#[derive(Debug, Clone, Copy)]
enum Ahead {
    Not,
    UpTo(usize),
}

/// A whole list, as of one version.
///
/// ```
/// use kube_informer::List;
///
/// fn names<K>(list: &List<K>) -> Vec<&str> {
///     list.objects.iter().map(|object| object.name()).collect()
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct List<K> {
    /// The objects, in the server's order.
    pub objects: Vec<Obj<K>>,
    /// The version of the list: a watch from here misses nothing. See [`RetryWatch`](crate::RetryWatch).
    pub version: Version,
}

impl<K: Object> Pager<K> {
    /// Lists what this source has: the newest, 500 objects on a page.
    pub fn new(source: impl ListWatch) -> Self {
        Self::of_source(Source::new(source))
    }

    pub(crate) fn of_source(source: Source) -> Self {
        let mut query = ListQuery::new(ListVersion::Latest);
        query.limit = Some(PAGE);
        Self { source, query, settings: ReflectorSettings::default(), ahead: Ahead::Not, kind: PhantomData }
    }

    /// The most objects on a page.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.query.limit = Some(objects.max(1));
        self
    }

    /// How new the list must be. A list of [any version](ListVersion::Any) comes out of the server's cache, where it costs
    /// least, often without pages.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b", "c"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{ApiListWatch, ListVersion, Pager};
    ///
    /// let maps = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(1);
    /// assert_eq!(maps.version(ListVersion::Any).list().await?.objects.len(), 3);
    /// assert_eq!(server.request_count(), 1, "out of the server's cache, all at once");
    /// # Ok(())
    /// # }
    /// ```
    pub fn version(mut self, version: ListVersion) -> Self {
        self.query.version = version;
        self
    }

    /// Fetches up to so many objects of a [stream](Self::stream) before they are asked for, on a task of its own that ends with the
    /// stream. Without it the next page is asked for when the last one has been taken, and pages of somebody who takes their time
    /// expire after some minutes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b", "c"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use futures_util::TryStreamExt;
    /// use kube_informer::{ApiListWatch, Pager};
    ///
    /// let maps = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(1).read_ahead(10);
    /// let mut objects = maps.stream();
    /// assert!(objects.try_next().await?.is_some());
    /// while server.request_count() < 3 {
    ///     tokio::task::yield_now().await; // the rest comes while we are busy
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "PageBufferSize")]
    pub fn read_ahead(mut self, objects: usize) -> Self {
        self.ahead = Ahead::UpTo(objects.max(1));
        self
    }

    /// Everything, as of one version.
    ///
    /// Should the pages expire on the way, what has come so far is dropped, and everything is asked for once more and at once.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b", "c"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{ApiListWatch, Pager};
    ///
    /// let list = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(2).list().await?;
    /// assert_eq!(list.objects.len(), 3);
    /// assert_eq!(list.version, server.revision().into());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias("ListWithAlloc", "FullListIfExpired"))]
    pub fn list(&self) -> BoxFuture<'static, Result<List<K>, ServerError>> {
        let mut pages = self.pages();
        Box::pin(async move {
            let mut objects = Vec::new();
            while let Some(next) = pages.next().await {
                match next {
                    Ok(object) => objects.push(object.cast()),
                    Err(error) if error.is_expired() && pages.can_do_without() => {
                        objects.clear();
                        pages = pages.at_once();
                    }
                    Err(error) => return Err(error),
                }
            }
            let version = pages.version.take().ok_or_else(|| pages.error(Failure::NoVersion))?;
            Ok(List { objects, version })
        })
    }

    /// The objects one by one, cut out of each page while it arrives: no page is ever held.
    ///
    /// Ends with the first error. Should the pages [expire](ServerError::is_expired) on the way, that is such an error: what was handed
    /// out cannot be taken back, and a new list would hand it out again.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if it is to [read ahead](Self::read_ahead).
    #[doc(alias = "EachListItem")]
    #[must_use]
    #[doc(alias("EachListItemWithAlloc"))]
    pub fn stream(&self) -> BoxStream<'static, Result<Obj<K>, ServerError>> {
        let objects = stream::unfold(self.pages(), async |mut pages| Some((pages.next().await?, pages)));
        let objects = match self.ahead {
            Ahead::Not => objects.boxed(),
            Ahead::UpTo(most) => fetched_ahead(objects.boxed(), most),
        };
        objects.map(|object| object.map(Obj::cast)).boxed()
    }

    fn pages(&self) -> Pages {
        Pages {
            source: self.source.clone(),
            what: name_of::<K>(),
            settings: self.settings,
            query: self.query.clone(),
            place: Place::Before,
            version: None,
        }
    }
}

impl<K> Clone for Pager<K> {
    fn clone(&self) -> Self {
        let Self { source, query, settings, ahead, kind } = self;
        Self { source: source.clone(), query: query.clone(), settings: *settings, ahead: *ahead, kind: *kind }
    }
}

impl<K> fmt::Debug for Pager<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pager").field("query", &self.query).field("ahead", &self.ahead).finish_non_exhaustive()
    }
}

/// A list on its way.
struct Pages {
    source: Source,
    what: Arc<str>,
    settings: ReflectorSettings,
    query: ListQuery,
    place: Place,
    /// Of the first page, which is that of all.
    version: Option<Version>,
}

enum Place {
    Before,
    Asking { flow: Box<Flow>, patience: Duration },
    Over,
}

impl Pages {
    async fn next(&mut self) -> Option<Result<Obj<Untyped>, ServerError>> {
        loop {
            let (flow, patience) = match &mut self.place {
                Place::Before => {
                    let answer = self.source.list(self.query.clone());
                    let flow = Box::new(Flow::list(Arc::clone(&self.what), answer));
                    self.place = Place::Asking { flow, patience: self.settings.answer_timeout };
                    continue;
                }
                Place::Asking { flow, patience } => (flow, patience),
                Place::Over => return None,
            };
            let input = match flow.decode(ObjectSource::List, &mut accept) {
                Some(input) => Ok(input),
                None => timeout(*patience, flow.next()).await,
            };
            let failure = match input {
                Ok(Input::Item(object)) => return Some(Ok(object)),
                Ok(Input::PageEnded(end)) => match end.other_kind() {
                    Some(kind) => Failure::NotAList { kind: kind.into() },
                    None => {
                        self.version = self.version.take().or(end.version);
                        self.query.continue_token = end.continue_token;
                        self.place = if self.query.continue_token.is_some() { Place::Before } else { Place::Over };
                        continue;
                    }
                },
                Ok(Input::BadObject(_)) => Failure::UndecodableObject,
                Ok(Input::Failed(_, error)) => return Some(Err(self.over(error))),
                Ok(_) => {
                    *patience = self.settings.list_idle_timeout;
                    continue;
                }
                Err(_) => Failure::TimedOut { after: *patience },
            };
            let error = self.error(failure);
            return Some(Err(self.over(error)));
        }
    }

    fn over(&mut self, error: ServerError) -> ServerError {
        self.place = Place::Over;
        error
    }

    fn error(&self, failure: Failure) -> ServerError {
        ServerError::new(Doing::List, Arc::clone(&self.what), failure)
    }

    /// Whether what failed was a further page of several.
    fn can_do_without(&self) -> bool {
        self.query.limit.is_some() && self.query.continue_token.is_some()
    }

    /// The same from the beginning, without pages.
    fn at_once(self) -> Self {
        let query = ListQuery { limit: None, continue_token: None, ..self.query };
        Self { query, place: Place::Before, version: None, ..self }
    }
}

type Objects = BoxStream<'static, Result<Obj<Untyped>, ServerError>>;

fn fetched_ahead(mut objects: Objects, most: usize) -> Objects {
    let (sender, receiver) = mpsc::channel(most);
    let fetching = tokio::spawn(async move {
        while let Some(object) = objects.next().await {
            if sender.send(object).await.is_err() {
                break;
            }
        }
    });
    let fetching = Fetching(fetching.abort_handle());
    stream::unfold((receiver, fetching), async |(mut receiver, fetching)| {
        Some((receiver.recv().await?, (receiver, fetching)))
    })
    .boxed()
}

/// A task that ends when this goes.
struct Fetching(AbortHandle);

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.abort();
    }
}
