//! The one task that writes the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{self, JoinHandle};
use tokio::time::Instant;
use tracing::Instrument as _;

pub(crate) use self::maintenance::{Clock, MaintenanceMode};
pub(crate) use self::shared::{Alive, Shared, Stop, SyncProgress};

use self::inbox::{Inbox, Slot};
use self::maintenance::Maintenance;
use super::delta_fifo::{DeltaFifo, Full};
use super::metrics::{Figures, HandlerFigures, Reporter, sum};
use super::processor::{CheckPeriod, Completeness, Processor};
use crate::body::BodyEncoder;
use crate::reflector::{Counters, Reflector, ReflectorStatus};
use crate::store::{Delta, History, WatchScope};
use crate::store::{ReclaimStatus, Store};

mod inbox;
mod maintenance;
mod shared;

/// How long readers are given to let go of a state before it is looked at again.
const TIDY: Duration = Duration::from_secs(1);

/// From so many deltas on, a batch is followed by whoever else has something to do. Where more keep coming than handlers can be told, they
/// would otherwise find thousands of events at once, and old states that no processor has at hand any more.
const TURN: usize = 8;

/// Takes deltas out of the queue, applies them to the store, lets readers see the result, and then tells the handlers.
///
/// Whatever changes the store passes here, in order: deltas, resyncs, namespaces that come and go. Handlers are added here as well,
/// between two batches, so that each hears the present state once and then every change after it.
pub(crate) struct Controller {
    shared: Arc<Shared>,
    store: Store,
    processor: Processor,
    inbox: Arc<Inbox>,
    maintenance: Maintenance,
    reflect: Reflect,
    reflecting: Vec<Reflecting>,
    /// Which wishes have been carried out.
    generation: Option<u64>,
    /// Scopes that are being listed after the server went back.
    going_back: Vec<WatchScope>,
    resync_at: Option<Instant>,
    /// When readers may have let go of states that have been replaced.
    tidy_at: Option<Instant>,
    stirs: u64,
    reporter: Option<Reporter>,
    counted: Counted,
    span: tracing::Span,
}

/// What has been done so far.
#[derive(Debug, Default)]
struct Counted {
    deltas: u64,
    events: u64,
    /// By reflectors that are no more.
    reflectors: Counters,
}

/// Makes the reflector of a scope.
pub(crate) type Reflect = Box<dyn Fn(&WatchScope) -> Reflector + Send + Sync>;

/// A reflector at work.
struct Reflecting {
    scope: WatchScope,
    status: watch::Receiver<ReflectorStatus>,
    task: JoinHandle<()>,
}

/// What a controller is made of.
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) fifo: DeltaFifo,
    pub(crate) encoder: BodyEncoder,
    pub(crate) clock: Clock,
    pub(crate) mode: MaintenanceMode,
    pub(crate) check: CheckPeriod,
    pub(crate) reflect: Reflect,
    pub(crate) reporter: Option<Reporter>,
    pub(crate) span: tracing::Span,
}

impl Controller {
    pub(crate) fn new(shared: Arc<Shared>, parts: Parts) -> Self {
        Self {
            shared,
            store: parts.store,
            processor: Processor::new(parts.check),
            inbox: Arc::new(Inbox::new(parts.fifo)),
            maintenance: Maintenance::new(parts.encoder, parts.clock, parts.mode),
            reflect: parts.reflect,
            reflecting: Vec::new(),
            generation: None,
            going_back: Vec::new(),
            resync_at: None,
            tidy_at: None,
            stirs: 0,
            reporter: parts.reporter,
            counted: Counted::default(),
            span: parts.span,
        }
    }

    /// Works until it is told to stop.
    pub(crate) async fn run(mut self, alive: Alive) {
        let span = self.span.clone();
        async {
            self.admit_newcomers();
            self.processor.check().settle();
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

    /// Does whatever there is to do, or waits until there is something.
    async fn work(&mut self, stopping: &mut watch::Receiver<Stop>) {
        self.admit_newcomers();
        self.follow_wishes().await;
        let batch = self.inbox.pop();
        if !batch.is_empty() {
            let turn = batch.len() >= TURN;
            self.apply(batch);
            return if turn { task::yield_now().await } else { task::coop::consume_budget().await };
        }
        if self.store.is_building() {
            self.build_indexes();
            return task::yield_now().await;
        }
        let stirs = self.shared.stirs();
        if stirs != self.stirs {
            self.stirs = stirs;
            self.shared.publish_health();
        }
        tokio::select! {
            biased;
            // The sender is in `shared`, which we hold.
            _ = stopping.changed() => {}
            () = self.inbox.filled() => {}
            () = self.shared.bell().notified() => self.build_indexes(),
            () = until(self.resync_at) => self.resync(),
            () = until(self.tidy_at) => self.tidy(Instant::now()),
            () = until(self.reporter.as_ref().map(Reporter::due)) => self.report(),
            () = self.maintenance.due() => self.maintenance.work(Instant::now(), || self.shared.alive()),
        }
    }

    fn admit_newcomers(&mut self) {
        let new_handlers = self.shared.take_newcomers();
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
        self.note_turns(&batch);
        self.counted.deltas += batch.len() as u64;
        let events = self.store.apply(batch);
        self.counted.events += events.len() as u64;
        self.processor.tell(events.into_news(), now);
        self.advance(now);
        self.maintenance.stirred(now, || self.shared.alive());
        self.tidy(now);
    }

    fn tidy(&mut self, now: Instant) {
        self.tidy_at = (self.store.tidy() == ReclaimStatus::Pending).then(|| now + TIDY);
    }

    /// Lets those who wait know how far the store has come.
    fn advance(&mut self, now: Instant) {
        let completeness = self.completeness();
        if completeness == Completeness::Complete {
            self.processor.complete(now);
        }
        let complete = self.generation.filter(|_| completeness == Completeness::Complete);
        let version = self.store.reader().version().filter(|_| self.going_back.is_empty());
        let mut completed = false;
        self.shared.advance(|progress| {
            completed = progress.complete != complete;
            progress.complete = complete;
            progress.version = version;
        });
        if completed {
            self.shared.publish_health();
        }
    }

    /// While the server's past replaces what was known, the store is of no version.
    fn note_turns(&mut self, batch: &[Delta]) {
        for delta in batch {
            match delta {
                Delta::RelistBegun(relist)
                    if relist.history == History::WentBack && !self.going_back.contains(&relist.scope) =>
                {
                    self.going_back.push(relist.scope.clone());
                    self.shared.advance(|progress| progress.turns_back += 1);
                }
                Delta::RelistEnded { scope, .. } | Delta::ScopeLeft(scope) => {
                    self.going_back.retain(|other| other != scope);
                }
                _ => {}
            }
        }
    }

    fn completeness(&self) -> Completeness {
        let complete = self.reflecting.iter().all(|reflecting| self.store.is_complete(&reflecting.scope));
        if complete && self.generation.is_some() { Completeness::Complete } else { Completeness::Listing }
    }

    /// Tells everything again to the handlers that are due.
    fn resync(&mut self) {
        let now = Instant::now();
        self.resync_at = self.processor.check().period().map(|period| now + period);
        if self.processor.mark_due(now) {
            self.enqueue(Delta::Resync { except: Vec::new() });
        }
    }

    /// Puts a delta of our own in line, making room if need be.
    fn enqueue(&mut self, mut delta: Delta) {
        while let Err(Full(back)) = self.inbox.push(delta) {
            delta = back;
            let batch = self.inbox.pop();
            self.apply(batch);
        }
    }

    /// An index that was asked for while nothing happens is built nonetheless, a little at a time.
    fn build_indexes(&mut self) {
        let news = self.store.apply([]).into_news();
        debug_assert!(news.is_empty(), "nothing comes of nothing");
        self.tidy(Instant::now());
    }

    /// Begins and ends reflectors, as the namespaces that are wanted change.
    async fn follow_wishes(&mut self) {
        let Some(wanted) = self.shared.wanted_after(self.generation) else { return };
        let mut leaving = Vec::new();
        for reflecting in std::mem::take(&mut self.reflecting) {
            let stays = wanted.scopes.contains(&reflecting.scope);
            if stays { &mut self.reflecting } else { &mut leaving }.push(reflecting);
        }
        for mut reflecting in leaving {
            reflecting.end().await;
            self.counted.reflectors = sum(self.counted.reflectors, &reflecting.status.borrow().counters);
            self.enqueue(Delta::ScopeLeft(reflecting.scope));
        }
        for scope in &wanted.scopes {
            if !self.reflecting.iter().any(|reflecting| reflecting.scope == *scope) {
                self.reflecting.push(self.reflect(scope));
            }
        }
        self.shared.set_statuses(self.reflecting.iter().map(|reflecting| reflecting.status.clone()).collect());
        self.generation = Some(wanted.generation);
        self.advance(Instant::now());
        self.shared.publish_health();
    }

    fn reflect(&self, scope: &WatchScope) -> Reflecting {
        let reflector = (self.reflect)(scope);
        let status = reflector.status();
        let (mut watched, shared, alive) = (status.clone(), Arc::clone(&self.shared), self.shared.alive());
        let slot = Slot(Arc::clone(&self.inbox));
        let namespace = match scope {
            WatchScope::Everything => "",
            WatchScope::Namespace(namespace) => namespace,
        };
        let span = tracing::info_span!(parent: &self.span, "reflector", namespace);
        let reflecting = async move {
            let tell = async {
                while watched.changed().await.is_ok() {
                    shared.stir();
                }
            };
            tokio::select! {
                biased;
                () = reflector.run(slot) => {}
                () = tell => {}
            }
            drop(alive);
        };
        Reflecting { scope: scope.clone(), status, task: tokio::spawn(reflecting.instrument(span)) }
    }

    fn report(&mut self) {
        let Some(reporter) = &mut self.reporter else { return };
        let (now, state) = (Instant::now(), self.store.reader().snapshot());
        let (queue_deltas, queue_bytes) = self.inbox.depth();
        let statuses = self.shared.statuses();
        let figures = Figures {
            objects: state.len(),
            bytes: state.iter().map(|entry| entry.object().weight()).sum(),
            decodes: self.maintenance.decodes(),
            deltas: self.counted.deltas,
            events: self.counted.events,
            queue_deltas,
            queue_bytes,
            handlers: self.processor.standings(now).map(HandlerFigures::from).collect(),
            reflector: statuses.iter().fold(self.counted.reflectors, |all, status| sum(all, &status.counters)),
            last_contact_age: self.shared.health().contact_age(),
        };
        reporter.report(now, &figures);
    }

    async fn end(&mut self) {
        self.report();
        self.reporter = None;
        self.processor.close();
        for reflecting in &mut self.reflecting {
            reflecting.end().await;
        }
        self.maintenance.finish().await;
        self.shared.ended();
    }
}

impl Reflecting {
    async fn end(&mut self) {
        self.task.abort();
        // Cancelled is what it is meant to be.
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

/// Completes at that moment; never without one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
