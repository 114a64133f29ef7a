//! The state shared by all handles of one informer.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kube::core::ApiResource;
use parking_lot::Mutex;
use tokio::runtime;
use tokio::time::{Instant, timeout};

use super::settings::WhenRefused;
use super::{NamespacesShared, SyncError, WaitError};
use crate::body::{Obj, Raw, Untyped};
use crate::client::ServerError;
use crate::object::ObjectKey;
use crate::object::Version;
use crate::pipeline::controller::{Controller, ControllerShared, SyncProgress};
use crate::pipeline::health::{Condition, Health};
use crate::pipeline::processor::{Mailbox, NewHandler};
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
    pub(super) when_refused: WhenRefused,
    pub(super) sharing: Sharing,
}

/// Whether independent parts of the program may share the informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    No,
    ByFactory,
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

    /// The state shared with the tasks, which shows whether any task is left after the core is
    /// dropped.
    pub(crate) fn shared(&self) -> &Arc<ControllerShared> {
        &self.shared
    }

    pub(crate) fn is_stopped(&self) -> bool {
        matches!(*self.life.lock(), Life::Stopped)
    }

    pub(crate) fn sync_status(&self) -> SyncStatus {
        let started = match *self.life.lock() {
            Life::Idle(_) => false,
            Life::Running(_) => true,
            Life::Stopped => return SyncStatus::Stopped,
        };
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
            Condition::Idle | Condition::Synced if started => SyncStatus::Listing { objects: 0, remaining: None },
            Condition::Idle | Condition::Synced => SyncStatus::NotStarted,
        }
    }

    /// Returns a reader that keeps the informer alive.
    pub(super) fn reader(self: &Arc<Self>) -> Reader {
        self.reader.with_feed(Arc::clone(self) as _)
    }

    pub(crate) fn start(&self) {
        let mut life = self.life.lock();
        if !matches!(*life, Life::Idle(_)) {
            return;
        }
        let runtime = runtime::Handle::current();
        if let Life::Idle(idle) = std::mem::replace(&mut *life, Life::Running(runtime.clone())) {
            runtime.spawn(idle.controller.run(self.shared.alive()));
            for (_, handling) in idle.handlers {
                self.spawn(&runtime, handling);
            }
        }
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
        let mut life = self.life.lock();
        match &mut *life {
            Life::Idle(idle) => idle.handlers.push((mailbox, Box::pin(handling))),
            Life::Running(runtime) => self.spawn(runtime, handling),
            Life::Stopped => {
                drop(life);
                drop(handling);
            }
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

    fn spawn(&self, runtime: &runtime::Handle, handling: impl Future<Output = ()> + Send + 'static) {
        let alive = self.shared.alive();
        runtime.spawn(async move {
            handling.await;
            drop(alive);
        });
    }

    pub(super) fn set_scopes(&self, scopes: Vec<WatchScope>) -> Result<(), NamespacesShared> {
        match self.identity.sharing {
            Sharing::No => self.shared.set_scopes(scopes),
            Sharing::ByFactory => return Err(NamespacesShared { resource: self.resource().plural.as_str().into() }),
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

    pub(crate) fn watch_health(&self) -> tokio::sync::watch::Receiver<Health> {
        self.shared.watch_health()
    }

    pub(crate) fn synced(self: &Arc<Self>) -> impl Future<Output = Result<(), SyncError>> + Send + use<> {
        let core = Arc::clone(self);
        async move {
            let mut health = core.shared.watch_health();
            loop {
                {
                    let health = health.borrow_and_update();
                    if matches!(health.condition, Condition::Stopped) {
                        return Err(SyncError::Stopped);
                    }
                    if core.is_synced() {
                        return Ok(());
                    }
                    if let (Some(cause), WhenRefused::Fail) = (&health.refused, core.identity.when_refused) {
                        return Err(SyncError::Refused(cause.clone()));
                    }
                }
                while timeout(WARN_INTERVAL, health.changed()).await.is_err() {
                    if matches!(health.borrow().condition, Condition::Idle) {
                        tracing::warn!(resource = %core.identity.resource.plural, "waiting for an informer that has not been started");
                    }
                }
            }
        }
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
                progress.version.as_ref().is_some_and(|reached| *reached >= version).then_some(Ok(()))
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
        progress: &mut tokio::sync::watch::Receiver<SyncProgress>,
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
    fn contact_age(&self) -> Option<Duration> {
        let health = self.health();
        let contact = health.last_contact.filter(|_| health.is_synced())?;
        Some(Instant::now().saturating_duration_since(contact))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Idle").field("controller", &self.controller).field("handlers", &self.handlers.len()).finish()
    }
}
