//! Explores thread schedules of the queue with shuttle.
//!
//! A schedule in which all threads are blocked is a deadlock, which shuttle reports with a seed to
//! replay it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use super::{Item, RateLimit, WorkQueue};

const SCHEDULES: usize = 2_000;
const S: Duration = Duration::from_secs(1);

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(scenario, SCHEDULES);
}

fn queue() -> WorkQueue<u32> {
    WorkQueue::new(RateLimit::exponential(S, S))
}

fn join<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// A worker that takes items until the queue ends, and returns how many it processed.
fn worker(queue: &WorkQueue<u32>) -> JoinHandle<usize> {
    let queue = queue.clone();
    thread::spawn(move || {
        block_on(async {
            let mut done = 0;
            while let Some(item) = queue.next().await {
                thread::yield_now();
                item.forget();
                done += 1;
            }
            done
        })
    })
}

/// A worker that takes one item.
fn one_turn(queue: &WorkQueue<u32>) -> JoinHandle<Option<()>> {
    let queue = queue.clone();
    thread::spawn(move || block_on(async { queue.next().await.map(Item::forget) }))
}

fn adder(queue: &WorkQueue<u32>, items: impl IntoIterator<Item = u32> + Send + 'static) -> JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || items.into_iter().for_each(|item| queue.add(item)))
}

/// Like `worker`, with [`WorkQueue::work`].
fn function(queue: &WorkQueue<u32>) -> JoinHandle<usize> {
    let queue = queue.clone();
    thread::spawn(move || {
        let mut done = 0;
        block_on(queue.work(|_| {
            thread::yield_now();
            done += 1;
            async {}
        }));
        done
    })
}

#[test]
fn functions_work_on_every_item_beside_others() {
    check(|| {
        let queue = queue();
        let workers = [function(&queue), worker(&queue), function(&queue)];
        join([adder(&queue, 0..4), adder(&queue, 10..14)]);
        queue.shutdown();
        assert_eq!(join(workers).iter().sum::<usize>(), 8);
    });
}

#[test]
fn every_item_is_processed_with_any_producers_and_workers() {
    check(|| {
        let queue = queue();
        let workers = [worker(&queue), worker(&queue), worker(&queue)];
        let adders = [adder(&queue, 0..3), adder(&queue, 10..13)];
        join(adders);
        queue.shutdown();
        assert_eq!(join(workers).iter().sum::<usize>(), 6);
    });
}

/// State that workers read, one at a time.
#[derive(Clone, Default)]
struct Observed {
    version: Arc<AtomicUsize>,
    seen: Arc<AtomicUsize>,
    readers: Arc<AtomicUsize>,
}

impl Observed {
    fn read(&self) {
        assert_eq!(self.readers.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
        thread::yield_now();
        self.seen.store(self.version.load(Ordering::SeqCst), Ordering::SeqCst);
        self.readers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Changes the state that two workers read, and adds the item after each change.
fn check_that_the_last_change_is_seen<W: Future<Output = ()> + 'static>(work: fn(WorkQueue<u32>, Observed) -> W) {
    check(move || {
        let (queue, observed) = (queue(), Observed::default());
        let workers = [0, 1].map(|_| {
            let (queue, observed) = (queue.clone(), observed.clone());
            thread::spawn(move || block_on(work(queue, observed)))
        });
        for change in 1..4 {
            observed.version.store(change, Ordering::SeqCst);
            queue.add(0);
        }
        queue.shutdown();
        join(workers);
        assert_eq!(observed.seen.load(Ordering::SeqCst), 3, "the last change was worked on");
    });
}

#[test]
fn no_item_is_with_two_workers_and_none_that_was_added_is_missed() {
    check_that_the_last_change_is_seen(|queue, observed| async move {
        while let Some(item) = queue.next().await {
            observed.read();
            item.forget();
        }
    });
}

#[test]
fn no_item_is_with_two_functions_and_none_that_was_added_is_missed() {
    check_that_the_last_change_is_seen(|queue, observed| {
        queue.work(move |_| {
            observed.read();
            async {}
        })
    });
}

#[test]
fn all_items_reach_a_worker_in_the_order_of_each_adder() {
    check(|| {
        let queue = queue();
        let adders = [adder(&queue, 0..5), adder(&queue, 10..15)];
        let taken = block_on(async {
            let mut taken = Vec::new();
            while taken.len() < 10 {
                let item = queue.next().await.expect("it goes on");
                taken.push(*item);
                item.forget();
            }
            taken
        });
        join(adders);
        let of =
            |first: u32| taken.iter().copied().filter(|item| (first..first + 10).contains(item)).collect::<Vec<_>>();
        assert_eq!((of(0), of(10)), ((0..5).collect(), (10..15).collect()));
    });
}

#[test]
fn no_worker_waits_while_an_item_is_ready() {
    check(|| {
        let queue = queue();
        let workers = [one_turn(&queue), one_turn(&queue)];
        let adders = [adder(&queue, [0]), adder(&queue, [1])];
        join(adders);
        assert_eq!(join(workers), [Some(()), Some(())]);
    });
}

#[test]
fn what_is_added_twice_before_its_turn_has_one_turn_with_any_other_producer() {
    check(|| {
        let queue = queue();
        let adders = [adder(&queue, [0, 0]), adder(&queue, [1, 1])];
        join(adders);
        for _ in 0..2 {
            block_on(queue.next()).expect("it goes on").forget();
        }
        assert!(queue.is_empty());
    });
}

#[test]
fn what_is_added_while_it_runs_runs_once_more_beside_a_worker_that_waits() {
    check(|| {
        let queue = queue();
        queue.add(0);
        let item = block_on(queue.next()).expect("it goes on");
        let adders = [adder(&queue, [0]), adder(&queue, [0])];
        let other = worker(&queue);
        join(adders);
        item.forget();
        block_on(queue.drain());
        assert_eq!(join([other]), [1]);
    });
}

#[test]
fn an_added_item_is_visible_to_its_producer() {
    check(|| {
        let queue = queue();
        let adders = [0, 10, 20].map(|first| {
            let queue = queue.clone();
            thread::spawn(move || {
                for item in first..first + 3 {
                    queue.add(item);
                    assert!(queue.len() > (item - first) as usize);
                }
            })
        });
        join(adders);
        assert_eq!(queue.len(), 9);
    });
}

#[test]
fn an_item_given_to_a_wait_that_is_given_up_goes_to_another() {
    check(|| {
        let queue = queue();
        let cancelled = {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(async {
                    // Polled once, then dropped at an arbitrary time, whether woken or not.
                    let mut next = std::pin::pin!(queue.next());
                    let first = std::future::poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
                    thread::yield_now();
                    if let Poll::Ready(Some(item)) = first {
                        item.retry_after(Duration::ZERO);
                    }
                });
            })
        };
        let steady = one_turn(&queue);
        queue.add(0);
        join([cancelled]);
        assert_eq!(join([steady]), [Some(())]);
    });
}

#[test]
fn a_worker_that_kept_the_time_and_leaves_is_replaced() {
    check(|| {
        let queue = queue();
        queue.add_after(0, S);
        queue.add_after(1, 2 * S);
        let workers = [one_turn(&queue), one_turn(&queue)];
        queue.shared.clock.advance(S);
        // In some schedules this is enough for one worker to take its item and end.
        (0..20).for_each(|_| thread::yield_now());
        queue.shared.clock.advance(S);
        assert_eq!(join(workers), [Some(()), Some(())]);
    });
}

#[test]
fn a_worker_that_waits_for_a_late_item_is_woken_for_an_earlier_one() {
    check(|| {
        let queue = queue();
        queue.add_after(0, 10 * S);
        let worker = {
            let queue = queue.clone();
            thread::spawn(move || block_on(async { queue.next().await.map(|item| *item) }))
        };
        queue.add_after(1, S);
        queue.shared.clock.advance(S);
        assert_eq!(join([worker]), [Some(1)]);
    });
}

#[test]
fn what_is_due_is_handed_out_when_the_timekeeping_worker_is_dropped() {
    check(|| {
        let queue = queue();
        let workers = [worker(&queue), worker(&queue)];
        queue.add_after(0, 3 * S);
        queue.add_after(1, S);
        queue.add(2);
        queue.add_after(3, 2 * S);
        for _ in 0..3 {
            queue.shared.clock.advance(S);
            thread::yield_now();
        }
        while queue.delayed() + queue.len() + queue.running() > 0 {
            thread::yield_now();
        }
        queue.shutdown();
        assert_eq!(join(workers).iter().sum::<usize>(), 4);
    });
}

#[test]
fn an_item_that_fails_comes_back_to_some_worker() {
    check(|| {
        let queue = queue();
        let workers = [0, 1].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || {
                block_on(async {
                    while let Some(item) = queue.next().await {
                        match item.attempts() {
                            0 => drop(item),
                            1 => item.retry(),
                            _ => {
                                item.forget();
                                queue.shutdown();
                            }
                        }
                    }
                });
            })
        });
        queue.add(0);
        while !queue.is_shut_down() {
            queue.shared.clock.advance(S);
            thread::yield_now();
        }
        join(workers);
    });
}

#[test]
fn a_drain_ends_when_all_work_is_done_and_not_before() {
    check(|| {
        let queue = queue();
        (0..3).for_each(|item| queue.add(item));
        let workers = [worker(&queue), worker(&queue)];
        let drain = queue.drain();
        block_on(drain);
        assert!(queue.is_empty() && queue.running() == 0);
        assert_eq!(join(workers).iter().sum::<usize>(), 3);
    });
}

#[test]
fn a_shutdown_releases_a_drain_without_workers() {
    check(|| {
        let queue = queue();
        queue.add(0);
        let drain = queue.drain();
        let drain = thread::spawn(move || block_on(drain));
        let other = queue.clone();
        let shutdown = thread::spawn(move || other.shutdown());
        join([drain, shutdown]);
        assert_eq!(queue.len(), 1);
    });
}
