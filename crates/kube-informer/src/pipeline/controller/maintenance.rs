//! Keeping bodies small, away from everybody who is in a hurry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::shared::Alive;
use crate::body::{BodyEncoder, Keep, Packed, Samples, Tick};

/// A tick of the keeper's clock.
const TICK: Duration = Duration::from_secs(5);
/// How many objects are packed in one go.
const BUDGET: usize = 4096;
/// After how many ticks in which nothing came the clock stops.
const ENOUGH: u32 = 3;

/// Trains dictionaries and packs what has gone cold, out of everybody's way. The clock runs only while there is something to do.
#[derive(Debug)]
pub(super) struct Maintenance {
    encoder: BodyEncoder,
    clock: Clock,
    mode: MaintenanceMode,
    next: Option<Instant>,
    under_way: Option<JoinHandle<Option<Packed>>>,
    /// How many objects were left unpacked the last time.
    waiting: usize,
    quiet_ticks: u32,
}

/// Where housework is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaintenanceMode {
    /// On a thread for such things.
    SpawnBlocking,
    /// On the runtime's own threads: on a runtime of one thread nothing then depends on how fast another one is.
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

/// The keeper's clock, for those who bring objects in.
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

    /// Objects have come.
    pub(super) fn stirred(&mut self, now: Instant, alive: impl FnOnce() -> Alive) {
        if self.encoder.keep() != Keep::Compact {
            return;
        }
        self.quiet_ticks = 0;
        self.next.get_or_insert(now + TICK);
        if self.under_way.is_none()
            && let Some(samples) = self.encoder.wants_training()
        {
            let (encoder, alive) = (self.encoder.clone(), alive());
            self.under_way = Some(self.mode.spawn(move || {
                train(&encoder, &samples);
                drop(alive);
                None
            }));
        }
    }

    /// Completes when [`work`](Self::work) is to be called.
    pub(super) async fn due(&mut self) {
        match (&mut self.under_way, self.next) {
            (Some(work), _) => {
                let packed = work.await.ok().flatten();
                self.under_way = None;
                if let Some(packed) = packed {
                    self.waiting = packed.waiting;
                    if packed.objects >= BUDGET {
                        self.next = Some(Instant::now());
                    }
                }
            }
            (None, Some(next)) => tokio::time::sleep_until(next).await,
            (None, None) => std::future::pending().await,
        }
    }

    /// Does what is due, if anything is.
    pub(super) fn work(&mut self, now: Instant, alive: impl FnOnce() -> Alive) {
        if self.under_way.is_some() || self.next.is_none_or(|next| now < next) {
            return;
        }
        self.quiet_ticks += 1;
        self.next = (self.quiet_ticks <= ENOUGH || self.waiting > 0).then(|| now + TICK);
        self.clock.0.fetch_add(1, Ordering::Relaxed);
        let (encoder, tick, alive) = (self.encoder.clone(), self.clock.now(), alive());
        self.under_way = Some(self.mode.spawn(move || {
            if let Some(samples) = encoder.wants_training() {
                train(&encoder, &samples);
            }
            let packed = encoder.pack_cold(tick, BUDGET);
            drop(alive);
            Some(packed)
        }));
    }

    /// Waits for what is under way.
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
