//! Cost of work queues: `queue ours|plain ITEMS`. The Go program measures client-go's
//! (`go/queue.go`) in the same way.
//!
//! Nanoseconds of CPU time (of all threads) per item, the minimum of several runs. `plain` is a
//! `Mutex<VecDeque>` that only does first in, first out: the cost of a lock and a list.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_informer::workqueue::RateLimit;
use kube_informer::{ObjectKey, Outcome, WorkQueue};
use parking_lot::{Condvar, Mutex};
use rig::client::Figures;
use rig::process;
use rig::work::BY_HAND;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

const KEYS: usize = 100_000;
/// Batch size when one task adds while others work: the adder waits until the batch is done, so
/// that every item is processed. Otherwise the relative speed of adder and workers determines how
/// many items are coalesced, and therefore the amount of work.
const AT_A_TIME: usize = 1_000;
const RUNS: usize = 3;
const WORKERS: [usize; 3] = [1, 2, 8];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let items = arguments.get(2).ok_or("ours or plain, and how many?")?.parse()?;
    let keys = (0..KEYS)
        .map(|i| ObjectKey::namespaced(format!("namespace-{:03}", i % 100), format!("deployment-{i:06}-7c5ddbdf54")));
    let mut bench = Bench { items, keys: keys.collect(), figures: Figures::new() };
    match arguments[1].as_str() {
        "plain" => bench.plain(),
        _ => bench.ours(),
    }
    println!("{}", serde_json::to_string(&bench.figures)?);
    Ok(())
}

struct Bench {
    items: usize,
    keys: Arc<[ObjectKey]>,
    figures: Figures,
}

impl Bench {
    fn plain(&mut self) {
        let (keys, items) = (Arc::clone(&self.keys), self.items);
        let all = || keys.iter().cycle().take(items);
        self.measure("add, next, done", items, || {
            let queue = Plain::default();
            for key in all() {
                queue.add(key.clone());
                assert!(queue.next().is_some());
            }
        });
        for workers in WORKERS {
            self.measure(&with_workers(workers), items, || {
                let (queue, left) = (Plain::default(), AtomicUsize::new(0));
                let adder = std::thread::current();
                std::thread::scope(|scope| {
                    for _ in 0..workers {
                        scope.spawn(|| {
                            while queue.next().is_some() {
                                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                                    adder.unpark();
                                }
                            }
                        });
                    }
                    for some in keys.chunks(AT_A_TIME).cycle().take(items / AT_A_TIME) {
                        left.store(some.len(), Ordering::Release);
                        some.iter().for_each(|key| queue.add(key.clone()));
                        while left.load(Ordering::Acquire) > 0 {
                            std::thread::park();
                        }
                    }
                    queue.close();
                });
            });
        }
    }

    fn ours(&mut self) {
        let (keys, items) = (Arc::clone(&self.keys), self.items);
        let all = || keys.iter().cycle().take(items);
        self.measure("add, next, done", items, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for key in all() {
                    queue.add(key.clone());
                    queue.next().await.expect("one was added").done();
                }
            });
        });
        self.measure("add, next, forget", items, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for key in all() {
                    queue.add(key.clone());
                    queue.next().await.expect("one was added").forget();
                }
            });
        });
        self.measure("100,000 added, then taken and done", items, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for _ in 0..items.div_ceil(KEYS) {
                    keys.iter().for_each(|key| queue.add(key.clone()));
                    for _ in 0..KEYS {
                        queue.next().await.expect("so many were added").done();
                    }
                }
            });
        });
        for workers in WORKERS {
            let rounds = items / AT_A_TIME;
            self.measure(&with_workers(workers), items, || with(workers, &keys, rounds, by_function));
            let by_hand_too = format!("{}{BY_HAND}", with_workers(workers));
            self.measure(&by_hand_too, items, || with(workers, &keys, rounds, by_hand));
        }
        self.measure("delayed adds", items, || {
            let queue = WorkQueue::new(RateLimit::default());
            for _ in 0..items.div_ceil(KEYS) {
                for (i, key) in keys.iter().enumerate() {
                    queue.add_after(key.clone(), Duration::from_secs(3600) - scattered(i, 100_000) * 1000);
                }
            }
        });
        self.measure("delayed by 1 to 50 ms, taken and done", KEYS, || {
            current_thread().block_on(async {
                let queue = WorkQueue::new(RateLimit::default());
                for (i, key) in keys.iter().enumerate() {
                    queue.add_after(key.clone(), Duration::from_millis(1) + scattered(i, 50_000));
                }
                for _ in 0..KEYS {
                    queue.next().await.expect("so many were added").done();
                }
            });
        });
    }

    fn measure(&mut self, name: &str, items: usize, mut run: impl FnMut()) {
        let least = (0..RUNS).map(|_| {
            let cpu = process::cpu();
            run();
            process::cpu() - cpu
        });
        let least = least.min().unwrap_or_default();
        self.figures.insert(name.to_owned(), least.as_nanos() as f64 / items as f64);
    }
}

fn with_workers(workers: usize) -> String {
    format!("one adder, {workers} workers, 1,000 at a time")
}

/// A batch that the adder waits for.
#[derive(Default)]
struct Round {
    left: AtomicUsize,
    over: Notify,
}

impl Round {
    fn one_is_done(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify_one();
        }
    }
}

/// One task adds and `workers` tasks process items, on two threads.
fn with<W>(workers: usize, keys: &Arc<[ObjectKey]>, rounds: usize, work: impl Fn(WorkQueue<ObjectKey>, Arc<Round>) -> W)
where
    W: Future<Output = ()> + Send + 'static,
{
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("threads can be had");
    let (queue, round) = (WorkQueue::new(RateLimit::default()), Arc::new(Round::default()));
    let workers: Vec<_> = (0..workers).map(|_| runtime.spawn(work(queue.clone(), Arc::clone(&round)))).collect();
    let keys = Arc::clone(keys);
    let adder = runtime.spawn(async move {
        for some in keys.chunks(AT_A_TIME).cycle().take(rounds) {
            round.left.store(some.len(), Ordering::Release);
            some.iter().for_each(|key| queue.add(key.clone()));
            round.over.notified().await;
        }
        queue.shutdown();
    });
    runtime.block_on(async {
        adder.await.expect("the adder does not panic");
        for worker in workers {
            worker.await.expect("workers do not panic");
        }
    });
}

async fn by_function(queue: WorkQueue<ObjectKey>, round: Arc<Round>) {
    let work = |_| {
        round.one_is_done();
        std::future::ready(Outcome::Done)
    };
    queue.work(work).await;
}

async fn by_hand(queue: WorkQueue<ObjectKey>, round: Arc<Round>) {
    while let Some(item) = queue.next().await {
        item.done();
        round.one_is_done();
    }
}

fn scattered(i: usize, range: usize) -> Duration {
    Duration::from_micros((i * 7919 % range) as u64)
}

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime can be had")
}

/// A plain FIFO queue.
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
