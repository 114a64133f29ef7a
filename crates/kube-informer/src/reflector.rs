//! Lists once, then watches, and tells what it hears as deltas. Whatever fails, it finds its way back.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, Fuse};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use self::definition_watch::{DefinitionState, DefinitionWatch};
pub use self::settings::{BackoffSettings, ReflectorSettings, Streaming};
pub use self::sink::{DeltaSink, SinkClosed};
pub use self::status::{Counters, ReflectorState, ReflectorStatus, RelistReason, Relists, Synced};

use self::flow::{Flow, read_revision};
use self::machine::{Machine, Step};
use self::rng::Rng;
use self::step::{Action, Input, Lane};
use crate::body::{Obj, Untyped};
use crate::client::{Doing, ServerError};
use crate::client::{ListWatch, Source, WatchQuery, WatchStart};
use crate::object::DecodeError;
use crate::object::Version;
use crate::store::{Delta, WatchScope};

pub(crate) mod backoff;
mod definition_watch;
pub(crate) mod flow;
mod machine;
pub(crate) mod rng;
pub(crate) mod settings;
mod sink;
mod status;
pub(crate) mod step;

/// Keeps one resource, or one namespace of it, under watch.
///
/// [`run`](Self::run) is the whole of it: one future with no task of its own, so that dropping it ends everything it began, and
/// no connection is left. What it tells goes to a [`DeltaSink`]; how it fares can be seen through [`status`](Self::status) at any
/// time, and every failure, also one on an established stream, is told to [`on_error`](Self::on_error).
///
/// What it does and when is decided by a state machine without clock, chance or I/O; this is the thin shell around it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
/// #     server.create(&serde_json::json!({
/// #         "apiVersion": "v1", "kind": "ConfigMap",
/// #         "metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "data": {"ip": ip},
/// #     }))?;
/// # }
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::store::{Delta, WatchScope};
/// use kube_informer::reflector::{Reflector, ReflectorSettings, ObjectSource};
/// use kube_informer::{ApiListWatch, Obj};
///
/// let intake = |json: &bytes::Bytes, _: ObjectSource| Obj::from_json(json.clone());
/// let source = ApiListWatch::of::<ConfigMap>(client);
/// let reflector = Reflector::new("configmaps", WatchScope::Everything, source, ReflectorSettings::default(), intake);
/// let (sink, mut deltas) = tokio::sync::mpsc::channel(100);
/// let running = tokio::spawn(reflector.run(sink));
/// assert!(matches!(deltas.recv().await, Some(Delta::RelistBegun(_))));
/// assert!(matches!(deltas.recv().await, Some(Delta::Listed(_))));
/// running.abort();
/// # Ok(())
/// # }
/// ```
pub struct Reflector {
    source: Source,
    what: Arc<str>,
    machine: Machine,
    intake: Box<dyn Intake>,
    on_error: Option<OnError>,
    definition_watch: Option<Arc<dyn DefinitionWatch>>,
    status: watch::Sender<ReflectorStatus>,
    rng: Rng,
}

type OnError = Box<dyn FnMut(&ServerError) + Send>;

/// Makes objects out of their bytes, as they are to be kept. A closure does.
///
/// ```
/// use bytes::Bytes;
/// use kube_informer::reflector::{Intake, ObjectSource};
/// use kube_informer::{DecodeError, Obj, Untyped};
///
/// /// Counts what comes in.
/// struct Counted(u64);
///
/// impl Intake for Counted {
///     fn accept(&mut self, json: &Bytes, _: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
///         self.0 += 1;
///         Obj::from_json(json.clone())
///     }
/// }
/// ```
pub trait Intake: Send {
    /// Makes an object out of its JSON.
    fn accept(&mut self, json: &Bytes, source: ObjectSource) -> Result<Obj<Untyped>, DecodeError>;

    /// Whether something is left to do that nobody need wait for.
    fn is_behind(&self) -> bool {
        false
    }

    /// Does it. Called when all that was received has been told, before more is.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use kube_informer::reflector::{Intake, ObjectSource};
    /// use kube_informer::{DecodeError, Obj, Untyped};
    ///
    /// /// Hands out objects at once, and files them later.
    /// #[derive(Default)]
    /// struct Filing {
    ///     unfiled: Vec<Obj<Untyped>>,
    ///     filed: Vec<String>,
    /// }
    ///
    /// impl Intake for Filing {
    ///     fn accept(&mut self, json: &Bytes, _: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
    ///         let object = Obj::from_json(json.clone())?;
    ///         self.unfiled.push(object.clone());
    ///         Ok(object)
    ///     }
    ///
    ///     fn is_behind(&self) -> bool {
    ///         !self.unfiled.is_empty()
    ///     }
    ///
    ///     fn catch_up(&mut self) {
    ///         self.filed.extend(self.unfiled.drain(..).map(|object| object.name().to_owned()));
    ///     }
    /// }
    /// ```
    fn catch_up(&mut self) {}
}

impl<F> Intake for F
where
    F: FnMut(&Bytes, ObjectSource) -> Result<Obj<Untyped>, DecodeError> + Send,
{
    fn accept(&mut self, json: &Bytes, source: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
        self(json, source)
    }
}

/// What an object came in.
///
/// ```
/// use kube_informer::reflector::ObjectSource;
///
/// fn is_fresh(whence: ObjectSource) -> bool {
///     whence == ObjectSource::Watch
/// }
/// assert!(!is_fresh(ObjectSource::List));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectSource {
    /// A list, streamed or not: it may have been as it is for long.
    List,
    /// A watch: it has just changed.
    Watch,
}

impl Reflector {
    /// A reflector of what this source has, which is all there is of `scope`. `what` names it in errors, such as `pods`.
    #[must_use]
    #[doc(alias("NewReflector", "NewNamedReflector", "NewReflectorWithOptions", "TypeDescription"))]
    pub fn new(
        what: impl Into<Arc<str>>,
        scope: WatchScope,
        source: impl ListWatch,
        settings: ReflectorSettings,
        intake: impl Intake + 'static,
    ) -> Self {
        Self::boxed(what.into(), scope, source, settings, Box::new(intake))
    }

    pub(crate) fn boxed(
        what: Arc<str>,
        scope: WatchScope,
        source: impl ListWatch,
        settings: ReflectorSettings,
        intake: Box<dyn Intake>,
    ) -> Self {
        Self {
            source: Source::new(source),
            machine: Machine::new(Arc::clone(&what), scope, settings),
            what,
            intake,
            on_error: None,
            definition_watch: None,
            status: watch::Sender::new(ReflectorStatus::new()),
            rng: Rng::random(),
        }
    }

    /// Calls this with every failure, whatever is then done about it.
    #[must_use]
    pub fn on_error(mut self, on_error: impl FnMut(&ServerError) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(on_error));
        self
    }

    /// Has somebody look out for the resource while the server does not know it.
    pub(crate) fn definition_watch(mut self, definition_watch: Arc<dyn DefinitionWatch>) -> Self {
        self.definition_watch = Some(definition_watch);
        self
    }

    /// Fixes what is otherwise left to chance: how long watches and waits last.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.rng = Rng::seeded(seed);
        self
    }

    /// How it fares. Receivers are woken when the state changes; counters and times are always up to date.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::store::{Delta, WatchScope};
    /// use kube_informer::reflector::{Reflector, ReflectorSettings, Synced, ObjectSource};
    /// use kube_informer::{ApiListWatch, Obj};
    ///
    /// let intake = |json: &bytes::Bytes, _: ObjectSource| Obj::from_json(json.clone());
    /// let source = ApiListWatch::of::<ConfigMap>(client);
    /// let reflector = Reflector::new("configmaps", WatchScope::Everything, source, ReflectorSettings::default(), intake);
    /// let mut status = reflector.status();
    /// let (sink, _deltas) = tokio::sync::mpsc::channel::<Delta>(100);
    /// let running = tokio::spawn(reflector.run(sink));
    /// status.wait_for(|status| status.synced == Synced::Yes).await?;
    /// running.abort();
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> watch::Receiver<ReflectorStatus> {
        self.status.subscribe()
    }

    /// Lists and watches until the sink is closed or this future is dropped.
    #[doc(alias("RunWithContext", "ListAndWatch", "ListAndWatchWithContext"))]
    pub async fn run(self, sink: impl DeltaSink) {
        let Self { source, what, machine, intake, on_error, definition_watch, status, rng } = self;
        let mut run = Run {
            source,
            what,
            machine,
            intake,
            on_error,
            definition_watch,
            sights: None,
            status: Publisher(status),
            rng,
            started: Instant::now(),
            main: None,
            beside: None,
            revision: None,
            actions: Vec::new(),
            sink,
        };
        // The only way out is a sink that nobody reads any more.
        let Err(SinkClosed) = run.forever().await;
    }
}

impl fmt::Debug for Reflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").field("what", &self.what).field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// A reflector at work.
struct Run<S> {
    source: Source,
    what: Arc<str>,
    machine: Machine,
    intake: Box<dyn Intake>,
    on_error: Option<OnError>,
    definition_watch: Option<Arc<dyn DefinitionWatch>>,
    /// What is seen of the resource, while the server does not know it.
    sights: Option<Fuse<BoxStream<'static, DefinitionState>>>,
    status: Publisher,
    rng: Rng,
    started: Instant,
    main: Option<Flow>,
    beside: Option<Second>,
    revision: Option<BoxFuture<'static, Result<Version, ServerError>>>,
    /// To be done, in order. Kept for its room.
    actions: Vec<Action>,
    sink: S,
}

/// The second watch.
struct Second {
    flow: Flow,
    held: bool,
}

impl<S: DeltaSink> Run<S> {
    async fn forever(&mut self) -> Result<Infallible, SinkClosed> {
        self.step(Input::Start).await?;
        loop {
            while let Some(input) = self.decode() {
                self.step(input).await?;
            }
            self.publish();
            if self.intake.is_behind() {
                // Those who are told come first, also where there is one thread for all.
                tokio::task::yield_now().await;
                self.intake.catch_up();
            }
            let input = self.wait().await;
            self.step(input).await?;
            if self.machine.due().is_some_and(|due| due <= self.now()) {
                // Under a steady stream time would never be looked at.
                self.step(Input::Tick).await?;
            }
        }
    }

    /// What can be read out of the bytes at hand.
    fn decode(&mut self) -> Option<Input> {
        let source = if self.machine.is_listing() { ObjectSource::List } else { ObjectSource::Watch };
        let main = self.main.as_mut().and_then(|flow| flow.decode(source, &mut *self.intake));
        main.or_else(|| {
            let second = self.beside.as_mut().filter(|second| !second.held)?;
            second.flow.decode(ObjectSource::Watch, &mut *self.intake)
        })
    }

    /// Waits for something to happen.
    async fn wait(&mut self) -> Input {
        let due = self.machine.due().map(|due| self.started + due);
        let beside = self.beside.as_mut().filter(|second| !second.held);
        tokio::select! {
            biased;
            input = or_never(self.main.as_mut().map(Flow::next)) => input,
            answer = or_never(self.revision.as_mut()) => {
                self.revision = None;
                Input::Revision(answer)
            }
            input = or_never(beside.map(|second| second.flow.next())) => input,
            Some(sight) = or_never(self.sights.as_mut().map(StreamExt::next)) => Input::Sighted(sight),
            () = or_never(due.map(tokio::time::sleep_until)) => Input::Tick,
        }
    }

    /// Lets the machine take a step, and does what it says.
    async fn step(&mut self, input: Input) -> Result<(), SinkClosed> {
        let mut actions = std::mem::take(&mut self.actions);
        let mut step = Step { now: self.now(), rng: &mut self.rng, actions: &mut actions };
        self.machine.step(input, &mut step);
        let mut done = Ok(());
        for action in actions.drain(..) {
            if done.is_ok() {
                done = self.act(action).await;
            }
        }
        self.actions = actions;
        done
    }

    async fn act(&mut self, action: Action) -> Result<(), SinkClosed> {
        match action {
            Action::Deliver(delta) => return self.deliver(delta).await,
            Action::Report(error) => {
                tracing::debug!(%error, "the reflector met a failure");
                if let Some(on_error) = &mut self.on_error {
                    on_error(&error);
                }
            }
            Action::List(query) => {
                self.main = Some(Flow::list(Arc::clone(&self.what), self.source.list(query)));
            }
            Action::Watch(query) => self.main = Some(self.watch(Lane::Main, query)),
            Action::Close => self.main = None,
            Action::AskRevision(query) => {
                let answer = self.source.list(query);
                self.revision = Some(Box::pin(read_revision(Arc::clone(&self.what), answer)));
            }
            Action::WatchBeside(query) => {
                self.beside = Some(Second { flow: self.watch(Lane::Beside, query), held: false });
            }
            Action::HoldBeside => {
                if let Some(second) = &mut self.beside {
                    second.held = true;
                }
            }
            Action::LookOut => {
                self.sights = self.definition_watch.as_ref().map(|definition_watch| definition_watch.look().fuse());
            }
            Action::LookAway => self.sights = None,
            Action::CloseBeside => {
                self.beside = None;
                self.revision = None;
            }
            Action::Switch => {
                self.main = self.beside.take().map(|second| second.flow.into_main());
                self.revision = None;
            }
        }
        Ok(())
    }

    async fn deliver(&mut self, delta: Delta) -> Result<(), SinkClosed> {
        {
            let mut accepting = std::pin::pin!(self.sink.accept(delta));
            if let Some(accepted) = accepting.as_mut().now_or_never() {
                return accepted;
            }
            accepting.await?;
        }
        let mut step = Step { now: self.now(), rng: &mut self.rng, actions: &mut Vec::new() };
        self.machine.step(Input::Resumed, &mut step);
        Ok(())
    }

    fn watch(&self, lane: Lane, query: WatchQuery) -> Flow {
        let doing = match query.start {
            WatchStart::After(_) => Doing::Watch,
            WatchStart::Everything { .. } => Doing::StreamingList,
        };
        Flow::watch(lane, doing, Arc::clone(&self.what), self.source.watch(query))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn publish(&self) {
        let state = self.machine.state(self.started);
        self.status.0.send_if_modified(|status| {
            let synced = status.synced;
            self.machine.show(self.started, status);
            let changed = !state.resembles(&status.state) || status.synced != synced;
            status.state = state;
            changed
        });
    }
}

/// Tells that it is over when the reflector is dropped, wherever it was.
struct Publisher(watch::Sender<ReflectorStatus>);

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.send_modify(|status| status.state = ReflectorState::Stopped);
    }
}

/// Waits for a future, if there is one.
async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
