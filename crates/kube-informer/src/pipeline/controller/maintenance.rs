//! Background compression of object bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::shared::Alive;
use crate::body::{BodyEncoder, Keep, Packed, Samples, Tick};

/// The interval of the maintenance clock.
const TICK: Duration = Duration::from_secs(5);
/// The maximum number of objects packed per run.
const BUDGET: usize = 4096;
/// The clock stops after this many ticks without new objects.
const MAX_QUIET_TICKS: u32 = 3;

/// Trains dictionaries and packs cold bodies in the background. The clock runs only while there is
/// work.
#[derive(Debug)]
pub(super) struct Maintenance {
    encoder: BodyEncoder,
    clock: Clock,
    mode: MaintenanceMode,
    next: Option<Instant>,
    under_way: Option<JoinHandle<Option<Packed>>>,
    /// How many objects the last run left unpacked.
    waiting: usize,
    quiet_ticks: u32,
}

/// Where maintenance runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaintenanceMode {
    /// On tokio's blocking thread pool.
    SpawnBlocking,
    /// As a task of the runtime. On a single-threaded runtime, results then do not depend on the
    /// speed of another thread.
    Inline,
}

impl MaintenanceMode {
    fn spawn<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        match self {
            Self::SpawnBlocking => tokio::task::spawn_blocking(work),
            Self::Inline => tokio::spawn(async { work() }),
        }
    }
}

/// The maintenance clock, read where objects enter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(Arc<AtomicU64>);

impl Clock {
    pub(crate) fn now(&self) -> Tick {
        self.0.load(Ordering::Relaxed)
    }
}

impl Maintenance {
    pub(super) fn new(encoder: BodyEncoder, clock: Clock, mode: MaintenanceMode) -> Self {
        Self { encoder, clock, mode, next: None, under_way: None, waiting: 0, quiet_ticks: 0 }
    }

    pub(super) fn decodes(&self) -> u64 {
        self.encoder.decodes()
    }

    /// Objects have arrived, and the store has this many now: starts the clock, and dictionary
    /// training if enough samples are there.
    pub(super) fn objects_changed(&mut self, objects: usize, now: Instant, alive: impl FnOnce() -> Alive) {
        if self.encoder.keep() != Keep::Compact {
            return;
        }
        self.encoder.set_objects(objects);
        self.quiet_ticks = 0;
        self.next.get_or_insert(now + TICK);
        if self.under_way.is_none()
            && let Some(samples) = self.encoder.take_training_samples()
        {
            let (encoder, alive) = (self.encoder.clone(), alive());
            self.under_way = Some(self.mode.spawn(move || {
                train(&encoder, &samples);
                drop(alive);
                None
            }));
        }
    }

    /// Completes when [`work`](Self::work) must be called.
    pub(super) async fn due(&mut self) {
        match (&mut self.under_way, self.next) {
            (Some(work), _) => {
                let packed = work.await.ok().flatten();
                self.ended(packed);
            }
            (None, Some(next)) => tokio::time::sleep_until(next).await,
            (None, None) => std::future::pending().await,
        }
    }

    fn ended(&mut self, packed: Option<Packed>) {
        self.under_way = None;
        if let Some(packed) = packed {
            self.waiting = packed.waiting;
            if packed.objects >= BUDGET {
                self.next = Some(Instant::now());
            }
        }
    }

    /// Takes the result of the current run if it has ended, and starts the next one if it is due.
    pub(super) fn work(&mut self, now: Instant, alive: impl FnOnce() -> Alive) {
        if let Some(work) = self.under_way.take_if(|work| work.is_finished()) {
            // Does not wait, because the run has finished.
            self.ended(work.now_or_never().and_then(Result::ok).flatten());
        }
        if self.under_way.is_some() || self.next.is_none_or(|next| now < next) {
            return;
        }
        self.quiet_ticks += 1;
        self.next = (self.quiet_ticks <= MAX_QUIET_TICKS || self.waiting > 0).then(|| now + TICK);
        self.clock.0.fetch_add(1, Ordering::Relaxed);
        let (encoder, tick, alive) = (self.encoder.clone(), self.clock.now(), alive());
        self.under_way = Some(self.mode.spawn(move || {
            if let Some(samples) = encoder.take_training_samples() {
                train(&encoder, &samples);
            }
            let packed = encoder.pack_cold(tick, BUDGET);
            drop(alive);
            Some(packed)
        }));
    }

    /// Waits for the current run.
    pub(super) async fn finish(&mut self) {
        if let Some(work) = self.under_way.take() {
            drop(work.await);
        }
    }
}

fn train(encoder: &BodyEncoder, samples: &Samples) {
    match samples.train() {
        Some(dictionary) => encoder.install(dictionary),
        None => encoder.training_failed(),
    }
}
