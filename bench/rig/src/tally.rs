//! What a handler has heard.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::process::now_nanos;

/// Counts events, wakes whoever waits for so many of them, and notes times if asked to.
#[derive(Debug, Default)]
pub struct Tally {
    heard: AtomicU64,
    wanted: AtomicU64,
    reached: Mutex<()>,
    wake: Condvar,
    timing: AtomicBool,
    times: Mutex<Vec<(u64, u64)>>,
}

impl Tally {
    /// An event was heard. Its version is looked at only while times are taken.
    pub fn hear(&self, version: impl FnOnce() -> u64) {
        if self.timing.load(Ordering::Relaxed) {
            let now = now_nanos();
            self.times.lock().push((version(), now));
        }
        if self.heard.fetch_add(1, Ordering::AcqRel) + 1 == self.wanted.load(Ordering::Acquire) {
            drop(self.reached.lock());
            self.wake.notify_all();
        }
    }

    /// How many so far.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Acquire)
    }

    /// Wants this many events more than now: to be called before they can come.
    pub fn want(&self, more: u64) {
        self.wanted.store(self.heard() + more, Ordering::Release);
    }

    /// Waits for what is wanted; false if nothing has come for a long time.
    pub fn wait(&self) -> bool {
        const PATIENCE: Duration = Duration::from_secs(30);
        let (mut last, mut since) = (self.heard(), Instant::now());
        let mut guard = self.reached.lock();
        while self.heard() < self.wanted.load(Ordering::Acquire) {
            self.wake.wait_for(&mut guard, Duration::from_millis(200));
            let heard = self.heard();
            if heard != last {
                (last, since) = (heard, Instant::now());
            } else if since.elapsed() > PATIENCE {
                return false;
            }
        }
        true
    }

    /// Notes times from now on.
    pub fn time(&self, room: usize) {
        *self.times.lock() = Vec::with_capacity(room);
        self.timing.store(true, Ordering::Release);
    }

    /// The times since: version and time.
    pub fn timed(&self) -> Vec<(u64, u64)> {
        self.timing.store(false, Ordering::Release);
        std::mem::take(&mut self.times.lock())
    }
}
