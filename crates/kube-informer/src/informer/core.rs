//! The state shared by all handles of one informer.

use std::future::{Future, poll_fn};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use kube::core::ApiResource;
use parking_lot::Mutex;
use tokio::runtime;
use tokio::time::{Instant, sleep, timeout};

use super::live::LiveInformer;
use super::settings::WhenRefused;
use super::sharding::Shards;
use super::{InvalidSetting, SetNamespacesError, SyncError, WaitError};
use crate::body::{Obj, Raw, Untyped};
use crate::client::ServerError;
use crate::object::ObjectKey;
use crate::object::Version;
use crate::pipeline::InformerName;
use crate::pipeline::controller::{Alive, Controller, ControllerShared, Stop, SyncProgress};
use crate::pipeline::health::{Condition, Health};
use crate::pipeline::platform::watch;
use crate::pipeline::processor::{Mailbox, NewHandler};
use crate::pipeline::watchdog::Watch;
use crate::store::WatchScope;
use crate::store::{Feed, Reader};

/// Interval between warnings while waiting for an informer that has not been started.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// One informer, kept alive by every user-held handle. Dropping it stops the informer.
#[derive(Debug)]
pub(crate) struct Core {
    shared: Arc<ControllerShared>,
    reader: Reader,
    identity: Identity,
    life: Mutex<Life>,
}

/// The immutable properties of an informer.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) resource: ApiResource,
    /// Whether namespaces have no effect.
    pub(super) is_cluster_scoped: bool,
    pub(super) name: Arc<InformerName>,
    pub(super) when_refused: WhenRefused,
    pub(super) sharing: Sharing,
    /// None without a shard.
    pub(super) shards: Option<Shards>,
    /// A setting because of which the informer never runs.
    pub(super) invalid: Option<InvalidSetting>,
    /// `None` for a custom source.
    #[expect(dead_code, reason = "counted, never read")]
    pub(super) live: Option<LiveInformer>,
}

/// Whether independent parts of the program may share the informer.
#[derive(Debug)]
pub(super) enum Sharing {
    No,
    ByFactory(Weak<dyn InformerOwner>),
}

/// The factory of an informer.
pub(crate) trait InformerOwner: Send + Sync {
    /// Keeps the informer running for its detached handlers.
    fn keep(&self, core: &Arc<Core>);
}

/// The sync status of an informer.
#[derive(Debug)]
pub(crate) enum SyncStatus {
    Synced,
    NotStarted,
    Listing {
        objects: u64,
        remaining: Option<u64>,
    },
    /// The last request failed; it is retried.
    Failing(ServerError),
    /// The server refuses the request, and waiting does not help.
    Refused(ServerError),
    /// It was built with a setting that is not valid.
    Invalid(InvalidSetting),
    Stopped,
}

#[derive(Debug)]
enum Life {
    Idle(Box<Idle>),
    Running(runtime::Handle),
    Stopped,
}

/// The tasks to spawn at the start.
struct Idle {
    controller: Controller,
    handlers: Vec<(Arc<Mailbox>, BoxFuture<'static, ()>)>,
}

impl Core {
    pub(super) fn new(
        shared: Arc<ControllerShared>,
        reader: Reader,
        identity: Identity,
        controller: Controller,
    ) -> Self {
        let life = Life::Idle(Box::new(Idle { controller, handlers: Vec::new() }));
        Self { shared, reader, identity, life: Mutex::new(life) }
    }

    pub(crate) fn resource(&self) -> &ApiResource {
        &self.identity.resource
    }

    pub(super) fn shards(&self) -> Option<&Shards> {
        self.identity.shards.as_ref()
    }

    /// The kind of the objects, for logs.
    pub(super) fn kind(&self) -> Arc<str> {
        self.identity.resource.kind.as_str().into()
    }

    pub(super) fn name(&self) -> &InformerName {
        &self.identity.name
    }

    /// The state shared with the tasks, which shows whether any task is left after the core is
    /// dropped.
    pub(crate) fn shared(&self) -> &Arc<ControllerShared> {
        &self.shared
    }

    /// Whether it has been stopped, or its tasks have ended because their runtime has.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(*self.life.lock(), Life::Stopped) || self.shared.has_stopped()
    }

    pub(crate) fn invalid(&self) -> Option<&InvalidSetting> {
        self.identity.invalid.as_ref()
    }

    pub(crate) fn sync_status(&self) -> SyncStatus {
        if let Some(invalid) = self.invalid() {
            return SyncStatus::Invalid(invalid.clone());
        }
        if self.is_stopped() {
            return SyncStatus::Stopped;
        }
        if self.is_synced() {
            return SyncStatus::Synced;
        }
        let health = self.health();
        match (health.refused, self.identity.when_refused) {
            (Some(cause), WhenRefused::Fail) => return SyncStatus::Refused(cause),
            (Some(cause), WhenRefused::Wait) => return SyncStatus::Failing(cause),
            (None, _) => {}
        }
        match health.condition {
            Condition::Degraded { cause, .. } => SyncStatus::Failing(cause),
            Condition::Listing { objects, remaining } => SyncStatus::Listing { objects, remaining },
            Condition::Stopped => SyncStatus::Stopped,
            Condition::Idle if self.is_idle() => SyncStatus::NotStarted,
            Condition::Absent { .. } | Condition::Idle | Condition::Synced => {
                SyncStatus::Listing { objects: 0, remaining: None }
            }
        }
    }

    /// Returns a reader that keeps the informer alive.
    pub(super) fn reader(self: &Arc<Self>) -> Reader {
        self.reader.with_feed(Arc::clone(self) as _)
    }

    pub(crate) fn start(&self) {
        let (idle, runtime, alive) = {
            let mut life = self.life.lock();
            if !matches!(*life, Life::Idle(_)) {
                return;
            }
            let runtime = runtime::Handle::current();
            let Life::Idle(idle) = std::mem::replace(&mut *life, Life::Running(runtime.clone())) else { return };
            (idle, runtime, self.shared.alive())
        };
        // Spawned after the lock is released: a runtime that has been shut down drops the tasks at
        // once, and a handler may hold handles whose drop locks it again.
        for (mailbox, handling) in idle.handlers {
            self.spawn(&runtime, mailbox, handling, self.shared.alive());
        }
        runtime.spawn(idle.controller.run(alive));
    }

    fn is_idle(&self) -> bool {
        matches!(*self.life.lock(), Life::Idle(_))
    }

    /// Stops all tasks without waiting for them to end.
    pub(crate) fn stop(&self) {
        let before = std::mem::replace(&mut *self.life.lock(), Life::Stopped);
        match before {
            Life::Idle(idle) => {
                self.shared.ended();
                drop(idle);
            }
            Life::Running(_) => self.shared.stop(),
            Life::Stopped => {}
        }
    }

    pub(super) fn shutdown(self: &Arc<Self>) -> impl Future<Output = ()> + Send + use<> {
        self.stop();
        let shared = Arc::clone(&self.shared);
        async move { shared.all_ended().await }
    }

    pub(crate) fn admit(&self, new_handler: NewHandler) {
        self.shared.admit(new_handler);
    }

    /// Spawns the task of a handler: immediately if the informer runs, otherwise at the start.
    pub(crate) fn spawn_handler(&self, mailbox: Arc<Mailbox>, handling: impl Future<Output = ()> + Send + 'static) {
        self.shared.handler_added(&mailbox);
        let running = match &mut *self.life.lock() {
            Life::Idle(idle) => {
                idle.handlers.push((mailbox, Box::pin(handling)));
                return;
            }
            Life::Running(runtime) => Some((runtime.clone(), self.shared.alive())),
            Life::Stopped => None,
        };
        // The lock is released: see `start`.
        match running {
            Some((runtime, alive)) => self.spawn(&runtime, mailbox, handling, alive),
            None => drop(handling),
        }
    }

    /// Drops handlers that were removed before the start.
    pub(crate) fn forget_unstarted(&self) {
        let removed = match &mut *self.life.lock() {
            Life::Idle(idle) => {
                let (removed, rest) = idle.handlers.drain(..).partition(|(mailbox, _)| mailbox.is_closed());
                idle.handlers = rest;
                removed
            }
            Life::Running(_) | Life::Stopped => Vec::new(),
        };
        // Dropped after the lock is released: a handler may hold handles whose drop locks it again.
        drop::<Vec<(Arc<Mailbox>, BoxFuture<'static, ()>)>>(removed);
    }

    fn spawn(
        &self,
        runtime: &runtime::Handle,
        mailbox: Arc<Mailbox>,
        handling: impl Future<Output = ()> + Send + 'static,
        alive: Alive,
    ) {
        let what = Arc::clone(self.shared.what());
        let (stopping, grace) = (self.shared.stopping(), self.shared.shutdown_grace());
        runtime.spawn(async move {
            let watched = Watch::begin(&what, &mailbox);
            {
                let mut handling = std::pin::pin!(handling);
                let handling = poll_fn(|cx| mailbox.poll(handling.as_mut(), cx));
                match grace {
                    None => handling.await,
                    Some(grace) => tokio::select! {
                        biased;
                        () = handling => {}
                        () = grace_over(stopping, grace) => {
                            let key = mailbox.handling().map(|key| key.to_string()).unwrap_or_default();
                            let seconds = grace.as_secs_f64();
                            tracing::warn!(
                                resource = %what, %key, seconds,
                                "a handler has not returned since the informer was stopped: it is cancelled"
                            );
                        }
                    },
                }
            }
            drop((watched, alive));
        });
    }

    /// A handler stays without a handle. The factory keeps the informer running for it.
    pub(super) fn handler_detached(self: &Arc<Self>) {
        if let Sharing::ByFactory(factory) = &self.identity.sharing
            && let Some(factory) = factory.upgrade()
        {
            factory.keep(self);
        }
    }

    pub(super) fn set_scopes(&self, scopes: Vec<WatchScope>) -> Result<(), SetNamespacesError> {
        if let Sharing::ByFactory(_) = &self.identity.sharing {
            return Err(SetNamespacesError::Shared { resource: self.resource().plural.as_str().into() });
        }
        super::check_scopes(&scopes)?;
        if !self.identity.is_cluster_scoped {
            self.shared.set_scopes(scopes);
        }
        Ok(())
    }

    /// Wakes the controller.
    pub(super) fn wake(&self) {
        self.shared.wake();
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.shared.is_complete()
    }

    pub(crate) fn health(&self) -> Health {
        self.shared.health()
    }

    pub(crate) fn watch_health(&self) -> watch::Receiver<Health> {
        self.shared.watch_health()
    }

    pub(crate) fn synced(self: &Arc<Self>) -> impl Future<Output = Result<(), SyncError>> + Send + use<> {
        let core = Arc::clone(self);
        async move {
            let mut health = core.shared.watch_health();
            loop {
                let now = health.borrow_and_update().clone();
                if let Some(invalid) = core.invalid() {
                    return Err(SyncError::Invalid(invalid.clone()));
                }
                if matches!(now.condition, Condition::Stopped) {
                    return Err(SyncError::Stopped);
                }
                if core.is_synced() {
                    return Ok(());
                }
                if let (Some(cause), WhenRefused::Fail) = (now.refused, core.identity.when_refused) {
                    return Err(SyncError::Refused(cause));
                }
                while timeout(WARN_INTERVAL, health.changed()).await.is_err() {
                    if matches!(health.borrow().condition, Condition::Idle) {
                        tracing::warn!(resource = %core.identity.resource.plural, "waiting for an informer that has not been started");
                    }
                }
            }
        }
    }

    pub(super) fn is_namespaced(&self) -> bool {
        !self.identity.is_cluster_scoped
    }

    pub(super) fn wait_for(
        self: &Arc<Self>,
        version: Version,
    ) -> impl Future<Output = Result<(), WaitError>> + Send + use<> {
        let core = Arc::clone(self);
        async move {
            let mut progress = core.shared.progress();
            let rollbacks = progress.borrow().rollbacks;
            core.follow(&mut progress, |progress| {
                if progress.rollbacks != rollbacks {
                    return Some(Err(WaitError::WentBack));
                }
                match &progress.version {
                    Some(reached) => match reached.partial_cmp(&version) {
                        Some(order) => order.is_ge().then_some(Ok(())),
                        None => Some(Err(WaitError::NotComparable)),
                    },
                    // The versions of the namespaces may not be comparable either.
                    None => version.number().is_none().then_some(Err(WaitError::NotComparable)),
                }
            })
            .await?
        }
    }

    pub(super) fn wait_until<F>(
        self: &Arc<Self>,
        key: ObjectKey,
        mut test: F,
    ) -> impl Future<Output = Result<Option<Obj<Untyped>>, WaitError>> + Send + use<F>
    where
        F: FnMut(Option<&Obj<Untyped>>) -> bool + Send + 'static,
    {
        let core = Arc::clone(self);
        async move {
            let mut progress = core.shared.progress();
            let mut seen: Option<Option<Arc<Raw>>> = None;
            core.follow(&mut progress, |_| {
                let object = core.reader.get(&key);
                let raw = object.as_ref().map(|object| Arc::clone(object.raw()));
                // Compares the state, not the version: after the server went back in time, another
                // state may have the same version.
                if seen.as_ref().is_some_and(|seen| seen.as_ref().map(Arc::as_ptr) == raw.as_ref().map(Arc::as_ptr)) {
                    return None;
                }
                seen = Some(raw);
                test(object.as_ref()).then_some(object)
            })
            .await
        }
    }

    /// Once the store is complete, calls `look` after every change until it returns a value.
    async fn follow<T>(
        &self,
        progress: &mut watch::Receiver<SyncProgress>,
        mut look: impl FnMut(&SyncProgress) -> Option<T>,
    ) -> Result<T, WaitError> {
        loop {
            let now = progress.borrow_and_update().clone();
            if now.stopped {
                return Err(WaitError::Stopped);
            }
            if self.is_synced()
                && let Some(found) = look(&now)
            {
                return Ok(found);
            }
            if progress.changed().await.is_err() {
                return Err(WaitError::Stopped);
            }
        }
    }
}

impl Feed for Core {
    fn age(&self) -> Option<Duration> {
        let health = self.health();
        let caught_up = health.caught_up.filter(|_| health.is_synced())?;
        Some(Instant::now().saturating_duration_since(caught_up))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let is_running = !self.is_stopped();
        if is_running && self.shared.handlers().any(|mailbox| mailbox.is_detached_in_vain()) {
            tracing::warn!(
                resource = %self.resource().plural,
                "the last handle of an informer is dropped before its detached handler has received the initial \
                 state: keep a handle of the informer, or its factory"
            );
        }
        self.stop();
    }
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle").field("controller", &self.controller).field("handlers", &self.handlers.len()).finish()
    }
}

/// Completes this long after the informer has been stopped.
async fn grace_over(mut stopping: watch::Receiver<Stop>, grace: Duration) {
    // An error means that the informer's state is gone, and so that it has been stopped.
    drop(stopping.wait_for(|stop| *stop == Stop::Requested).await);
    sleep(grace).await;
}
