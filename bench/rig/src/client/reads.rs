//! Ways of reading a cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::process;

/// A read: takes a number that selects what to read, and returns a value that depends on it.
pub type Read = Box<dyn Fn(usize) -> usize + Send + Sync>;

/// The ways of reading a cache. Each read must access at least the version of the objects it finds.
pub struct Reads {
    /// Number of objects.
    pub count: usize,
    /// Gets an object by key and reads its metadata.
    pub get: Read,
    /// Gets an object by key and reads a field of its body.
    pub body: Read,
    /// Reads an index of node names.
    pub index: Read,
    /// Lists one namespace.
    pub namespace: Read,
    /// Lists everything with a label selector.
    pub select: Read,
    /// Lists everything.
    pub list: Read,
}

/// Number of objects that are read repeatedly.
const SAME: usize = 1_000;
const BATCHES: usize = 9;

impl Reads {
    /// CPU time in nanoseconds of each way.
    pub fn measure(&self, millis: u64) -> Vec<(&'static str, f64)> {
        let scattered = |nth: usize| nth.wrapping_mul(7919) % self.count;
        let same = |nth: usize| scattered(nth % SAME);
        let mut found = Vec::new();
        let mut way = |name, read: &dyn Fn(usize) -> usize| found.push((name, measure(millis, read)));
        way("get", &|nth| (self.get)(scattered(nth)));
        (0..2 * SAME).for_each(|nth| _ = black_box((self.body)(same(nth))));
        way("body_same", &|nth| (self.body)(same(nth)));
        way("body_random", &|nth| (self.body)(scattered(nth)));
        way("index", &|nth| (self.index)(scattered(nth)));
        way("namespace", &|nth| (self.namespace)(scattered(nth)));
        way("select", &|nth| (self.select)(nth));
        way("list", &|nth| (self.list)(nth));
        found
    }
}

/// The median of several batches, after a warm-up batch. Every batch continues where the previous
/// one ended.
fn measure(millis: u64, read: &dyn Fn(usize) -> usize) -> f64 {
    let batch = Duration::from_millis(millis) / (BATCHES as u32);
    let mut nth = 0;
    // For fast reads the clock is not read each time.
    let once = Instant::now();
    black_box(read(nth));
    let burst = if once.elapsed() > Duration::from_micros(20) { 1 } else { 64 };
    let mut run = |time: Duration| {
        let (start, cpu, first) = (Instant::now(), process::cpu(), nth);
        while start.elapsed() < time {
            for _ in 0..burst {
                black_box(read(nth));
                nth += 1;
            }
        }
        (process::cpu() - cpu).as_nanos() as f64 / (nth - first) as f64
    };
    run(batch);
    let mut batches: Vec<f64> = (0..BATCHES).map(|_| run(batch)).collect();
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}
