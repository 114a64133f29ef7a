//! The event counter of a handler.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::process::now_nanos;

/// Counts events, wakes the waiter when the expected number has arrived, and optionally records
/// times.
#[derive(Debug, Default)]
pub struct Tally {
    received: AtomicU64,
    wanted: AtomicU64,
    reached: Mutex<()>,
    wake: Condvar,
    timing: AtomicBool,
    times: Mutex<Vec<(u64, u64)>>,
}

impl Tally {
    /// Counts an event. Its version is read only while times are recorded.
    pub fn record(&self, version: impl FnOnce() -> u64) {
        if self.timing.load(Ordering::Relaxed) {
            let now = now_nanos();
            self.times.lock().push((version(), now));
        }
        if self.received.fetch_add(1, Ordering::AcqRel) + 1 == self.wanted.load(Ordering::Acquire) {
            drop(self.reached.lock());
            self.wake.notify_all();
        }
    }

    /// Number of events so far.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Expects this many more events; must be called before they can arrive.
    pub fn want(&self, more: u64) {
        self.wanted.store(self.received() + more, Ordering::Release);
    }

    /// Waits for the expected events. Returns false if no event arrives for that long.
    pub fn wait(&self, longest: Duration) -> bool {
        let (mut last, mut since) = (self.received(), Instant::now());
        let mut guard = self.reached.lock();
        while self.received() < self.wanted.load(Ordering::Acquire) {
            self.wake.wait_for(&mut guard, Duration::from_millis(200));
            let received = self.received();
            if received != last {
                (last, since) = (received, Instant::now());
            } else if since.elapsed() > longest {
                return false;
            }
        }
        true
    }

    /// Starts recording times.
    pub fn time(&self, room: usize) {
        *self.times.lock() = Vec::with_capacity(room);
        self.timing.store(true, Ordering::Release);
    }

    /// The recorded times: version and time.
    pub fn timed(&self) -> Vec<(u64, u64)> {
        self.timing.store(false, Ordering::Release);
        std::mem::take(&mut self.times.lock())
    }
}
