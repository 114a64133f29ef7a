//! What the controller shares with those who hold its informer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::object::Version;
use crate::pipeline::health::{Condition, Health};
use crate::pipeline::processor::NewHandler;
use crate::reflector::ReflectorStatus;
use crate::store::WatchScope;

/// The two-way window between the controller's task and the handles.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Handlers that the controller has yet to see; none when it never will.
    new_handlers: Mutex<Option<Vec<NewHandler>>>,
    wanted: Mutex<Wanted>,
    bell: Notify,
    stop: watch::Sender<Stop>,
    /// Each task that belongs to the informer holds a receiver.
    alive: watch::Sender<()>,
    progress: watch::Sender<SyncProgress>,
    health: watch::Sender<Health>,
    statuses: Mutex<Vec<watch::Receiver<ReflectorStatus>>>,
    /// Counts up when a reflector's state changes.
    stirs: AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    NotYet,
    Asked,
}

/// What is to be listed and watched.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) scopes: Vec<WatchScope>,
    pub(crate) generation: u64,
}

/// How far the store has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct SyncProgress {
    /// Which generation of wishes is completely in the store.
    pub(crate) complete: Option<u64>,
    /// None as well while the store goes back with the server.
    pub(crate) version: Option<Version>,
    /// How often the server went back.
    pub(crate) turns_back: u64,
    pub(crate) stopped: bool,
}

/// Whoever holds this is a task of the informer.
#[derive(Debug)]
pub(crate) struct Alive(#[expect(dead_code, reason = "counted, never looked at")] watch::Receiver<()>);

impl Shared {
    pub(crate) fn new(scopes: Vec<WatchScope>) -> Self {
        Self {
            new_handlers: Mutex::new(Some(Vec::new())),
            wanted: Mutex::new(Wanted { scopes, generation: 0 }),
            bell: Notify::new(),
            stop: watch::Sender::new(Stop::NotYet),
            alive: watch::Sender::new(()),
            progress: watch::Sender::new(SyncProgress::default()),
            health: watch::Sender::new(Health::idle()),
            statuses: Mutex::default(),
            stirs: AtomicU64::new(0),
        }
    }

    // For those who hold the informer.

    /// Hands a handler to the controller. After the end it is closed at once.
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
        self.ring();
    }

    pub(crate) fn want(&self, scopes: Vec<WatchScope>) {
        let mut wanted = self.wanted.lock();
        if wanted.scopes == scopes {
            return;
        }
        wanted.scopes = scopes;
        wanted.generation += 1;
        drop(wanted);
        self.ring();
    }

    /// What is wanted, unless it is still what it was in this generation.
    pub(super) fn wanted_after(&self, generation: Option<u64>) -> Option<Wanted> {
        let wanted = self.wanted.lock();
        (generation != Some(wanted.generation)).then(|| wanted.clone())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.progress.borrow().complete == Some(self.wanted.lock().generation)
    }

    pub(crate) fn progress(&self) -> watch::Receiver<SyncProgress> {
        self.progress.subscribe()
    }

    pub(crate) fn watch_health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }

    /// How the informer fares, as of now.
    pub(crate) fn health(&self) -> Health {
        match self.health.borrow().condition {
            Condition::Idle | Condition::Stopped => self.health.borrow().clone(),
            _ => self.compose(),
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.send_replace(Stop::Asked);
    }

    /// Completes when no task is left.
    pub(crate) async fn all_ended(&self) {
        self.alive.closed().await;
    }

    /// Whether no task is left.
    pub(crate) fn is_over(&self) -> bool {
        self.alive.is_closed()
    }

    pub(crate) fn alive(&self) -> Alive {
        Alive(self.alive.subscribe())
    }

    /// Wakes the controller.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    // For the controller and its reflectors.

    pub(super) fn bell(&self) -> &Notify {
        &self.bell
    }

    pub(super) fn stopping(&self) -> watch::Receiver<Stop> {
        self.stop.subscribe()
    }

    pub(super) fn take_newcomers(&self) -> Vec<NewHandler> {
        self.new_handlers.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn set_statuses(&self, statuses: Vec<watch::Receiver<ReflectorStatus>>) {
        *self.statuses.lock() = statuses;
    }

    /// A reflector's state has changed.
    pub(super) fn stir(&self) {
        self.stirs.fetch_add(1, Ordering::Relaxed);
        self.ring();
    }

    pub(super) fn stirs(&self) -> u64 {
        self.stirs.load(Ordering::Relaxed)
    }

    pub(super) fn statuses(&self) -> Vec<ReflectorStatus> {
        self.statuses.lock().iter().map(|status| status.borrow().clone()).collect()
    }

    pub(super) fn advance(&self, advance: impl FnOnce(&mut SyncProgress)) {
        self.progress.send_modify(advance);
    }

    pub(super) fn publish_health(&self) {
        self.health.send_replace(self.compose());
    }

    /// Nothing comes any more: whoever waits learns of it.
    pub(crate) fn ended(&self) {
        for new_handler in self.new_handlers.lock().take().unwrap_or_default() {
            new_handler.mailbox.close();
        }
        self.progress.send_modify(|progress| progress.stopped = true);
        self.health.send_modify(|health| *health = health.clone().stopped());
    }

    fn compose(&self) -> Health {
        Health::of(&self.statuses(), self.is_complete(), self.progress.borrow().version.clone())
    }
}
