//! A watch that goes on when its connection does not.

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
use crate::client::{Doing, Failure, ServerError};
use crate::client::{ListWatch, Source, WatchQuery, WatchStart};
use crate::codec::Change;
use crate::object::Object;
use crate::object::Version;
use crate::reflector::backoff::Backoff;
use crate::reflector::flow::Flow;
use crate::reflector::rng::Rng;
use crate::reflector::step::{Frame, Input, Lane};
use crate::reflector::{ObjectSource, ReflectorSettings};

/// Watches from a version on, without a cache: what the server tells, as it tells it.
///
/// A watch that ends or breaks is opened again where it left off, after waits that grow, so that nothing is told twice and nothing is
/// missed. It [ends](WatchStream) with an error where going on would miss something, or cannot help.
///
/// There is no store here to compare with: what happened before the version is not told, an object may be told as added that the
/// caller knows, and a server that has gone silent is noticed only when the watch's own time is over (five to ten minutes). Whoever
/// wants the state of things rather than the news should use an [`Informer`](crate::Informer).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
/// # server.create(&map("a"))?;
/// # let client = kube::Client::new(server.service(), "default");
/// use futures_util::TryStreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{ApiListWatch, Pager, RetryWatch, WatchEvent};
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
/// # Ok(())
/// # }
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
    /// Watches what happens after this version, which is that of a list, or of an object.
    ///
    /// An empty version, or `0`, is none: a watch from there begins with objects of any age, and could not be taken up again. The
    /// stream then ends with [`NoVersion`](Failure::NoVersion).
    pub fn after(source: impl ListWatch, version: Version) -> Self {
        Self::of_source(Source::new(source), version)
    }

    pub(crate) fn of_source(source: Source, version: Version) -> Self {
        Self { source, version, settings: ReflectorSettings::default(), on_error: None, kind: PhantomData }
    }

    /// How it waits, and how long its watches last: of a reflector's settings those that a watch without lists can use.
    pub fn settings(mut self, settings: ReflectorSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Calls this with every failure, whether or not it ends the stream.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # for name in ["a"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use futures_util::TryStreamExt;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::{ApiListWatch, RetryWatch, Version};
    ///
    /// server.faults().inject(Rule::new(Fault::status(500)).once());
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let before = Version::from(server.revision() - 1);
    /// let watch = RetryWatch::<ConfigMap>::after(ApiListWatch::of::<ConfigMap>(client), before);
    /// let mut events = watch.on_error(move |error| tell.send(error.code()).unwrap_or_default()).stream();
    /// assert_eq!(events.try_next().await?.unwrap().object().name(), "a");
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), [Some(500)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_error(mut self, on_error: impl FnMut(&ServerError) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(on_error));
        self
    }

    /// The events. Nothing is asked for until somebody waits for the first.
    #[doc(alias("ResultChan"))]
    pub fn stream(self) -> WatchStream<K> {
        let Self { source, version, settings, on_error, kind } = self;
        let reached = Arc::new(Mutex::new(version.clone()));
        let begun = Instant::now();
        let run = Run {
            source,
            what: name_of::<K>(),
            settings,
            on_error,
            backoff: Backoff::new(settings.backoff),
            rng: Rng::random(),
            begun,
            place: if is_none(&version) { Place::Nowhere } else { Place::Closed { until: begun } },
            strikes: 0,
            reached: Arc::clone(&reached),
        };
        let events = stream::unfold(run, async |mut run| Some((run.next().await?, run))).boxed();
        WatchStream { events, reached, kind }
    }
}

fn is_none(version: &Version) -> bool {
    version.is_empty() || version.number() == Some(0)
}

impl<K> fmt::Debug for RetryWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryWatch").field("version", &self.version).finish_non_exhaustive()
    }
}

/// What happens to objects, as the server tells it.
///
/// After an error there is nothing more. That is [expired](ServerError::is_expired) where the server no longer knows what happened
/// after our version (list anew), a refusal (401, 403, 404 and their like), or an answer that is no watch. Everything else is waited
/// out. Dropping the stream closes its connection.
///
/// ```
/// use futures_util::TryStreamExt as _;
/// use kube_informer::{ServerError, Untyped, Version, WatchStream};
///
/// // Where to go on from, once so many changes have been seen.
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
    /// The version reached: a new watch from here goes on where this one is. Bookmarks move it too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use futures_util::TryStreamExt;
    /// use kube_informer::{ApiListWatch, RetryWatch, Version};
    ///
    /// let source = ApiListWatch::of::<ConfigMap>(client);
    /// let mut events = RetryWatch::<ConfigMap>::after(source.clone(), Version::from(server.revision() - 2)).stream();
    /// assert_eq!(events.try_next().await?.unwrap().object().name(), "a");
    /// let mut rest = RetryWatch::<ConfigMap>::after(source, events.version()).stream();
    /// assert_eq!(rest.try_next().await?.unwrap().object().name(), "b");
    /// # Ok(())
    /// # }
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

/// What a watch tells. Unlike an [`Event`](crate::Event) it knows nothing of what was before.
///
/// ```
/// use kube_informer::{Obj, Untyped, WatchEvent};
///
/// let object = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a"}}"#)?;
/// assert_eq!(WatchEvent::Added(object).object().name(), "a");
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub enum WatchEvent<K> {
    /// The object entered what is watched.
    Added(Obj<K>),
    /// The object was changed.
    Modified(Obj<K>),
    /// The object left what is watched. This is the last of it, with the version of its end.
    Deleted(Obj<K>),
}

impl<K> WatchEvent<K> {
    /// The object, as it is or last was.
    #[must_use]
    pub fn object(&self) -> &Obj<K> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => object,
        }
    }

    /// Whether the object has left what is watched.
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

/// A watch at work.
struct Run {
    source: Source,
    what: Arc<str>,
    settings: ReflectorSettings,
    on_error: Option<OnError>,
    backoff: Backoff,
    rng: Rng,
    begun: Instant,
    place: Place,
    /// Frames in a row that could not be read.
    strikes: u32,
    reached: Arc<Mutex<Version>>,
}

enum Place {
    /// There is no version to begin with.
    Nowhere,
    /// To be opened then.
    Closed {
        until: Instant,
    },
    Open(Box<Open>),
    Over,
}

/// One request and its answer.
struct Open {
    flow: Flow,
    asked: Instant,
    lasts: Duration,
    /// When it will have taken too long: to answer, or to end.
    due: Instant,
    /// How far we had come when it was asked for.
    from: Version,
}

impl Run {
    async fn next(&mut self) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        loop {
            let open = match &mut self.place {
                Place::Nowhere => return Some(Err(self.over(self.error(Failure::NoVersion)))),
                Place::Closed { until } => {
                    sleep_until(*until).await;
                    self.open();
                    continue;
                }
                Place::Open(open) => open,
                Place::Over => return None,
            };
            let input = match open.flow.decode(ObjectSource::Watch, &mut accept) {
                Some(input) => Ok(input),
                None => timeout_at(open.due, open.flow.next()).await,
            };
            let told = match input {
                Ok(input) => self.heard(input),
                Err(_) => self.overdue(),
            };
            if let Some(told) = told {
                return Some(told);
            }
        }
    }

    fn open(&mut self) {
        let from = self.reached.lock().clone();
        let lasts = self.settings.watch_lasts(self.rng.roll());
        let answer = self.source.watch(WatchQuery::new(WatchStart::After(from.clone()), lasts));
        let flow = Flow::watch(Lane::Main, Doing::Watch, Arc::clone(&self.what), answer);
        let asked = Instant::now();
        let due = asked + self.settings.answer_timeout;
        self.place = Place::Open(Box::new(Open { flow, asked, lasts, due, from }));
    }

    fn heard(&mut self, input: Input) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        match input {
            Input::Opened(_) => {
                let overtime = self.settings.watch_overtime;
                if let Place::Open(open) = &mut self.place {
                    open.due = open.asked + open.lasts + overtime;
                }
                self.backoff.healthy(self.begun.elapsed());
                None
            }
            Input::Frame(_, Frame::Changed(_, object)) if object.version().is_empty() => {
                Some(Err(self.over(self.error(Failure::NoVersion))))
            }
            Input::Frame(_, Frame::Changed(change, object)) => {
                self.reach(object.version().clone());
                Some(Ok(match change {
                    Change::Added => WatchEvent::Added(object),
                    Change::Modified => WatchEvent::Modified(object),
                    Change::Deleted => WatchEvent::Deleted(object),
                }))
            }
            Input::Frame(_, Frame::Bookmark { version, .. }) => {
                self.reach(version);
                None
            }
            // To pass it over would be to miss something.
            Input::BadObject(_) => Some(Err(self.over(self.error(Failure::UndecodableObject)))),
            Input::BadFrame(_, broken) => self.unreadable(self.error(Failure::Undecodable(broken))),
            Input::FailureFrame(_, error) | Input::Failed(_, error) => match error.failure() {
                Failure::TooLong { .. } | Failure::Gzip => self.unreadable(error),
                _ => self.failed(error),
            },
            Input::Ended(_) => self.ended(),
            Input::Bytes(_)
            | Input::Start
            | Input::Item(_)
            | Input::PageEnded(_)
            | Input::Revision(_)
            | Input::Sighted(_)
            | Input::Tick
            | Input::Resumed => None,
        }
    }

    fn reach(&mut self, version: Version) {
        let mut reached = self.reached.lock();
        // Never back; a version that cannot be compared is as good as the one before.
        if version.is_empty() || version <= *reached {
            return;
        }
        *reached = version;
        self.strikes = 0;
    }

    /// The watch has ended as it should.
    fn ended(&mut self) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        let Place::Open(open) = &self.place else { return None };
        let short = open.asked.elapsed() < self.settings.short_watch && open.from == *self.reached.lock();
        if short {
            return self.failed(self.error(Failure::ShortWatch));
        }
        self.place = Place::Closed { until: Instant::now() };
        None
    }

    fn overdue(&mut self) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        let Place::Open(open) = &self.place else { return None };
        let after = open.due.saturating_duration_since(open.asked);
        self.failed(self.error(Failure::TimedOut { after }))
    }

    fn unreadable(&mut self, error: ServerError) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        self.strikes += 1;
        if self.strikes >= self.settings.relist_after_strikes {
            Some(Err(self.over(error)))
        } else {
            self.failed(error)
        }
    }

    fn failed(&mut self, error: ServerError) -> Option<Result<WatchEvent<Untyped>, ServerError>> {
        if !error.may_pass() {
            return Some(Err(self.over(error)));
        }
        self.tell(&error);
        let (now, chance) = (self.begun.elapsed(), self.rng.roll());
        let wait = self.backoff.after(&error, now, chance, self.settings.longest_retry_after);
        self.place = Place::Closed { until: Instant::now() + wait };
        None
    }

    fn over(&mut self, error: ServerError) -> ServerError {
        self.tell(&error);
        self.place = Place::Over;
        error
    }

    fn tell(&mut self, error: &ServerError) {
        tracing::debug!(%error, "a watch met a failure");
        if let Some(on_error) = &mut self.on_error {
            on_error(error);
        }
    }

    fn error(&self, failure: Failure) -> ServerError {
        ServerError::new(Doing::Watch, Arc::clone(&self.what), failure)
    }
}
