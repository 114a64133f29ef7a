//! A watch that is resumed after disconnects.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::accept::{accept, name_of};
use crate::body::{Obj, Untyped};
use crate::client::{Failure, Operation, ServerError};
use crate::client::{ListWatch, Source, WatchQuery, WatchStart};
use crate::codec::Change;
use crate::object::Object;
use crate::object::Version;
use crate::reflector::backoff::Backoff;
use crate::reflector::flow::Flow;
use crate::reflector::rng::Rng;
use crate::reflector::step::{Frame, Input, Lane};
use crate::reflector::{ObjectSource, ReflectorSettings};

/// Watches from a resource version on, without a cache: yields the events that the server sends.
///
/// A watch that ends or fails is reopened at the last received version, with backoff, so that no
/// event is lost or repeated. The stream [ends](WatchStream) with an error if events would be
/// missed, or if a retry does not help.
///
/// There is no store to compare with: changes before the version are not reported, an object that
/// the caller already knows may be reported as added, and a server that has become silent is
/// detected only when the watch times out (five to ten minutes). To follow the state of objects
/// rather than events, use an [`Informer`](crate::Informer).
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # use serde_json::json;
/// # let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
/// # server.create(&map("a"))?;
/// # let client = kube::Client::new(server.service(), "default");
/// use futures_util::TryStreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::client::ApiListWatch;
/// use kube_informer::one_shot::{Pager, RetryWatch, WatchEvent};
///
/// let source = ApiListWatch::of::<ConfigMap>(client);
/// let list = Pager::<ConfigMap>::new(source.clone()).list().await?;
/// let mut events = RetryWatch::<ConfigMap>::after(source, list.version).stream();
/// # server.create(&map("b"))?;
/// while let Some(event) = events.try_next().await? {
///     let WatchEvent::Added(map) = event else { continue };
///     assert_eq!(map.name(), "b"); // "a" was there before
///     break;
/// }
/// # Ok(()) });
/// ```
#[doc(alias = "RetryWatcher")]
#[must_use = "nothing is asked for before `stream`"]
#[doc(alias("NewRetryWatcher", "NewRetryWatcherWithContext"))]
pub struct RetryWatch<K> {
    source: Source,
    version: Version,
    settings: ReflectorSettings,
    on_error: Option<OnError>,
    kind: PhantomData<fn() -> K>,
}

type OnError = Box<dyn FnMut(&ServerError) + Send>;

impl<K: Object> RetryWatch<K> {
    /// Creates a watch of the changes after this version, which is that of a list or an object.
    ///
    /// An empty version or `0` does not identify a position: a watch from there begins with objects
    /// of any age and could not be resumed. The stream then ends with
    /// [`NoVersion`](Failure::NoVersion).
    pub fn after(source: impl ListWatch, version: Version) -> Self {
        Self::of_source(Source::new(source), version)
    }

    pub(crate) fn of_source(source: Source, version: Version) -> Self {
        Self { source, version, settings: ReflectorSettings::default(), on_error: None, kind: PhantomData }
    }

    /// Sets the backoff, the timeouts and the watch duration. Settings that concern lists have no
    /// effect.
    pub fn settings(mut self, settings: ReflectorSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets a function that is called with every failure, whether or not it ends the stream.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use futures_util::TryStreamExt;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::Version;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::RetryWatch;
    ///
    /// server.faults().inject(Rule::new(Fault::status(500)).once());
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let before = Version::from(server.revision() - 1);
    /// let watch = RetryWatch::<ConfigMap>::after(ApiListWatch::of::<ConfigMap>(client), before);
    /// let mut events = watch.on_error(move |error| sender.send(error.code()).unwrap_or_default()).stream();
    /// assert_eq!(events.try_next().await?.unwrap().object().name(), "a");
    /// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [Some(500)]);
    /// # Ok(()) });
    /// ```
    pub fn on_error(mut self, on_error: impl FnMut(&ServerError) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(on_error));
        self
    }

    /// Returns the events as a stream. The first request is sent when the stream is first polled.
    #[doc(alias("ResultChan"))]
    pub fn stream(self) -> WatchStream<K> {
        let Self { source, version, settings, on_error, kind } = self;
        let reached = Arc::new(Mutex::new(version.clone()));
        let begun = Instant::now();
        let run = RunningWatch {
            source,
            what: name_of::<K>(),
            settings,
            on_error,
            backoff: Backoff::new(settings.backoff),
            rng: Rng::random(),
            begun,
            connection: if is_unset(&version) { Connection::NoVersion } else { Connection::Closed { until: begun } },
            strikes: 0,
            brief: false,
            reached: Arc::clone(&reached),
        };
        let events = stream::unfold(run, async |mut run| Some((run.next().await?, run))).boxed();
        WatchStream { events, reached, kind }
    }
}

fn is_unset(version: &Version) -> bool {
    version.is_empty() || version.number() == Some(0)
}

impl<K> fmt::Debug for RetryWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryWatch").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The event stream of a [`RetryWatch`].
///
/// The stream ends after an error: the version is [expired](ServerError::is_expired) and the server
/// no longer has the changes after it (list again), the server refuses the request (401, 403, 404
/// and similar), or the response is not a watch. All other failures are retried. Dropping the
/// stream closes its connection.
///
/// ```
/// use futures_util::TryStreamExt as _;
/// use kube_informer::client::ServerError;
/// use kube_informer::one_shot::WatchStream;
/// use kube_informer::{Untyped, Version};
///
/// // The version to resume from after this many events.
/// async fn after(mut stream: WatchStream<Untyped>, changes: usize) -> Result<Version, ServerError> {
///     for _ in 0..changes {
///         stream.try_next().await?;
///     }
///     Ok(stream.version())
/// }
/// ```
#[must_use = "a stream does nothing unless it is asked"]
#[doc(alias("Stop"))]
pub struct WatchStream<K> {
    events: BoxStream<'static, Result<WatchEvent<Untyped>, ServerError>>,
    reached: Arc<Mutex<Version>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> WatchStream<K> {
    /// Returns the last received version: a new watch from it continues where this one is.
    /// Bookmarks advance it too.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use futures_util::TryStreamExt;
    /// use kube_informer::Version;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::RetryWatch;
    ///
    /// let source = ApiListWatch::of::<ConfigMap>(client);
    /// let mut events = RetryWatch::<ConfigMap>::after(source.clone(), Version::from(server.revision() - 2)).stream();
    /// assert_eq!(events.try_next().await?.unwrap().object().name(), "a");
    /// let mut rest = RetryWatch::<ConfigMap>::after(source, events.version()).stream();
    /// assert_eq!(rest.try_next().await?.unwrap().object().name(), "b");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn version(&self) -> Version {
        self.reached.lock().clone()
    }
}

impl<K> Stream for WatchStream<K> {
    type Item = Result<WatchEvent<K>, ServerError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = self.events.poll_next_unpin(context);
        event.map(|event| event.map(|event| event.map(WatchEvent::cast)))
    }
}

impl<K> fmt::Debug for WatchStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").field("version", &self.version()).finish_non_exhaustive()
    }
}

/// An event of a watch. Unlike an [`Event`](crate::Event), it does not contain the previous state.
///
/// ```
/// use kube_informer::one_shot::WatchEvent;
/// use kube_informer::{Obj, Untyped};
///
/// let object = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a"}}"#)?;
/// assert_eq!(WatchEvent::Added(object).object().name(), "a");
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub enum WatchEvent<K> {
    /// The object was created, or now matches the selector.
    Added(Obj<K>),
    /// The object was modified.
    Modified(Obj<K>),
    /// The object was deleted, or no longer matches the selector. Contains the last state, with the
    /// version of the deletion.
    Deleted(Obj<K>),
}

impl<K> WatchEvent<K> {
    /// Returns the object in its current or last state.
    #[must_use]
    pub fn object(&self) -> &Obj<K> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => object,
        }
    }

    /// Returns whether the object was deleted or no longer matches the selector.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted(_))
    }

    fn cast<V>(self) -> WatchEvent<V> {
        match self {
            Self::Added(object) => WatchEvent::Added(object.cast()),
            Self::Modified(object) => WatchEvent::Modified(object.cast()),
            Self::Deleted(object) => WatchEvent::Deleted(object.cast()),
        }
    }
}

/// A running watch.
struct RunningWatch {
    source: Source,
    what: Arc<str>,
    settings: ReflectorSettings,
    on_error: Option<OnError>,
    backoff: Backoff,
    rng: Rng,
    begun: Instant,
    connection: Connection,
    /// Number of consecutive undecodable frames.
    strikes: u32,
    /// Whether the last watch was closed at once, though it had delivered something.
    brief: bool,
    reached: Arc<Mutex<Version>>,
}

enum Connection {
    /// There is no version to start from.
    NoVersion,
    /// To be opened at `until`.
    Closed {
        until: Instant,
    },
    Open(Box<Open>),
    Ended,
}

/// One request and its response.
struct Open {
    flow: Flow,
    requested_at: Instant,
    duration: Duration,
    /// Deadline of the response, then of the end of the watch.
    due: Instant,
    /// The last received version when the request was sent.
    from: Version,
}

impl RunningWatch {
    async fn next(&mut self) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        loop {
            // A source that is always ready must not starve other tasks.
            tokio::task::coop::consume_budget().await;
            let open = match &mut self.connection {
                Connection::NoVersion => return Some(Err(self.fail(self.error(Failure::NoVersion)))),
                Connection::Closed { until } => {
                    sleep_until(*until).await;
                    self.open();
                    continue;
                }
                Connection::Open(open) => open,
                Connection::Ended => return None,
            };
            let input = match open.flow.decode(ObjectSource::Watch, &mut accept) {
                Some(input) => Ok(input),
                None => timeout_at(open.due, open.flow.next()).await,
            };
            let event = match input {
                Ok(input) => self.on_input(input),
                Err(_) => self.on_timeout(),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn open(&mut self) {
        let from = self.reached.lock().clone();
        let duration = self.settings.watch_duration(self.rng.next_fraction());
        let answer = self.source.watch(WatchQuery::new(WatchStart::After(from.clone()), duration));
        let flow = Flow::watch(Lane::Main, Operation::Watch, Arc::clone(&self.what), answer);
        let requested_at = Instant::now();
        let due = requested_at + self.settings.answer_timeout;
        self.connection = Connection::Open(Box::new(Open { flow, requested_at, duration, due, from }));
    }

    fn on_input(&mut self, input: Input) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        match input {
            Input::Opened(_) => {
                let overtime = self.settings.watch_overtime;
                if let Connection::Open(open) = &mut self.connection {
                    open.due = open.requested_at + open.duration + overtime;
                }
                self.backoff.healthy(self.begun.elapsed());
                None
            }
            Input::Frame(_, Frame::Changed(_, object)) if object.version().is_empty() => {
                Some(Err(self.fail(self.error(Failure::NoVersion))))
            }
            Input::Frame(_, Frame::Changed(change, object)) => {
                self.advance_to(object.version().clone());
                Some(Ok(match change {
                    Change::Added => WatchEvent::Added(object),
                    Change::Modified => WatchEvent::Modified(object),
                    Change::Deleted => WatchEvent::Deleted(object),
                }))
            }
            Input::Frame(_, Frame::Bookmark { version, .. } | Frame::Outside { version }) => {
                self.advance_to(version);
                None
            }
            // Skipping the object would lose an event.
            Input::BadFrame(_, failure @ Failure::UndecodableObject(_)) => Some(Err(self.fail(self.error(failure)))),
            Input::BadFrame(_, failure) => self.unreadable(self.error(failure)),
            Input::FailureFrame(_, error) | Input::Failed(_, error) => match error.failure() {
                Failure::TooLong { .. } | Failure::Gzip => self.unreadable(error),
                _ => self.failed(error),
            },
            Input::Ended(_) => self.ended(),
            Input::Bytes(_)
            | Input::Start
            | Input::Item(_)
            | Input::ItemOutside
            | Input::ShardMoved(_)
            | Input::ShardSupport(_)
            | Input::PageEnded(_)
            | Input::Revision(_)
            | Input::Definition(_)
            | Input::Tick
            | Input::Resumed
            | Input::Held(_) => None,
        }
    }

    fn advance_to(&mut self, version: Version) {
        let mut reached = self.reached.lock();
        // The version never goes back, and text does not replace a number.
        if version == *reached || !version.may_follow(&reached) {
            return;
        }
        *reached = version;
        self.strikes = 0;
    }

    /// Handles the regular end of a watch.
    fn ended(&mut self) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        let Connection::Open(open) = &self.connection else { return None };
        let short = open.requested_at.elapsed() < self.settings.short_watch;
        if short && open.from == *self.reached.lock() {
            return self.failed(self.error(Failure::ShortWatch));
        }
        // Watches that are closed at once again and again, though each delivers something, are
        // opened one per `short_watch`.
        let was_brief = std::mem::replace(&mut self.brief, short);
        let until = if short && was_brief { open.requested_at + self.settings.short_watch } else { Instant::now() };
        self.connection = Connection::Closed { until };
        None
    }

    fn on_timeout(&mut self) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        let Connection::Open(open) = &self.connection else { return None };
        let after = open.due.saturating_duration_since(open.requested_at);
        self.failed(self.error(Failure::TimedOut { after }))
    }

    fn unreadable(&mut self, error: ServerError) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        self.strikes += 1;
        if self.strikes >= self.settings.relist_after_bad_frames {
            Some(Err(self.fail(error)))
        } else {
            self.failed(error)
        }
    }

    fn failed(&mut self, error: ServerError) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        if !error.is_retryable() {
            return Some(Err(self.fail(error)));
        }
        self.report(&error);
        let (now, chance) = (self.begun.elapsed(), self.rng.next_fraction());
        let wait = self.backoff.after(&error, now, chance, self.settings.longest_retry_after);
        self.connection = Connection::Closed { until: Instant::now() + wait };
        None
    }

    fn fail(&mut self, error: ServerError) -> ServerError {
        self.report(&error);
        self.connection = Connection::Ended;
        error
    }

    fn report(&mut self, error: &ServerError) {
        tracing::debug!(%error, "a watch met a failure");
        if let Some(on_error) = &mut self.on_error {
            on_error(error);
        }
    }

    fn error(&self, failure: Failure) -> ServerError {
        ServerError::new(Operation::Watch, Arc::clone(&self.what), failure)
    }
}
