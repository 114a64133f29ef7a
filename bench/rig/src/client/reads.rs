//! Ways of reading a cache.

use std::collections::HashMap;
use std::hash::Hash;
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
    /// Gets an object by key and reads five fields of its body.
    pub fields: Read,
    /// Lists the objects of an owner that has about ten, with an index if there is one.
    pub children: Read,
    /// Gets an object by key, lists the about ten objects of its owner, and reads five fields of
    /// each.
    pub reconcile: Read,
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
        let way = |found: &mut Vec<_>, name, read: &dyn Fn(usize) -> usize| found.push((name, measure(millis, read)));
        way(&mut found, "get", &|nth| (self.get)(scattered(nth)));
        way(&mut found, "fields", &|nth| (self.fields)(scattered(nth)));
        for name in ["body_once", "body_again"] {
            found.push((name, self.sweep(&scattered)));
        }
        (0..2 * SAME).for_each(|nth| _ = black_box((self.body)(same(nth))));
        way(&mut found, "body_same", &|nth| (self.body)(same(nth)));
        way(&mut found, "body_random", &|nth| (self.body)(scattered(nth)));
        way(&mut found, "fields_after", &|nth| (self.fields)(scattered(nth)));
        way(&mut found, "children", &|nth| (self.children)(nth));
        way(&mut found, "reconcile", &|nth| (self.reconcile)(nth));
        way(&mut found, "index", &|nth| (self.index)(scattered(nth)));
        way(&mut found, "namespace", &|nth| (self.namespace)(scattered(nth)));
        way(&mut found, "select", &|nth| (self.select)(nth));
        way(&mut found, "list", &|nth| (self.list)(nth));
        found
    }

    /// CPU time in nanoseconds of reading one body, when every body is read once.
    fn sweep(&self, scattered: &dyn Fn(usize) -> usize) -> f64 {
        let cpu = process::cpu();
        for nth in 0..self.count {
            black_box((self.body)(scattered(nth)));
        }
        (process::cpu() - cpu).as_nanos() as f64 / self.count as f64
    }
}

/// The owners of about ten objects, each with the first of its objects, in the order of keys. All
/// owners if none has about ten.
pub fn families<U: Hash + Eq + Clone, K>(owned: impl Iterator<Item = (U, K)>) -> Vec<(U, K)> {
    let mut sizes: HashMap<U, usize> = HashMap::new();
    let mut first = Vec::new();
    for (owner, key) in owned {
        let size = sizes.entry(owner.clone()).or_default();
        *size += 1;
        if *size == 1 {
            first.push((owner, key));
        }
    }
    let (fitting, others): (Vec<_>, Vec<_>) =
        first.into_iter().partition(|(owner, _)| sizes.get(owner).is_some_and(|size| (9..=11).contains(size)));
    if fitting.is_empty() { others } else { fitting }
}

/// CPU time in nanoseconds of getting one of very many objects.
pub(super) fn get(reads: &Reads, millis: u64) -> f64 {
    measure(millis, &|nth| (reads.get)(nth.wrapping_mul(7919) % reads.count))
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
