//! Figures of a controller: [`Figures`], which a metrics endpoint renders.
//!
//! Uses nothing else of the crate.

use std::time::Duration;

pub use self::histogram::Histogram;
pub(crate) use self::recorder::FiguresRecorder;

mod histogram;
mod recorder;

/// The figures of a controller since it was built. A snapshot; see
/// [`Monitor::figures`](crate::Monitor::figures).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Figures {
    /// The number of workers: `controller_runtime_max_concurrent_reconciles`.
    pub workers: usize,
    /// The number of attempts that are running: `controller_runtime_active_workers`.
    pub active: usize,
    /// Ended attempts by result: `controller_runtime_reconcile_total`.
    pub attempts: Attempts,
    /// Attempts that failed with a terminal error, which are a part of [`Attempts::error`]:
    /// `controller_runtime_terminal_reconcile_errors_total`.
    pub terminal_errors: u64,
    /// Attempts that panicked, which are a part of [`Attempts::error`]:
    /// `controller_runtime_reconcile_panics_total`.
    pub panics: u64,
    /// Attempts that ran into their timeout, which are a part of [`Attempts::error`]:
    /// `controller_runtime_reconcile_timeouts_total`.
    pub timeouts: u64,
    /// How long attempts took: `controller_runtime_reconcile_time_seconds`.
    pub durations: Histogram,
    /// The work queue.
    pub queue: QueueFigures,
    /// The writes of the reconciler.
    pub writes: WriteFigures,
    /// Read-your-writes.
    pub consistency: ConsistencyFigures,
}

/// Ended attempts by result, with the labels of controller-runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempts {
    /// `success`: the attempt was [done](crate::Outcome::Done).
    pub success: u64,
    /// `requeue_after`: the attempt asked to be called again after a delay.
    pub requeue_after: u64,
    /// `requeue`: the attempt asked to be called again with backoff.
    pub requeue: u64,
    /// `error`: the attempt failed: an error, a panic or a timeout.
    pub error: u64,
}

/// The figures of a controller's work queue, with client-go's names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueFigures {
    /// `workqueue_depth`: items that wait for a worker.
    pub depth: usize,
    /// Items that wait for their delay.
    pub delayed: usize,
    /// `workqueue_adds_total`.
    pub adds: u64,
    /// `workqueue_retries_total`.
    pub retries: u64,
    /// `workqueue_queue_duration_seconds`.
    pub waited: Histogram,
    /// `workqueue_work_duration_seconds`.
    pub worked: Histogram,
    /// `workqueue_unfinished_work_seconds`.
    pub unfinished: Duration,
    /// `workqueue_longest_running_processor_seconds`.
    pub longest_running: Duration,
}

/// The writes of a reconciler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteFigures {
    /// Server-side applies that were sent, those of a status included.
    pub applied: u64,
    /// Server-side applies that were left out, because they would have changed nothing.
    pub applies_left_out: u64,
    /// Creations that were sent.
    pub created: u64,
    /// Patches that were sent, those of finalizers included.
    pub patched: u64,
    /// Deletions that were sent.
    pub deleted: u64,
    /// Sent writes that the server refused.
    pub refused: u64,
    /// Sent writes whose outcome is unknown, such as after a lost response.
    pub unknown: u64,
}

/// How often keys waited for the caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsistencyFigures {
    /// Keys that now wait for their own writes.
    pub waiting: usize,
    /// Times that a key was due before its own writes were visible, and waited.
    pub waits: u64,
    /// Waits that were given up, and whose keys were requeued with backoff.
    pub given_up: u64,
    /// Times that a key was due while the connection of its own kind's watch was lost, and waited.
    pub disconnected_waits: u64,
    /// Such waits that were given up, and whose keys were reconciled.
    pub disconnected_given_up: u64,
}
