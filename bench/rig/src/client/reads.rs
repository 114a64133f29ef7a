//! The ways to read a cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::process;

/// One way to read: takes a number to choose by, gives something that depends on what was read.
pub type Read = Box<dyn Fn(usize) -> usize + Send + Sync>;

/// The ways to read a cache. What is found must be looked at, at least its version.
pub struct Reads {
    /// How many objects there are.
    pub count: usize,
    /// An object by its key, metadata looked at.
    pub get: Read,
    /// An object by its key, a field of its body looked at.
    pub body: Read,
    /// By an index of node names.
    pub index: Read,
    /// One namespace.
    pub namespace: Read,
    /// By a label selector, over everything.
    pub select: Read,
    /// Everything.
    pub list: Read,
}

/// So many objects are read again and again.
const SAME: usize = 1_000;
const BATCHES: usize = 9;

impl Reads {
    /// Nanoseconds of CPU for each way.
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

/// The median of several batches, after one to warm up. Every batch goes on where the last one ended.
fn measure(millis: u64, read: &dyn Fn(usize) -> usize) -> f64 {
    let batch = Duration::from_millis(millis) / (BATCHES as u32);
    let mut nth = 0;
    // The clock is not looked at for every one of the fast ones.
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
