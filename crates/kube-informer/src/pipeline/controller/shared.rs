//! State shared between the controller and the informer's handles.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::object::Version;
use crate::pipeline::health::{Condition, Health};
use crate::pipeline::platform::{Mutex, watch};
use crate::pipeline::processor::{Mailbox, NewHandler};
use crate::reflector::{ReflectorStatus, StatusReceiver};
use crate::shard::Shard;
use crate::store::WatchScope;

/// Interval between warnings while a shutdown waits.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// State shared between the controller task and the handles, in both directions.
#[derive(Debug)]
pub(crate) struct ControllerShared {
    /// The resource, for logs.
    what: Arc<str>,
    /// How long a pending handler may go on after the stop; `None` for as long as it takes.
    shutdown_grace: Option<Duration>,
    /// The mailboxes of the handlers that have tasks, now or from the start.
    handlers: Mutex<Vec<Weak<Mailbox>>>,
    /// Handlers that the controller has not admitted yet; `None` after it has ended.
    new_handlers: Mutex<Option<Vec<NewHandler>>>,
    wanted: Mutex<TargetScopes>,
    wakeup: Notify,
    stop: watch::Sender<Stop>,
    /// Each task of the informer holds a receiver.
    alive: watch::Sender<()>,
    progress: watch::Sender<SyncProgress>,
    health: watch::Sender<Health>,
    statuses: Mutex<Vec<StatusReceiver>>,
    /// Incremented when a reflector's state changes.
    status_changes: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    NotYet,
    Requested,
}

/// The scopes to list and watch.
#[derive(Debug, Clone)]
pub(crate) struct TargetScopes {
    pub(crate) scopes: Vec<WatchScope>,
    pub(crate) generation: u64,
}

/// The progress of the store.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyncProgress {
    /// The generation of wanted scopes that is completely in the store.
    pub(crate) complete: Option<u64>,
    /// Also `None` while the store is replaced because the server went back in time.
    pub(crate) version: Option<Version>,
    /// The shard that is completely in the store; none without one, or while scopes differ.
    pub(crate) shard: Option<Arc<Shard>>,
    /// How often the server went back in time.
    pub(crate) rollbacks: u64,
    pub(crate) stopped: bool,
}

/// Held by each task of the informer.
#[derive(Debug)]
pub(crate) struct Alive(#[expect(dead_code, reason = "counted, never looked at")] watch::Receiver<()>);

impl ControllerShared {
    pub(crate) fn new(what: Arc<str>, scopes: Vec<WatchScope>, shutdown_grace: Option<Duration>) -> Self {
        Self {
            what,
            shutdown_grace,
            handlers: Mutex::default(),
            new_handlers: Mutex::new(Some(Vec::new())),
            wanted: Mutex::new(TargetScopes { scopes, generation: 0 }),
            wakeup: Notify::new(),
            stop: watch::Sender::new(Stop::NotYet),
            alive: watch::Sender::new(()),
            progress: watch::Sender::new(SyncProgress::default()),
            health: watch::Sender::new(Health::idle()),
            statuses: Mutex::default(),
            status_changes: AtomicU64::new(0),
        }
    }

    // For the informer's handles.

    /// Passes a handler to the controller. If the controller has ended, the mailbox is closed
    /// immediately.
    pub(crate) fn admit(&self, new_handler: NewHandler) {
        let mailbox = Arc::clone(&new_handler.mailbox);
        let late = match &mut *self.new_handlers.lock() {
            Some(new_handlers) => {
                new_handlers.push(new_handler);
                false
            }
            None => true,
        };
        if late {
            tracing::warn!("a handler is added to an informer that has stopped");
            mailbox.close();
        }
        self.wake();
    }

    pub(crate) fn set_scopes(&self, scopes: Vec<WatchScope>) {
        let mut wanted = self.wanted.lock();
        if wanted.scopes == scopes {
            return;
        }
        wanted.scopes = scopes;
        wanted.generation += 1;
        drop(wanted);
        self.wake();
    }

    pub(crate) fn has_scopes(&self) -> bool {
        !self.wanted.lock().scopes.is_empty()
    }

    /// The wanted scopes, unless `generation` is current.
    pub(super) fn wanted_after(&self, generation: Option<u64>) -> Option<TargetScopes> {
        let wanted = self.wanted.lock();
        (generation != Some(wanted.generation)).then(|| wanted.clone())
    }

    pub(crate) fn is_complete(&self) -> bool {
        let complete = self.progress.borrow().complete;
        complete == Some(self.wanted.lock().generation)
    }

    pub(crate) fn progress(&self) -> watch::Receiver<SyncProgress> {
        self.progress.subscribe()
    }

    pub(crate) fn watch_health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// The current health.
    pub(crate) fn health(&self) -> Health {
        // Cloned first: a borrow that lasts while another one begins is a deadlock if a writer
        // comes in between.
        let published = self.health.borrow().clone();
        match published.condition {
            Condition::Idle | Condition::Stopped => published,
            _ => self.compose(),
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.send_replace(Stop::Requested);
    }

    /// Completes when no task is left. Warns about what it waits for.
    ///
    /// In a handler of this informer it completes at once: it would wait for itself.
    pub(crate) async fn all_ended(&self) {
        let resource = &*self.what;
        if self.handlers().any(|mailbox| mailbox.is_handled_here()) {
            tracing::error!(
                %resource,
                "a shutdown is awaited in a handler of its own informer: it cannot wait for this handler to return"
            );
            return;
        }
        if runtime::Handle::try_current().is_err() {
            return self.alive.closed().await;
        }
        let begun = Instant::now();
        while timeout(WARN_INTERVAL, self.alive.closed()).await.is_err() {
            let seconds = begun.elapsed().as_secs();
            let mut busy = self.handlers().filter_map(|mailbox| mailbox.handling()).peekable();
            if busy.peek().is_none() {
                tracing::warn!(%resource, seconds, "a shutdown waits for a task that does not end");
            }
            for key in busy {
                tracing::warn!(%resource, %key, seconds, "a shutdown waits for a handler that does not return");
            }
        }
    }

    /// Records that a handler has a task, now or from the start.
    pub(crate) fn handler_added(&self, mailbox: &Arc<Mailbox>) {
        let mut handlers = self.handlers.lock();
        handlers.retain(|other| other.strong_count() > 0);
        handlers.push(Arc::downgrade(mailbox));
    }

    /// The mailboxes of the handlers whose tasks have not ended.
    pub(crate) fn handlers(&self) -> impl Iterator<Item = Arc<Mailbox>> + use<> {
        let handlers: Vec<Arc<Mailbox>> = self.handlers.lock().iter().filter_map(Weak::upgrade).collect();
        handlers.into_iter().filter(|mailbox| !mailbox.has_ended())
    }

    pub(crate) fn what(&self) -> &Arc<str> {
        &self.what
    }

    pub(crate) fn shutdown_grace(&self) -> Option<Duration> {
        self.shutdown_grace
    }

    /// Whether no task is left.
    pub(crate) fn has_ended(&self) -> bool {
        self.alive.is_closed()
    }

    /// Whether the controller has ended, for whatever reason.
    pub(crate) fn has_stopped(&self) -> bool {
        self.progress.borrow().stopped
    }

    pub(crate) fn alive(&self) -> Alive {
        Alive(self.alive.subscribe())
    }

    /// Wakes the controller.
    pub(crate) fn wake(&self) {
        self.wakeup.notify_one();
    }

    // For the controller and its reflectors.

    pub(super) fn wakeup(&self) -> &Notify {
        &self.wakeup
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<Stop> {
        self.stop.subscribe()
    }

    pub(super) fn take_new_handlers(&self) -> Vec<NewHandler> {
        self.new_handlers.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn set_statuses(&self, statuses: Vec<StatusReceiver>) {
        *self.statuses.lock() = statuses;
    }

    /// Records that a reflector's state has changed.
    pub(super) fn note_status_change(&self) {
        self.status_changes.fetch_add(1, Ordering::Relaxed);
        self.wake();
    }

    pub(super) fn status_changes(&self) -> u64 {
        self.status_changes.load(Ordering::Relaxed)
    }

    pub(super) fn statuses(&self) -> Vec<ReflectorStatus> {
        self.statuses.lock().iter().map(|status| status.borrow().clone()).collect()
    }

    pub(crate) fn advance(&self, advance: impl FnOnce(&mut SyncProgress)) {
        self.progress.send_modify(advance);
    }

    pub(super) fn publish_health(&self) {
        self.health.send_replace(self.compose());
    }

    /// Publishes the end of the controller: closes pending mailboxes and wakes all waiting tasks.
    pub(crate) fn ended(&self) {
        // Closed after the lock is released: closing drops events, and so what the user decoded.
        let pending = self.new_handlers.lock().take().unwrap_or_default();
        for new_handler in pending {
            new_handler.mailbox.close();
        }
        self.progress.send_modify(|progress| progress.stopped = true);
        self.health.send_modify(|health| *health = health.clone().stopped());
    }

    fn compose(&self) -> Health {
        let version = self.progress.borrow().version.clone();
        Health::of(&self.statuses(), self.is_complete(), version)
    }
}
