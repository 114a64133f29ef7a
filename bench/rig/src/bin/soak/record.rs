//! Measurements during the run.

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

/// One sample of the process.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sample {
    /// Seconds since the start.
    pub at: f64,
    /// Resident bytes.
    pub resident: f64,
    /// Allocated heap bytes.
    pub heap: f64,
    /// Tasks of the runtime.
    pub tasks: f64,
    /// Open sockets.
    pub connections: f64,
    /// Objects in all caches.
    pub objects: f64,
}

/// One line of the report: totals at the end of an interval, and statistics within it.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Line {
    /// Seconds since the start.
    pub at: f64,
    /// Resident bytes, mean of the interval.
    pub resident: f64,
    /// Allocated bytes, mean of the interval.
    pub heap: f64,
    /// Objects in all caches.
    pub objects: usize,
    /// Writes of the cluster so far.
    pub writes: f64,
    /// Events delivered to handlers so far.
    pub events: u64,
    /// Latency from a write to a handler in milliseconds, median of the interval.
    pub lag_median: f64,
    /// The maximum latency of the interval, including outages.
    pub lag_most: f64,
    /// Mode of the number of tasks.
    pub tasks: f64,
    /// Mode of the number of connections.
    pub connections: f64,
    /// Handlers added and removed so far.
    pub handlers: u64,
    /// Relists so far.
    pub relists: u64,
    /// Watches opened so far.
    pub watches: u64,
    /// Requests served so far.
    pub requests: f64,
    /// Failures so far.
    pub errors: u64,
    /// CPU usage of the informers in the interval, as a share of one core.
    pub cpu: f64,
    /// CPU usage of the cluster's process.
    pub host_cpu: f64,
    /// Resident bytes of the cluster's process.
    pub host_resident: f64,
    /// The load average of the machine.
    pub load: f64,
}

/// Samples the process every second on a separate thread.
#[derive(Debug)]
pub struct Recorder {
    samples: Arc<Mutex<Vec<Sample>>>,
    stop: Arc<AtomicBool>,
}

impl Recorder {
    /// Starts sampling, for about this time. `others` sockets are not connections.
    pub fn start(runtime: Handle, others: f64, objects: impl Fn() -> usize + Send + 'static, time: Duration) -> Self {
        let samples = Arc::new(Mutex::new(Vec::with_capacity(time.as_secs() as usize + 16)));
        let stop = Arc::new(AtomicBool::new(false));
        let (into, stopped, began) = (Arc::clone(&samples), Arc::clone(&stop), Instant::now());
        thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let at = began.elapsed().as_secs_f64();
                let now = sample(&runtime);
                let (connections, objects) = (now.connections - others, objects() as f64);
                into.lock().push(Sample { at, connections, objects, ..now });
                thread::sleep(EVERY);
            }
        });
        Self { samples, stop }
    }

    /// The samples of the last `seconds` seconds.
    pub fn latest(&self, seconds: f64) -> Vec<Sample> {
        let samples = self.samples.lock();
        let from = samples.last().map_or(0.0, |last| last.at) - seconds;
        samples.iter().filter(|sample| sample.at > from).copied().collect()
    }

    /// Stops sampling.
    pub fn stop(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.samples.lock())
    }
}

/// Takes a sample.
pub fn sample(runtime: &Handle) -> Sample {
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

/// The one-minute load average of the machine.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

fn connections() -> usize {
    let files = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    files.filter(|file| fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))).count()
}
