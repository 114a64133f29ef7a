//! The controller: the one task that writes the store.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::{self, JoinHandle};
use tokio::time::Instant;
use tracing::Instrument as _;

pub(crate) use self::decode_ahead::DecodeBody;
pub(crate) use self::maintenance::{Clock, MaintenanceMode};
pub(crate) use self::shared::{Alive, ControllerShared, Stop, SyncProgress};

use self::decode_ahead::DecodeAhead;
use self::held_shards::HeldShards;
use self::inbox::{Inbox, Slot};
use self::maintenance::Maintenance;
use super::delta_fifo::{DeltaFifo, DeltaFifoFull};
use super::metrics::{Figures, HandlerFigures, Reporter, sum};
use super::platform::watch;
use super::processor::{CheckPeriod, Completeness, Processor};
use crate::body::BodyEncoder;
use crate::reflector::{Counters, Reflector, StatusReceiver};
use crate::store::{Delta, History, WatchScope};
use crate::store::{ReclaimStatus, Store};

mod decode_ahead;
mod held_shards;
mod inbox;
mod maintenance;
#[cfg(test)]
mod schedules;
mod shared;

/// How long to wait before retrying to reclaim replaced states that readers still hold.
const RECLAIM_RETRY: Duration = Duration::from_secs(1);

/// A batch of at least this many deltas is followed by a yield to other tasks. Under sustained
/// load, handlers would otherwise find thousands of events at once, whose old states are no longer
/// in the CPU cache.
const YIELD_AFTER: usize = 8;

/// Pops deltas from the queue, applies them to the store, publishes the result to readers, and then
/// queues the events for the handlers.
///
/// Every change of the store happens here, in order: deltas, resyncs, added and removed namespaces.
/// Handlers are added here as well, between two batches, so each receives the current state once
/// and then every later change.
pub(crate) struct Controller {
    shared: Arc<ControllerShared>,
    store: Store,
    processor: Processor,
    inbox: Arc<Inbox>,
    maintenance: Maintenance,
    decode_ahead: DecodeAhead,
    reflect: Reflect,
    reflectors: Vec<ReflectorTask>,
    /// The generation of wanted scopes that is in effect.
    generation: Option<u64>,
    /// Scopes that are being relisted because the server went back in time.
    going_back: Vec<WatchScope>,
    held_shards: HeldShards,
    resync_at: Option<Instant>,
    /// When to retry the reclamation of replaced states.
    reclaim_at: Option<Instant>,
    status_changes: u64,
    reporter: Option<Reporter>,
    totals: Totals,
    span: tracing::Span,
}

/// Running totals for metrics.
#[derive(Debug, Default)]
struct Totals {
    deltas: u64,
    events: u64,
    /// Sum over the reflectors that have ended.
    reflectors: Counters,
}

/// Creates the reflector of a scope.
pub(crate) type Reflect = Box<dyn Fn(&WatchScope) -> Reflector + Send + Sync>;

/// A running reflector.
struct ReflectorTask {
    scope: WatchScope,
    status: StatusReceiver,
    task: JoinHandle<()>,
}

/// The parts a controller is assembled from.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) fifo: DeltaFifo,
    pub(crate) encoder: BodyEncoder,
    pub(crate) clock: Clock,
    pub(crate) mode: MaintenanceMode,
    /// `None` if bodies are not decoded on arrival.
    pub(crate) decode_ahead: Option<DecodeBody>,
    pub(crate) check: CheckPeriod,
    pub(crate) reflect: Reflect,
    pub(crate) reporter: Option<Reporter>,
    pub(crate) span: tracing::Span,
}

impl Controller {
    pub(crate) fn new(shared: Arc<ControllerShared>, parts: Parts) -> Self {
        Self {
            shared,
            store: parts.store,
            processor: Processor::new(parts.check),
            inbox: Arc::new(Inbox::new(parts.fifo)),
            maintenance: Maintenance::new(parts.encoder, parts.clock, parts.mode),
            decode_ahead: DecodeAhead::new(parts.decode_ahead),
            reflect: parts.reflect,
            reflectors: Vec::new(),
            generation: None,
            going_back: Vec::new(),
            held_shards: HeldShards::default(),
            resync_at: None,
            reclaim_at: None,
            status_changes: 0,
            reporter: parts.reporter,
            totals: Totals::default(),
            span: parts.span,
        }
    }

    /// Runs until [`ControllerShared::stop`] is called.
    pub(crate) async fn run(mut self, alive: Alive) {
        let span = self.span.clone();
        async {
            self.admit_new_handlers();
            self.processor.check().freeze();
            self.resync_at = self.processor.check().period().map(|period| Instant::now() + period);
            let mut stopping = self.shared.stopping();
            while *stopping.borrow_and_update() == Stop::NotYet {
                self.work(&mut stopping).await;
            }
            self.end().await;
        }
        .instrument(span)
        .await;
        drop(alive);
    }

    /// Does the next piece of work, or waits until there is some.
    async fn work(&mut self, stopping: &mut watch::Receiver<Stop>) {
        self.admit_new_handlers();
        self.update_reflectors().await;
        self.work_due(Instant::now());
        if self.decode_ahead.is_full() {
            tokio::select! {
                biased;
                // Never fails: the sender is in `shared`, which the controller holds.
                _ = stopping.changed() => {}
                () = self.decode_ahead.room() => {}
            }
            return;
        }
        let batch = self.inbox.pop();
        if !batch.is_empty() {
            let should_yield = batch.len() >= YIELD_AFTER;
            self.apply(batch);
            return if should_yield { task::yield_now().await } else { task::coop::consume_budget().await };
        }
        if self.store.is_building() {
            self.build_indexes();
            return task::yield_now().await;
        }
        tokio::select! {
            biased;
            // Never fails: the sender is in `shared`, which the controller holds.
            _ = stopping.changed() => {}
            () = self.inbox.filled() => {}
            () = self.shared.wakeup().notified() => self.build_indexes(),
            // The work itself is done in the next turn, by `work_due`.
            () = until(self.next_due()) => {}
            () = self.maintenance.due() => {}
        }
    }

    /// Does the periodic work that is due. Before each batch, because under sustained load there is
    /// always another one.
    fn work_due(&mut self, now: Instant) {
        let status_changes = self.shared.status_changes();
        if status_changes != self.status_changes {
            self.status_changes = status_changes;
            self.shared.publish_health();
        }
        if self.resync_at.is_some_and(|at| at <= now) {
            self.resync();
        }
        if self.reclaim_at.is_some_and(|at| at <= now) {
            self.reclaim(now);
        }
        if self.reporter.as_ref().is_some_and(|reporter| reporter.is_due(now)) {
            self.report();
        }
        self.maintenance.work(now, || self.shared.alive());
    }

    /// When the next periodic work is due, except for maintenance.
    fn next_due(&self) -> Option<Instant> {
        [self.resync_at, self.reclaim_at, self.reporter.as_ref().map(Reporter::due)].into_iter().flatten().min()
    }

    fn admit_new_handlers(&mut self) {
        let new_handlers = self.shared.take_new_handlers();
        if new_handlers.is_empty() {
            return;
        }
        let (now, present) = (Instant::now(), self.store.present());
        let complete = self.completeness();
        for new_handler in new_handlers {
            self.processor.admit(new_handler, present.clone(), complete, now);
        }
    }

    fn apply(&mut self, batch: Vec<Delta>) {
        let now = Instant::now();
        self.note_rollbacks(&batch);
        self.held_shards.note(&batch);
        self.totals.deltas += batch.len() as u64;
        let keys = self.decode_ahead.keys(&batch);
        let events = self.store.apply(batch);
        self.decode_ahead.start(&keys, &self.store.reader());
        self.totals.events += events.len() as u64;
        self.processor.deliver(events.into_notifications(), now);
        self.advance(now);
        self.maintenance.objects_changed(self.store.len(), now, || self.shared.alive());
        self.reclaim(now);
    }

    fn reclaim(&mut self, now: Instant) {
        self.reclaim_at = (self.store.tidy() == ReclaimStatus::Pending).then(|| now + RECLAIM_RETRY);
    }

    /// Publishes the store's progress to waiting tasks and handlers.
    fn advance(&mut self, now: Instant) {
        let completeness = self.completeness();
        if completeness == Completeness::Complete {
            self.processor.complete(now);
        }
        let complete = self.generation.filter(|_| completeness == Completeness::Complete);
        let version = self.store.reader().version().filter(|_| self.going_back.is_empty());
        let shard = self.held_shards.of(self.reflectors.iter().map(|reflecting| &reflecting.scope));
        let mut completed = false;
        self.shared.advance(|progress| {
            progress.shard = shard;
            completed = progress.complete != complete;
            progress.complete = complete;
            progress.version = version;
        });
        if completed {
            self.shared.publish_health();
        }
    }

    /// Tracks the scopes whose server went back in time. Until their relist ends, the store has no
    /// single version.
    fn note_rollbacks(&mut self, batch: &[Delta]) {
        for delta in batch {
            match delta {
                Delta::RelistBegun(relist)
                    if relist.history == History::WentBack && !self.going_back.contains(&relist.scope) =>
                {
                    self.going_back.push(relist.scope.clone());
                    self.shared.advance(|progress| progress.rollbacks += 1);
                }
                Delta::RelistEnded { scope, .. } | Delta::ScopeLeft(scope) => {
                    self.going_back.retain(|other| other != scope);
                }
                _ => {}
            }
        }
    }

    fn completeness(&self) -> Completeness {
        let complete = self.reflectors.iter().all(|reflecting| self.store.is_complete(&reflecting.scope));
        if complete && self.generation.is_some() { Completeness::Complete } else { Completeness::Listing }
    }

    /// Queues a resync for the handlers that are due.
    fn resync(&mut self) {
        let now = Instant::now();
        self.resync_at = self.processor.check().period().map(|period| now + period);
        if self.processor.mark_due(now) {
            self.enqueue(Delta::Resync { except: Vec::new() });
        }
    }

    /// Queues a delta of the controller itself; applies queued deltas if there is no room.
    fn enqueue(&mut self, mut delta: Delta) {
        while let Err(DeltaFifoFull(back)) = self.inbox.push(delta) {
            delta = back;
            let batch = self.inbox.pop();
            self.apply(batch);
        }
    }

    /// Continues building requested indexes while there are no deltas, one bounded part per call.
    fn build_indexes(&mut self) {
        let notifications = self.store.apply([]).into_notifications();
        debug_assert!(notifications.is_empty(), "no deltas, no events");
        self.reclaim(Instant::now());
    }

    /// Starts and stops reflectors to match the wanted scopes.
    async fn update_reflectors(&mut self) {
        let Some(wanted) = self.shared.wanted_after(self.generation) else { return };
        let mut leaving = Vec::new();
        for reflecting in std::mem::take(&mut self.reflectors) {
            let stays = wanted.scopes.contains(&reflecting.scope);
            if stays { &mut self.reflectors } else { &mut leaving }.push(reflecting);
        }
        for mut reflecting in leaving {
            reflecting.end().await;
            self.totals.reflectors = sum(self.totals.reflectors, &reflecting.status.borrow().counters);
            self.enqueue(Delta::ScopeLeft(reflecting.scope.clone()));
        }
        for scope in &wanted.scopes {
            if !self.reflectors.iter().any(|reflecting| reflecting.scope == *scope) {
                self.reflectors.push(self.reflect(scope));
            }
        }
        self.shared.set_statuses(self.reflectors.iter().map(|reflecting| reflecting.status.clone()).collect());
        self.generation = Some(wanted.generation);
        self.advance(Instant::now());
        self.shared.publish_health();
    }

    fn reflect(&self, scope: &WatchScope) -> ReflectorTask {
        let reflector = (self.reflect)(scope);
        let status = reflector.status();
        let (mut watched, shared, alive) = (status.clone(), Arc::clone(&self.shared), self.shared.alive());
        let slot = self.slot();
        let namespace = match scope {
            WatchScope::Everything => "",
            WatchScope::Namespace(namespace) => namespace,
        };
        let span = tracing::info_span!(parent: &self.span, "reflector", namespace);
        let reflecting = async move {
            let forward_status = async {
                while watched.changed().await.is_ok() {
                    shared.note_status_change();
                }
            };
            tokio::select! {
                biased;
                ended = AssertUnwindSafe(reflector.run(slot)).catch_unwind() => if ended.is_err() {
                    // Panics of a source and of callbacks do not get here. Where this one came from
                    // it may have lost a delta, so the cache cannot be trusted any more.
                    tracing::error!("the reflector panicked: the informer stops");
                    shared.stop();
                },
                () = forward_status => {}
            }
            drop(alive);
        };
        ReflectorTask { scope: scope.clone(), status, task: tokio::spawn(reflecting.instrument(span)) }
    }

    /// The sending end of the queue.
    fn slot(&self) -> Slot {
        Slot::new(Arc::clone(&self.inbox), self.store.reader())
    }

    fn report(&mut self) {
        let Some(reporter) = &mut self.reporter else { return };
        let (now, state) = (Instant::now(), self.store.reader().snapshot());
        let (queue_deltas, queue_bytes) = self.inbox.depth();
        let statuses = self.shared.statuses();
        let figures = Figures {
            objects: state.len(),
            bytes: state.iter().map(|entry| entry.raw.weight()).sum(),
            decodes: self.maintenance.decodes(),
            deltas: self.totals.deltas,
            events: self.totals.events,
            queue_deltas,
            queue_bytes,
            handlers: self.processor.stats(now).map(HandlerFigures::from).collect(),
            reflector: statuses.iter().fold(self.totals.reflectors, |all, status| sum(all, &status.counters)),
            last_contact_age: self.shared.health().contact_age(),
            shard: self.shared.health().shard,
        };
        reporter.report(now, &figures);
    }

    async fn end(&mut self) {
        self.report();
        self.reporter = None;
        self.processor.close();
        for reflecting in &mut self.reflectors {
            reflecting.end().await;
        }
        self.maintenance.finish().await;
        self.decode_ahead.finish().await;
        self.shared.ended();
    }
}

/// A controller that panics, or whose runtime is shut down, ends what waits for it on other
/// runtimes.
impl Drop for Controller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the controller panicked: the informer has stopped");
        }
        self.processor.close();
        self.shared.ended();
    }
}

impl Drop for ReflectorTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ReflectorTask {
    async fn end(&mut self) {
        self.task.abort();
        // The result is the cancellation requested above.
        drop((&mut self.task).await);
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("store", &self.store)
            .field("processor", &self.processor)
            .field("inbox", &self.inbox)
            .finish_non_exhaustive()
    }
}

/// Completes at that time, or never if there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
