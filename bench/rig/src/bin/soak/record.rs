//! What is measured while it runs.

use std::alloc::System;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rig::process;
use serde::Serialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::Handle;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const EVERY: Duration = Duration::from_secs(1);

/// One look at the process.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sample {
    /// Seconds since the beginning.
    pub at: f64,
    /// Bytes in memory.
    pub resident: f64,
    /// Bytes allocated and not freed.
    pub heap: f64,
    /// Tasks of the runtime.
    pub tasks: f64,
    /// Open sockets.
    pub connections: f64,
    /// Objects in all caches.
    pub objects: f64,
}

/// What has happened by the end of an interval, and how it was within it.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Line {
    /// Seconds since the beginning.
    pub at: f64,
    /// Bytes in memory, the mean of the interval.
    pub resident: f64,
    /// Bytes allocated, the mean of the interval.
    pub heap: f64,
    /// Objects in all caches.
    pub objects: usize,
    /// What the cluster has written so far.
    pub writes: f64,
    /// Events that handlers have heard so far.
    pub events: u64,
    /// Milliseconds from a write to a handler in the interval, the median.
    pub lag_median: f64,
    /// The same, the most: outages are in it.
    pub lag_most: f64,
    /// Tasks, as they are mostly.
    pub tasks: f64,
    /// Connections, as they are mostly.
    pub connections: f64,
    /// Handlers that have come and gone so far.
    pub handlers: u64,
    /// Lists made anew so far.
    pub relists: u64,
    /// Watches opened so far.
    pub watches: u64,
    /// Requests that the server has answered so far.
    pub requests: f64,
    /// Failures met so far.
    pub errors: u64,
    /// Share of one core that the informers took in the interval.
    pub cpu: f64,
    /// The same of the cluster.
    pub host_cpu: f64,
    /// Bytes in the cluster's memory.
    pub host_resident: f64,
    /// The machine's load.
    pub load: f64,
}

/// Looks at the process every second, from a thread of its own.
#[derive(Debug)]
pub struct Recorder {
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
}

impl Recorder {
    /// Begins to look, for about this time. So many sockets are no connections.
    pub fn start(runtime: Handle, others: f64, objects: impl Fn() -> usize + Send + 'static, time: Duration) -> Self {
        let samples = Arc::new(Mutex::new(Vec::with_capacity(time.as_secs() as usize + 16)));
        let stop = Arc::new(AtomicBool::new(false));
        let (into, stopped, began) = (Arc::clone(&samples), Arc::clone(&stop), Instant::now());
        thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let at = began.elapsed().as_secs_f64();
                let now = look(&runtime);
                let (connections, objects) = (now.connections - others, objects() as f64);
                into.lock().push(Sample { at, connections, objects, ..now });
                thread::sleep(EVERY);
            }
        });
        Self { samples, stop }
    }

    /// The samples of the last so many seconds.
    pub fn latest(&self, seconds: f64) -> Vec<Sample> {
        let samples = self.samples.lock();
        let from = samples.last().map_or(0.0, |last| last.at) - seconds;
        samples.iter().filter(|sample| sample.at > from).copied().collect()
    }

    /// Looks no more.
    pub fn stop(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.samples.lock())
    }
}

/// How it is now.
pub fn look(runtime: &Handle) -> Sample {
    let stats = ALLOCATOR.stats();
    Sample {
        at: 0.0,
        resident: process::resident(),
        heap: stats.bytes_allocated.saturating_sub(stats.bytes_deallocated) as f64,
        tasks: runtime.metrics().num_alive_tasks() as f64,
        connections: connections() as f64,
        objects: 0.0,
    }
}

/// The machine's load of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn connections() -> usize {
    let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    files.filter(|file| fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))).count()
}
