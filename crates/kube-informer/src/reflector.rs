//! Lists a resource, then watches it, and emits the results as deltas; recovers from every failure.
//!
//! An informer runs its own reflectors; programs use the [settings](ReflectorSettings) and the
//! [`Counters`]. [`Reflector`] itself is the advanced layer, for deltas that go elsewhere.

// `machine` is the pure state machine, the rest is the future that drives it. Uses `client`,
// `codec`, `body`, `object` and `store`; must not use `pipeline`, `informer` or `factory`.

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
pub use self::status::{Counters, Degradation, ReflectorState, ReflectorStatus, RelistReason, Relists, Synced};

use self::failure_log::{FailureLog, Line};
use self::flow::{Flow, read_revision};
use self::machine::{Machine, Step};
use self::rng::Rng;
use self::step::{Action, Input, Lane, ServerState};
use crate::body::{Obj, Untyped};
use crate::client::{ListWatch, Source, WatchQuery, WatchStart};
use crate::client::{Operation, ServerError};
use crate::object::DecodeError;
use crate::shard::{Shard, ShardSupport, Sharded};
use crate::store::{Delta, WatchScope, guarded};

pub(crate) mod backoff;
mod definition_watch;
mod failure_log;
pub(crate) mod flow;
mod machine;
pub(crate) mod rng;
pub(crate) mod settings;
mod sink;
mod status;
pub(crate) mod step;

/// Keeps one resource, or one namespace of it, under watch.
///
/// [`run`](Self::run) does all the work: it is one future that spawns no tasks, so dropping it
/// cancels every request and closes every connection. Deltas go to a [`DeltaSink`];
/// [`status`](Self::status) exposes the current state at any time; [`on_error`](Self::on_error) is
/// called with every failure, including failures on an established stream.
///
/// A state machine without clock, randomness or I/O makes all decisions; this type is the thin
/// shell around it.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Obj;
/// use kube_informer::client::ApiListWatch;
/// use kube_informer::reflector::{ObjectSource, Reflector, ReflectorSettings};
/// use kube_informer::store::{Delta, WatchScope};
///
/// let intake = |json: &bytes::Bytes, _: ObjectSource| Obj::from_json(json.clone());
/// let source = ApiListWatch::of::<ConfigMap>(client);
/// let reflector = Reflector::new("configmaps", WatchScope::Everything, source, ReflectorSettings::default(), intake);
/// let (sink, mut deltas) = tokio::sync::mpsc::channel(100);
/// let running = tokio::spawn(reflector.run(sink));
/// assert!(matches!(deltas.recv().await, Some(Delta::RelistBegun(_))));
/// assert!(matches!(deltas.recv().await, Some(Delta::Listed(_))));
/// running.abort();
/// # Ok(()) });
/// ```
pub struct Reflector {
    source: Source,
    what: Arc<str>,
    scope: WatchScope,
    machine: Machine,
    intake: Box<dyn Intake>,
    on_error: Option<OnError>,
    definition_watch: Option<Arc<dyn DefinitionWatch>>,
    shards: Option<watch::Receiver<Arc<Shard>>>,
    status: watch::Sender<ReflectorStatus>,
    rng: Rng,
}

/// Receives the status of a reflector.
pub(crate) type StatusReceiver = watch::Receiver<ReflectorStatus>;

type OnError = Box<dyn FnMut(&ServerError) + Send>;

/// Turns the JSON of received objects into [`Obj`]s. Closures implement it.
///
/// ```
/// use bytes::Bytes;
/// use kube_informer::reflector::{Intake, ObjectSource};
/// use kube_informer::{DecodeError, Obj, Untyped};
///
/// /// Counts the objects received.
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
    /// Builds an object from its JSON.
    fn accept(&mut self, json: &Bytes, source: ObjectSource) -> Result<Obj<Untyped>, DecodeError>;

    /// Builds an object of a shard from its JSON. By default every object is built, and those
    /// outside are dropped.
    fn accept_sharded(&mut self, json: &Bytes, source: ObjectSource, shard: &Shard) -> Result<Sharded, DecodeError> {
        self.accept(json, source).map(|object| Sharded::new(object, shard))
    }

    /// Whether there is deferred work that delivery need not wait for.
    fn is_behind(&self) -> bool {
        false
    }

    /// Does the deferred work. Called when everything received so far has been delivered, before
    /// more is read.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use kube_informer::reflector::{Intake, ObjectSource};
    /// use kube_informer::{DecodeError, Obj, Untyped};
    ///
    /// /// Returns objects immediately, and files them later.
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

/// Whether an object came from a list or from a watch.
///
/// ```
/// use kube_informer::reflector::ObjectSource;
///
/// fn is_fresh(source: ObjectSource) -> bool {
///     source == ObjectSource::Watch
/// }
/// assert!(!is_fresh(ObjectSource::List));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectSource {
    /// A list, streaming or not: the object may have been in this state for a long time.
    List,
    /// A watch: the object has just changed.
    Watch,
}

impl Reflector {
    /// Creates a reflector of `source`, whose objects are exactly those of `scope`. `what` names
    /// the resource in errors, such as `pods`.
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
            machine: Machine::new(Arc::clone(&what), scope.clone(), settings),
            what,
            scope,
            intake,
            on_error: None,
            definition_watch: None,
            shards: None,
            status: watch::Sender::new(ReflectorStatus::idle()),
            rng: Rng::random(),
        }
    }

    /// Sets a function that is called with every failure, regardless of how the reflector recovers.
    #[must_use]
    pub fn on_error(mut self, on_error: impl FnMut(&ServerError) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(on_error));
        self
    }

    /// Restricts it to a shard, which may move. See [`Shard`].
    #[must_use]
    pub fn shards(mut self, mut shards: watch::Receiver<Arc<Shard>>) -> Self {
        self.machine.begin_with_shard(Arc::clone(&shards.borrow_and_update()));
        self.shards = Some(shards);
        self
    }

    /// Sets the source of definition changes, used while the server does not know the resource.
    pub(crate) fn definition_watch(mut self, definition_watch: Arc<dyn DefinitionWatch>) -> Self {
        self.definition_watch = Some(definition_watch);
        self
    }

    /// Seeds the random numbers for watch durations and backoff jitter, to make them reproducible.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.rng = Rng::seeded(seed);
        self
    }

    /// The current status. Receivers are woken when the state changes; counters and times are
    /// always up to date.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::reflector::{ObjectSource, Reflector, ReflectorSettings, Synced};
    /// use kube_informer::store::{Delta, WatchScope};
    ///
    /// let intake = |json: &bytes::Bytes, _: ObjectSource| Obj::from_json(json.clone());
    /// let source = ApiListWatch::of::<ConfigMap>(client);
    /// let reflector = Reflector::new("configmaps", WatchScope::Everything, source, ReflectorSettings::default(), intake);
    /// let mut status = reflector.status();
    /// let (sink, _deltas) = tokio::sync::mpsc::channel::<Delta>(100);
    /// let running = tokio::spawn(reflector.run(sink));
    /// status.wait_for(|status| status.synced == Synced::Yes).await?;
    /// running.abort();
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn status(&self) -> watch::Receiver<ReflectorStatus> {
        self.status.subscribe()
    }

    /// Lists and watches until the sink is closed or this future is dropped.
    #[doc(alias("RunWithContext", "ListAndWatch", "ListAndWatchWithContext"))]
    pub async fn run(self, sink: impl DeltaSink) {
        let Self { source, what, scope, machine, intake, on_error, definition_watch, shards, status, rng } = self;
        let mut run = RunningReflector {
            source,
            what,
            scope,
            failure_log: FailureLog::default(),
            machine,
            intake,
            on_error,
            definition_watch,
            definition_states: None,
            shards,
            shard_support: None,
            status: Publisher(status),
            rng,
            started: Instant::now(),
            main: None,
            second: None,
            revision: None,
            actions: Vec::new(),
            held: None,
            sink,
        };
        // `run_loop` only ends when the sink is closed.
        let Err(SinkClosed) = run.run_loop().await;
    }
}

impl fmt::Debug for Reflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").field("what", &self.what).field("machine", &self.machine).finish_non_exhaustive()
    }
}

/// A running reflector.
struct RunningReflector<S> {
    source: Source,
    what: Arc<str>,
    scope: WatchScope,
    failure_log: FailureLog,
    machine: Machine,
    intake: Box<dyn Intake>,
    on_error: Option<OnError>,
    definition_watch: Option<Arc<dyn DefinitionWatch>>,
    /// Changes of the resource's definition, observed while the server does not know the resource.
    definition_states: Option<Fuse<BoxStream<'static, DefinitionState>>>,
    shards: Option<watch::Receiver<Arc<Shard>>>,
    /// The answer to whether the server obeys shard selectors.
    shard_support: Option<BoxFuture<'static, Result<ShardSupport, ServerError>>>,
    status: Publisher,
    rng: Rng,
    started: Instant,
    main: Option<Flow>,
    second: Option<SecondWatch>,
    revision: Option<BoxFuture<'static, Result<ServerState, ServerError>>>,
    /// Pending actions; reused between steps to avoid reallocating.
    actions: Vec<Action>,
    /// How many bytes of objects the sink holds, if the machine has asked for it.
    held: Option<u64>,
    sink: S,
}

/// The second watch, opened while the main one is suspected to be stalled.
struct SecondWatch {
    flow: Flow,
    paused: bool,
}

impl<S: DeltaSink> RunningReflector<S> {
    async fn run_loop(&mut self) -> Result<Infallible, SinkClosed> {
        self.step(Input::Start).await?;
        loop {
            while let Some(input) = self.decode() {
                self.step(input).await?;
            }
            self.publish();
            self.log_failures();
            if self.intake.is_behind() {
                // Let handlers run first, also on a single-threaded runtime.
                tokio::task::yield_now().await;
                guarded("intake", || self.intake.catch_up());
            }
            // A source that is always ready must not starve other tasks.
            tokio::task::coop::consume_budget().await;
            let input = self.wait().await;
            self.step(input).await?;
            if self.machine.due().is_some_and(|due| due <= self.now()) {
                // A continuously ready stream would otherwise starve the timer branch of `wait`.
                self.step(Input::Tick).await?;
            }
        }
    }

    /// Decodes the next input from the bytes already received.
    fn decode(&mut self) -> Option<Input> {
        if let Some(bytes) = self.held.take() {
            return Some(Input::Held(bytes));
        }
        let source = if self.machine.is_listing() { ObjectSource::List } else { ObjectSource::Watch };
        let main = self.main.as_mut().and_then(|flow| flow.decode(source, &mut *self.intake));
        main.or_else(|| {
            let second = self.second.as_mut().filter(|second| !second.paused)?;
            second.flow.decode(ObjectSource::Watch, &mut *self.intake)
        })
    }

    /// Waits for the next event.
    async fn wait(&mut self) -> Input {
        let due = self.machine.due().map(|due| self.started + due);
        let second = self.second.as_mut().filter(|second| !second.paused);
        tokio::select! {
            biased;
            // One answer, so it cannot starve the main stream; that one could starve it.
            answer = or_never(self.revision.as_mut()) => {
                self.revision = None;
                Input::Revision(answer)
            }
            Ok(()) = or_never(self.shards.as_mut().map(watch::Receiver::changed)) => {
                Input::ShardMoved(self.shards.as_mut().map(|shards| Arc::clone(&shards.borrow_and_update())))
            }
            answer = or_never(self.shard_support.as_mut()) => {
                self.shard_support = None;
                Input::ShardSupport(answer)
            }
            input = or_never(self.main.as_mut().map(Flow::next)) => input,
            input = or_never(second.map(|second| second.flow.next())) => input,
            Some(state) = or_never(self.definition_states.as_mut().map(StreamExt::next)) => Input::Definition(state),
            () = or_never(due.map(tokio::time::sleep_until)) => Input::Tick,
        }
    }

    /// Runs one step of the machine and executes the resulting actions.
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
                    guarded("on_error", || on_error(&error));
                }
            }
            Action::List(query) => {
                let shard = query.shard.clone();
                self.main = Some(Flow::list(Arc::clone(&self.what), self.source.list(query)).of_shard(shard));
            }
            Action::Watch(query) => self.main = Some(self.watch(Lane::Main, query)),
            Action::AskShardSupport(shard) => self.shard_support = Some(self.source.shard_support(shard)),
            Action::Close => self.main = None,
            Action::RequestRevision(query) => {
                let object = query.object.clone();
                let answer = self.source.list(query);
                self.revision = Some(Box::pin(read_revision(Arc::clone(&self.what), object, answer)));
            }
            Action::WatchSecond(query) => {
                self.second = Some(SecondWatch { flow: self.watch(Lane::Second, query), paused: false });
            }
            Action::PauseSecond => {
                if let Some(second) = &mut self.second {
                    second.paused = true;
                }
            }
            Action::WatchDefinition => {
                self.definition_states =
                    self.definition_watch.as_ref().map(|definition_watch| definition_watch.look().fuse());
            }
            Action::UnwatchDefinition => self.definition_states = None,
            Action::MeasureHeld => self.held = self.sink.held_bytes(&self.scope),
            Action::CloseSecond => {
                self.second = None;
                self.revision = None;
            }
            Action::Switch => {
                self.main = self.second.take().map(|second| second.flow.into_main());
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
            WatchStart::After(_) => Operation::Watch,
            WatchStart::Everything { .. } => Operation::StreamingList,
        };
        let shard = query.shard.clone();
        Flow::watch(lane, doing, Arc::clone(&self.what), self.source.watch(query)).of_shard(shard)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Logs a failure that has appeared, or has another cause, and the recovery from it.
    fn log_failures(&mut self) {
        let now = self.now();
        let degraded = self.machine.degraded();
        let Some(line) = self.failure_log.line(degraded, now) else { return };
        let (resource, scope) = (&*self.what, failure_log::scope_name(&self.scope));
        let server = self.source.server();
        let server = server.as_deref().unwrap_or("unknown");
        match (line, degraded) {
            (Line::Failed, Some((cause, _))) => tracing::warn!(
                resource,
                scope,
                server,
                error = %cause,
                advice = failure_log::advice(cause, resource, &self.scope),
                "a list or watch fails and is retried: the cache may be stale",
            ),
            (Line::Recovered { after }, _) => {
                tracing::info!(
                    resource,
                    scope,
                    server,
                    ?after,
                    "lists and watches work again: the cache follows the server"
                );
            }
            (Line::Failed, None) => {}
        }
    }

    fn publish(&self) {
        let state = self.machine.state(self.started);
        self.status.0.send_if_modified(|status| {
            let (synced, degraded, unverified_since) = (status.synced, status.degraded.take(), status.unverified_since);
            let shard = status.shard;
            self.machine.show(self.started, status);
            status.wire = self.main.as_ref().and_then(Flow::wire).or(status.wire);
            let is_as_before = match (&degraded, &status.degraded) {
                (Some(before), Some(now)) => before.resembles(now),
                (before, now) => before.is_none() && now.is_none(),
            };
            let is_known_alike =
                status.synced == synced && status.unverified_since == unverified_since && status.shard == shard;
            let changed = !is_as_before || !is_known_alike || !state.resembles(&status.state);
            status.state = state;
            changed
        });
    }
}

/// Publishes [`ReflectorState::Stopped`] when the reflector is dropped, in whichever state it was.
struct Publisher(watch::Sender<ReflectorStatus>);

impl Drop for Publisher {
    fn drop(&mut self) {
        self.0.send_modify(|status| status.state = ReflectorState::Stopped);
    }
}

/// Waits for the future, or never completes if there is none.
async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
