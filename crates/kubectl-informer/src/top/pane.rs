//! One kind: its informer, its table and its figures.

use std::time::{Duration, Instant};

use kube_informer::{Condition, Obj};

use crate::tui::LiveTable;
use crate::watch::Watched;

/// How often sizes are summed up, which reads the whole cache.
const SIZE_INTERVAL: Duration = Duration::from_secs(5);

pub(super) struct Pane {
    pub(super) watched: Watched,
    pub(super) table: LiveTable,
    /// Events since the last refresh.
    recent: u64,
    /// Events per second, smoothed.
    pub(super) rate: f64,
    refreshed: Instant,
    /// Bytes of the objects in the cache, and when they were summed up.
    pub(super) bytes: usize,
    measured: Option<Instant>,
}

impl Pane {
    pub(super) fn new(watched: Watched, table: LiveTable) -> Self {
        Self { watched, table, recent: 0, rate: 0.0, refreshed: Instant::now(), bytes: 0, measured: None }
    }

    pub(super) fn count_event(&mut self) {
        self.recent += 1;
    }

    pub(super) fn refresh(&mut self, now: Instant) {
        let passed = now.duration_since(self.refreshed).as_secs_f64();
        if passed >= 1.0 {
            // Half of the old rate each second.
            let weight = 0.5_f64.powf(passed);
            self.rate = self.rate * weight + self.recent as f64 / passed * (1.0 - weight);
            self.recent = 0;
            self.refreshed = now;
        }
        if self.measured.is_none_or(|at| now.duration_since(at) >= SIZE_INTERVAL) {
            self.bytes = self.watched.informer.lister().list().iter().map(Obj::weight).sum();
            self.measured = self.watched.informer.is_synced().then_some(now);
        }
    }

    pub(super) fn is_failing(&self) -> bool {
        matches!(
            self.watched.informer.health().condition,
            Condition::Degraded { .. } | Condition::Absent { .. } | Condition::Stopped
        )
    }
}
