//! Counts what a controller does.

use std::sync::Arc;
use std::time::Duration;

use kube_informer::workqueue::{DURATION_BUCKETS, QueueMetrics};
use parking_lot::Mutex;

use super::{Attempts, ConsistencyFigures, Figures, Histogram, QueueFigures, WriteFigures};

/// The upper bounds in seconds of controller-runtime's histogram of reconcile times.
const RECONCILE_BUCKETS: [f64; 41] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
];

/// The figures of a controller while they are counted. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct FiguresRecorder(Arc<Mutex<Figures>>);

impl FiguresRecorder {
    pub(crate) fn new(workers: usize) -> Self {
        Self(Arc::new(Mutex::new(Figures {
            workers,
            active: 0,
            attempts: Attempts::default(),
            terminal_errors: 0,
            panics: 0,
            timeouts: 0,
            durations: Histogram::new(&RECONCILE_BUCKETS),
            queue: QueueFigures {
                depth: 0,
                delayed: 0,
                adds: 0,
                retries: 0,
                waited: Histogram::new(&DURATION_BUCKETS),
                worked: Histogram::new(&DURATION_BUCKETS),
                unfinished: Duration::ZERO,
                longest_running: Duration::ZERO,
            },
            writes: WriteFigures::default(),
            consistency: ConsistencyFigures::default(),
        })))
    }

    pub(crate) fn snapshot(&self) -> Figures {
        self.0.lock().clone()
    }

    pub(crate) fn record(&self, change: impl FnOnce(&mut Figures)) {
        change(&mut self.0.lock());
    }
}

impl QueueMetrics for FiguresRecorder {
    fn added(&self) {
        self.record(|figures| figures.queue.adds += 1);
    }

    fn taken(&self, waited: Duration) {
        self.record(|figures| figures.queue.waited.record(waited));
    }

    fn finished(&self, worked: Duration) {
        self.record(|figures| figures.queue.worked.record(worked));
    }

    fn unfinished(&self, total: Duration, longest: Duration) {
        self.record(|figures| (figures.queue.unfinished, figures.queue.longest_running) = (total, longest));
    }

    fn retried(&self) {
        self.record(|figures| figures.queue.retries += 1);
    }
}
