//! What the work queue costs: `cargo bench -p kube-informer --bench workqueue`.
//!
//! Nanoseconds of CPU time (of all threads) and of wall time for each item, the least of several runs. Beside the queue a plain
//! `Mutex<VecDeque>` that does nothing but first in, first out: what there is to pay for a lock and a list.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube_informer::{ObjectKey, RateLimit, WorkQueue};
use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Runtime};

const ITEMS: usize = 3_000_000;
const KEYS: usize = 100_000;
const RUNS: usize = 5;

fn main() {
    // `cargo test --benches` runs this too, to see whether it works; it need not see how fast.
    let (items, runs) = if std::env::args().any(|arg| arg == "--bench") { (ITEMS, RUNS) } else { (KEYS, 1) };
    let keys: Vec<ObjectKey> = (0..KEYS)
        .map(|i| ObjectKey::namespaced(format!("namespace-{:03}", i % 100), format!("deployment-{i:06}-7c5ddbdf54")))
        .collect();
    let bench = Bench { items, runs, keys: keys.into() };
    bench.plain();
    bench.queue();
    bench.delays();
}

struct Bench {
    items: usize,
    runs: usize,
    keys: Arc<[ObjectKey]>,
}

impl Bench {
    fn plain(&self) {
        self.run("plain: add+next, one at a time", self.items, || {
            let queue = Plain::default();
            for key in self.keys.iter().cycle().take(self.items) {
                queue.add(key.clone());
                assert!(queue.next().is_some());
            }
        });
        for workers in [1, 2, 4, 8] {
            self.run(&format!("plain: one adder, {workers} workers"), self.items, || {
                let queue = Plain::default();
                std::thread::scope(|scope| {
                    for _ in 0..workers {
                        scope.spawn(|| while queue.next().is_some() {});
                    }
                    self.keys.iter().cycle().take(self.items).for_each(|key| queue.add(key.clone()));
                    queue.close();
                });
            });
        }
    }

    fn queue(&self) {
        self.run("add+next+done, one at a time", self.items, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for key in self.keys.iter().cycle().take(self.items) {
                    queue.add(key.clone());
                    queue.next().await.expect("one was added").done();
                }
            });
        });
        self.run("add+next+forget, one at a time", self.items, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for key in self.keys.iter().cycle().take(self.items) {
                    queue.add(key.clone());
                    queue.next().await.expect("one was added").forget();
                }
            });
        });
        self.run("100,000 added, then taken and done", self.items, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for _ in 0..self.items / KEYS {
                    self.keys.iter().for_each(|key| queue.add(key.clone()));
                    for _ in 0..KEYS {
                        queue.next().await.expect("so many were added").done();
                    }
                }
            });
        });
        for workers in [1, 2, 4, 8] {
            self.run(&format!("one adder, {workers} workers"), self.items, || {
                let runtime =
                    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("threads can be had");
                let queue = WorkQueue::new(RateLimit::default());
                let workers: Vec<_> = (0..workers).map(|_| runtime.spawn(work(queue.clone()))).collect();
                self.keys.iter().cycle().take(self.items).for_each(|key| queue.add(key.clone()));
                queue.shutdown();
                runtime.block_on(async {
                    for worker in workers {
                        worker.await.expect("workers do not panic");
                    }
                });
            });
        }
    }

    fn delays(&self) {
        self.run("delayed adds of 100,000 items", self.items, || {
            let queue = WorkQueue::new(RateLimit::default());
            for _ in 0..self.items / KEYS {
                for (i, key) in self.keys.iter().enumerate() {
                    queue.add_after(key.clone(), Duration::from_secs(3600) - scattered(i, 100_000) * 1000);
                }
            }
        });
        self.run("100,000 delayed by 1..50 ms, taken and done", KEYS, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for (i, key) in self.keys.iter().enumerate() {
                    queue.add_after(key.clone(), Duration::from_millis(1) + scattered(i, 50_000));
                }
                for _ in 0..KEYS {
                    queue.next().await.expect("so many were added").done();
                }
            });
        });
    }

    fn run(&self, name: &str, items: usize, mut run: impl FnMut()) {
        let mut best = (Duration::MAX, Duration::MAX);
        for _ in 0..self.runs {
            let (cpu, wall) = (cpu_time(), Instant::now());
            run();
            best = (best.0.min(cpu_time() - cpu), best.1.min(wall.elapsed()));
        }
        let nanos = |time: Duration| time.as_nanos() as f64 / items as f64;
        println!("{name:<48} cpu {:7.1} ns/item  wall {:7.1} ns/item", nanos(best.0), nanos(best.1));
    }
}

async fn work(queue: WorkQueue<ObjectKey>) {
    while let Some(item) = queue.next().await {
        item.done();
    }
}

fn scattered(i: usize, range: usize) -> Duration {
    Duration::from_micros((i * 7919 % range) as u64)
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be had")
}

/// The CPU time of the process, where the system tells it with enough precision; else the time.
fn cpu_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    // Ended threads are only counted in ticks of 10 ms.
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    let ticks = stat.as_deref().and_then(|stat| stat.rsplit_once(')')).and_then(|(_, rest)| {
        let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
        Some(fields.next()?.ok()? + fields.next()?.ok()?)
    });
    ticks.map_or_else(|| START.elapsed(), |ticks| Duration::from_millis(10 * ticks))
}

/// First in, first out, nothing else.
#[derive(Default)]
struct Plain {
    items: Mutex<(VecDeque<ObjectKey>, bool)>,
    added: Condvar,
}

impl Plain {
    fn add(&self, key: ObjectKey) {
        self.items.lock().0.push_back(key);
        self.added.notify_one();
    }

    fn next(&self) -> Option<ObjectKey> {
        let mut items = self.items.lock();
        loop {
            match items.0.pop_front() {
                Some(key) => return Some(key),
                None if items.1 => return None,
                None => self.added.wait(&mut items),
            }
        }
    }

    fn close(&self) {
        self.items.lock().1 = true;
        self.added.notify_all();
    }
}
