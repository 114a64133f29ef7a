//! A paged list request.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::accept::{accept, name_of};
use crate::body::{Obj, Untyped};
use crate::client::{Failure, Operation, ServerError};
use crate::client::{ListQuery, ListVersion, ListWatch, Source};
use crate::object::Object;
use crate::object::Version;
use crate::reflector::flow::Flow;
use crate::reflector::settings::PAGE;
use crate::reflector::step::Input;
use crate::reflector::{ObjectSource, ReflectorSettings};

/// Lists a resource in pages, so that neither the server nor the client has to hold the whole list.
///
/// It caches nothing and opens no watch.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # use serde_json::json;
/// # for nth in 0..10 {
/// #     let metadata = json!({"name": format!("map-{nth}")});
/// #     server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))?;
/// # }
/// # let client = kube::Client::new(server.service(), "default");
/// use futures_util::TryStreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::client::ApiListWatch;
/// use kube_informer::one_shot::Pager;
///
/// let maps = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(3);
/// let mut objects = maps.stream();
/// let mut names = Vec::new();
/// while let Some(map) = objects.try_next().await? {
///     names.push(map.name().to_owned());
/// }
/// assert_eq!(names.len(), 10);
/// assert_eq!(server.request_count(), 4);
/// # Ok(()) });
/// ```
///
/// A failed request is not retried; the [error](ServerError) shows whether a retry can help.
#[doc(alias = "ListPager")]
#[must_use = "nothing is asked for before `list` or `stream`"]
#[doc(alias("ListPageFunc", "SimplePageFunc", "PageFn"))]
pub struct Pager<K> {
    source: Source,
    query: ListQuery,
    settings: ReflectorSettings,
    ahead: ReadAhead,
    kind: PhantomData<fn() -> K>,
}

/// Whether a stream prefetches objects.
#[derive(Debug, Clone, Copy)]
enum ReadAhead {
    Off,
    UpTo(usize),
}

/// A complete list at one resource version.
///
/// ```
/// use kube_informer::one_shot::List;
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
    /// The resource version of the list: a watch from it misses nothing. See
    /// [`RetryWatch`](crate::one_shot::RetryWatch).
    pub version: Version,
}

impl<K: Object> Pager<K> {
    /// Creates a pager of this source: the latest version, 500 objects per page.
    pub fn new(source: impl ListWatch) -> Self {
        Self::of_source(Source::new(source))
    }

    pub(crate) fn of_source(source: Source) -> Self {
        let mut query = ListQuery::new(ListVersion::Latest);
        query.limit = Some(PAGE);
        Self { source, query, settings: ReflectorSettings::default(), ahead: ReadAhead::Off, kind: PhantomData }
    }

    /// Sets the maximum number of objects per page.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.query.limit = Some(objects.max(1));
        self
    }

    /// Sets how recent the list must be.
    ///
    /// A list of [any version](ListVersion::Any) is served from the server's cache, which is
    /// cheapest; it is often not paged.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::client::{ApiListWatch, ListVersion};
    /// use kube_informer::one_shot::Pager;
    ///
    /// let maps = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(1);
    /// assert_eq!(maps.version(ListVersion::Any).list().await?.objects.len(), 3);
    /// assert_eq!(server.request_count(), 1, "out of the server's cache, all at once");
    /// # Ok(()) });
    /// ```
    pub fn version(mut self, version: ListVersion) -> Self {
        self.query.version = version;
        self
    }

    /// Prefetches up to this many objects of a [stream](Self::stream), on a separate task that ends
    /// with the stream.
    ///
    /// Without it, the next page is requested when the last one has been consumed, and the continue
    /// token of a slow consumer expires after some minutes.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use futures_util::TryStreamExt;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// let maps = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(1).read_ahead(10);
    /// let mut objects = maps.stream();
    /// assert!(objects.try_next().await?.is_some());
    /// while server.request_count() < 3 {
    ///     tokio::task::yield_now().await; // the rest is fetched in the background
    /// }
    /// # Ok(()) });
    /// ```
    #[doc(alias = "PageBufferSize")]
    pub fn read_ahead(mut self, objects: usize) -> Self {
        self.ahead = ReadAhead::UpTo(objects.max(1));
        self
    }

    /// Returns all objects at one resource version.
    ///
    /// If the continue token expires, the objects received so far are dropped and the whole list is
    /// requested again, without pages.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// let list = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).page_size(2).list().await?;
    /// assert_eq!(list.objects.len(), 3);
    /// assert_eq!(list.version, server.revision().into());
    /// # Ok(()) });
    /// ```
    #[doc(alias("ListWithAlloc", "FullListIfExpired"))]
    pub fn list(&self) -> impl Future<Output = Result<List<K>, ServerError>> + Send + use<K> {
        let mut pages = self.pages();
        async move {
            let (mut objects, mut bytes) = (Vec::new(), 0_u64);
            while let Some(next) = pages.next().await {
                match next {
                    Ok(object) => {
                        bytes = bytes.saturating_add(object.weight() as u64);
                        let limit = pages.settings.max_list_bytes;
                        if bytes > limit {
                            return Err(pages.error(Failure::ListTooLarge { limit }));
                        }
                        objects.push(object.cast());
                    }
                    Err(error) if error.is_expired() && pages.can_list_unpaged() => {
                        (objects, bytes) = (Vec::new(), 0);
                        pages = pages.unpaged();
                    }
                    Err(error) => return Err(error),
                }
            }
            let version = pages.version.take().ok_or_else(|| pages.error(Failure::NoVersion))?;
            Ok(List { objects, version })
        }
    }

    /// Returns a stream of the objects. Each object is extracted as soon as it arrives: no page is
    /// buffered.
    ///
    /// The stream ends with the first error. An [expired](ServerError::is_expired) continue token
    /// is such an error: a new list would yield objects again that were already yielded.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime if [read-ahead](Self::read_ahead) is enabled.
    #[doc(alias = "EachListItem")]
    #[doc(alias("EachListItemWithAlloc"))]
    pub fn stream(&self) -> impl Stream<Item = Result<Obj<K>, ServerError>> + Send + Unpin + use<K> {
        let objects = stream::unfold(self.pages(), async |mut pages| Some((pages.next().await?, pages)));
        let objects = match self.ahead {
            ReadAhead::Off => objects.boxed(),
            ReadAhead::UpTo(most) => prefetched(objects.boxed(), most),
        };
        objects.map(|object| object.map(Obj::cast)).boxed()
    }

    fn pages(&self) -> Pages {
        Pages {
            source: self.source.clone(),
            what: name_of::<K>(),
            settings: self.settings,
            query: self.query.clone(),
            progress: Progress::Unrequested,
            waited: Duration::ZERO,
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

/// A list in progress.
struct Pages {
    source: Source,
    what: Arc<str>,
    settings: ReflectorSettings,
    query: ListQuery,
    progress: Progress,
    /// Time spent waiting for the server since the last object.
    waited: Duration,
    /// The version of the first page, which holds for all pages.
    version: Option<Version>,
}

enum Progress {
    Unrequested,
    Requested { flow: Box<Flow>, time_limit: Duration },
    Ended,
}

impl Pages {
    async fn next(&mut self) -> Option<Result<Obj<Untyped>, ServerError>> {
        loop {
            // A source that is always ready must not starve other tasks.
            tokio::task::coop::consume_budget().await;
            let (flow, time_limit) = match &mut self.progress {
                Progress::Unrequested => {
                    let answer = self.source.list(self.query.clone());
                    let flow = Box::new(Flow::list(Arc::clone(&self.what), answer));
                    self.progress = Progress::Requested { flow, time_limit: self.settings.answer_timeout };
                    continue;
                }
                Progress::Requested { flow, time_limit } => (flow, time_limit),
                Progress::Ended => return None,
            };
            let input = match flow.decode(ObjectSource::List, &mut accept) {
                Some(input) => Ok(input),
                None => {
                    let (since, left) = (Instant::now(), self.settings.list_timeout.saturating_sub(self.waited));
                    let input = timeout(left.min(*time_limit), flow.next()).await;
                    self.waited += since.elapsed();
                    input
                }
            };
            let failure = match input {
                Ok(Input::Item(object)) => {
                    self.waited = Duration::ZERO;
                    return Some(Ok(object));
                }
                Ok(Input::PageEnded(end)) => match end.other_kind() {
                    Some(kind) => Failure::NotAList { kind: kind.into() },
                    None if end.continue_token.is_some() && end.continue_token == self.query.continue_token => {
                        Failure::RepeatedPage
                    }
                    None => {
                        self.version = self.version.take().or(end.version);
                        self.query.continue_token = end.continue_token;
                        self.progress =
                            if self.query.continue_token.is_some() { Progress::Unrequested } else { Progress::Ended };
                        continue;
                    }
                },
                Ok(Input::BadFrame(_, failure)) => failure,
                Ok(Input::Failed(_, error)) => return Some(Err(self.fail(error))),
                Ok(_) => {
                    *time_limit = self.settings.list_idle_timeout;
                    continue;
                }
                Err(_) if self.waited >= self.settings.list_timeout => {
                    Failure::ListTooSlow { after: self.settings.list_timeout }
                }
                Err(_) => Failure::TimedOut { after: *time_limit },
            };
            let error = self.error(failure);
            return Some(Err(self.fail(error)));
        }
    }

    fn fail(&mut self, error: ServerError) -> ServerError {
        self.progress = Progress::Ended;
        error
    }

    fn error(&self, failure: Failure) -> ServerError {
        ServerError::new(Operation::List, Arc::clone(&self.what), failure)
    }

    /// Whether the failed request was for a page after the first, so that an unpaged list can
    /// replace it.
    fn can_list_unpaged(&self) -> bool {
        self.query.limit.is_some() && self.query.continue_token.is_some()
    }

    /// Restarts the list, without pages.
    fn unpaged(self) -> Self {
        let query = ListQuery { limit: None, continue_token: None, ..self.query };
        Self { query, progress: Progress::Unrequested, version: None, ..self }
    }
}

type Objects = BoxStream<'static, Result<Obj<Untyped>, ServerError>>;

fn prefetched(mut objects: Objects, most: usize) -> Objects {
    let (sender, receiver) = mpsc::channel(most);
    let fetching = tokio::spawn(async move {
        while let Some(object) = objects.next().await {
            if sender.send(object).await.is_err() {
                break;
            }
        }
    });
    let fetching = AbortOnDrop(fetching.abort_handle());
    stream::unfold((receiver, fetching), async |(mut receiver, fetching)| {
        Some((receiver.recv().await?, (receiver, fetching)))
    })
    .boxed()
}

/// Aborts the task when dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
