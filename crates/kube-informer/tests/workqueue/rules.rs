//! Rules shared with client-go's work queue: one worker per item, delays, shutdown; and the item
//! guard.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{MS, Queue, S, all_ready, nothing_is_ready, now, queue, take};
use kube_informer::workqueue::{Item, Priority, RateLimit};
use kube_informer::{Origin, WorkQueue};
use tokio::time::{Instant, advance};

mod one_worker_per_item {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn fifty_producers_and_ten_workers_leave_nothing_behind_however_it_is_shut_down() {
        for drains in [false, true] {
            let queue = WorkQueue::<usize>::new(RateLimit::default());
            let done = Arc::new(AtomicUsize::new(0));
            let workers: Vec<_> = (0..10)
                .map(|_| {
                    let (queue, done) = (queue.clone(), Arc::clone(&done));
                    tokio::spawn(async move {
                        while let Some(item) = queue.next().await {
                            assert_ne!(*item, 1000, "it was added after the shutdown");
                            tokio::task::yield_now().await;
                            done.fetch_add(1, Ordering::Relaxed);
                            item.forget();
                        }
                    })
                })
                .collect();
            let producers: Vec<_> = (0..50)
                .map(|producer| {
                    let queue = queue.clone();
                    tokio::spawn(async move {
                        for _ in 0..50 {
                            queue.add(producer);
                            tokio::task::yield_now().await;
                        }
                    })
                })
                .collect();
            for producer in producers {
                producer.await.unwrap();
            }
            if drains {
                queue.drain().await;
            } else {
                queue.shutdown();
            }
            queue.add(1000);
            for worker in workers {
                worker.await.unwrap();
            }
            assert!(queue.is_empty());
            assert!((50..=2500).contains(&done.load(Ordering::Relaxed)));
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn an_item_that_is_added_by_its_own_worker_runs_again_and_never_twice_at_a_time() {
        let queue = WorkQueue::<usize>::new(RateLimit::default());
        let running = Arc::new(std::sync::Mutex::new(HashSet::new()));
        let runs = Arc::new(AtomicUsize::new(0));
        (0..10).for_each(|item| queue.add(item));
        let workers: Vec<_> = (0..10)
            .map(|_| {
                let (queue, running, runs) = (queue.clone(), Arc::clone(&running), Arc::clone(&runs));
                tokio::spawn(async move {
                    while let Some(item) = queue.next().await {
                        assert!(running.lock().unwrap().insert(*item), "two workers have {}", *item);
                        if runs.fetch_add(1, Ordering::Relaxed) < 500 {
                            queue.add(*item);
                            tokio::task::yield_now().await;
                        } else {
                            queue.shutdown();
                        }
                        running.lock().unwrap().remove(&*item);
                        item.done();
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.unwrap();
        }
        assert!(queue.is_empty() && queue.running() == 0);
    }

    #[tokio::test]
    async fn an_item_that_is_added_several_times_counts_and_runs_once() {
        let queue = queue();
        ["foo", "bar", "foo", "foo"].into_iter().for_each(|item| queue.add(item));
        assert_eq!(queue.len(), 2);
        assert_eq!(all_ready(&queue), ["foo", "bar"]);
    }

    #[tokio::test]
    async fn an_item_that_is_added_while_it_runs_comes_back_after_its_verdict_and_only_once() {
        let queue = queue();
        queue.add("foo");
        let item = take(&queue);
        queue.add("foo");
        queue.add("foo");
        assert_eq!(queue.len(), 0);
        assert!(nothing_is_ready(&queue));
        item.done();
        assert_eq!(queue.len(), 1);
        assert_eq!(all_ready(&queue), ["foo"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_waits_gets_an_item_when_another_is_done_with_it() {
        let queue = queue();
        queue.add("foo");
        let item = take(&queue);
        queue.add("foo");
        let waits = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await.map(|item| *item) }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        item.forget();
        assert_eq!(waits.await.unwrap(), Some("foo"));
    }

    #[tokio::test]
    async fn of_an_item_that_is_done_nothing_is_kept() {
        let queue = WorkQueue::<Arc<str>>::new(RateLimit::default());
        let item: Arc<str> = "large".into();
        let weak = Arc::downgrade(&item);
        queue.add(item);
        now(queue.next()).unwrap().unwrap().done();
        assert!(weak.upgrade().is_none());
    }
}

mod guard {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_item_dropped_by_a_panic_comes_back_as_failed() {
        let queue = queue();
        queue.add("foo");
        let worker = queue.clone();
        let panicked = tokio::spawn(async move {
            let _item = worker.next().await;
            panic!("on purpose");
        });
        assert!(panicked.await.unwrap_err().is_panic());
        assert_eq!((queue.running(), queue.delayed(), queue.attempts(&"foo")), (0, 1, 1));
        advance(S).await;
        assert_eq!(take(&queue).attempts(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_of_a_cancelled_task_comes_back_as_failed() {
        let queue = queue();
        queue.add("foo");
        let worker = queue.clone();
        let stuck = tokio::spawn(async move {
            let _item = worker.next().await;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        assert_eq!(queue.running(), 1);
        stuck.abort();
        assert!(stuck.await.unwrap_err().is_cancelled());
        assert_eq!((queue.running(), queue.delayed(), queue.attempts(&"foo")), (0, 1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_left_by_an_error_comes_back_as_failed() {
        async fn work(queue: &Queue) -> Result<(), std::num::ParseIntError> {
            let item = queue.next().await.unwrap();
            item.parse::<i32>()?;
            item.forget();
            Ok(())
        }
        let queue = queue();
        queue.add("foo");
        work(&queue).await.unwrap_err();
        assert_eq!((queue.running(), queue.delayed(), queue.attempts(&"foo")), (0, 1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn each_verdict_does_what_it_says_to_the_failures_and_to_the_next_run() {
        type End = fn(Item<&'static str>);
        let ends: [(&str, End, u32, usize); 5] = [
            ("done", Item::done, 1, 0),
            ("forget", Item::forget, 0, 0),
            ("retry", Item::retry, 2, 1),
            ("retry_after", |item| item.retry_after(S), 1, 1),
            ("drop", drop, 2, 1),
        ];
        for (name, end, failures, delayed) in ends {
            let queue = queue();
            queue.retry("foo");
            advance(S).await;
            end(take(&queue));
            assert_eq!((queue.attempts(&"foo"), queue.delayed(), queue.len()), (failures, delayed, 0), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_after_no_time_is_ready_at_once() {
        let queue = queue();
        queue.add("foo");
        take(&queue).retry_after(Duration::ZERO);
        assert_eq!(all_ready(&queue), ["foo"]);
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_takes_nothing() {
        let queue = queue();
        for _ in 0..3 {
            assert!(nothing_is_ready(&queue));
        }
        let (given_up, waits) = (queue.clone(), queue.clone());
        let given_up = tokio::spawn(async move { given_up.next().await.map(|item| *item) });
        let waits = tokio::spawn(async move { waits.next().await.map(|item| *item) });
        tokio::task::yield_now().await;
        queue.add("foo");
        // It was the first waiter, so it is the one that was woken.
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        assert_eq!(waits.await.unwrap(), Some("foo"));
    }

    #[tokio::test(start_paused = true)]
    async fn if_the_one_that_keeps_time_gives_up_another_does() {
        let queue = queue();
        let next = |queue: Queue| tokio::spawn(async move { queue.next().await.map(|item| *item) });
        queue.add_after("foo", S);
        let encoder = next(queue.clone());
        let other = next(queue.clone());
        tokio::task::yield_now().await;
        encoder.abort();
        let start = Instant::now();
        assert_eq!(other.await.unwrap(), Some("foo"));
        assert_eq!(start.elapsed(), S);
    }
}

mod delays {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_delayed_item_comes_after_its_time_and_once() {
        let queue = queue();
        queue.add_after("foo", 50 * MS);
        assert_eq!((queue.len(), queue.delayed()), (0, 1));
        advance(49 * MS).await;
        assert!(nothing_is_ready(&queue));
        advance(MS).await;
        assert_eq!(all_ready(&queue), ["foo"]);
        advance(10 * S).await;
        assert!(nothing_is_ready(&queue));
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_delays_the_earlier_holds_in_whichever_order_they_come() {
        for (first, second) in [(50, 70), (70, 50)] {
            let queue = queue();
            queue.add_after("foo", first * MS);
            queue.add_after("foo", second * MS);
            assert_eq!(queue.delayed(), 1);
            advance(50 * MS).await;
            assert_eq!(all_ready(&queue), ["foo"]);
            advance(S).await;
            assert!(nothing_is_ready(&queue));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn delayed_items_come_in_the_order_of_their_times_however_they_were_added() {
        let queue = queue();
        queue.add_after("third", 3 * S);
        queue.add_after("first", S);
        queue.add_after("second", 2 * S);
        queue.add_after("also second", 2 * S);
        let start = Instant::now();
        for (seconds, expected) in [(1, "first"), (2, "second"), (2, "also second"), (3, "third")] {
            let item = queue.next().await.unwrap();
            assert_eq!((start.elapsed(), *item), (seconds * S, expected));
            item.forget();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_goes_before_what_is_added_later() {
        let queue = queue();
        queue.add_after("due", S);
        advance(2 * S).await;
        queue.add("added");
        assert_eq!(all_ready(&queue), ["due", "added"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_waits_for_a_late_item_is_woken_for_an_earlier_one() {
        let queue = queue();
        queue.add_after("late", 100 * S);
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await.map(|item| *item) }
        });
        tokio::task::yield_now().await;
        let start = Instant::now();
        queue.add_after("early", S);
        assert_eq!(worker.await.unwrap(), Some("early"));
        assert_eq!(start.elapsed(), S);
    }

    #[tokio::test(start_paused = true)]
    async fn all_workers_get_something_when_many_items_are_due_at_once() {
        let queue = WorkQueue::<usize>::new(RateLimit::none());
        (0..5).for_each(|item| queue.add_after(item, S));
        let workers: Vec<_> = (0..5)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let item = queue.next().await.unwrap();
                    // No worker returns its item, so each must get its own.
                    std::future::pending::<()>().await;
                    drop(item);
                })
            })
            .collect();
        tokio::time::sleep(S).await;
        tokio::task::yield_now().await;
        assert_eq!(queue.running(), 5);
        workers.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_longer_than_any_time_never_ends_and_affects_no_other() {
        let queue = queue();
        queue.add_after("never", Duration::MAX);
        queue.add_after("soon", S);
        assert_eq!(queue.next().await.as_deref(), Some(&"soon"));
        let waited = tokio::time::timeout(1_000_000 * S, queue.next()).await;
        assert!(waited.is_err() || waited.unwrap().as_deref() == Some(&"soon"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_becomes_due_while_it_runs_runs_once_more() {
        let queue = queue();
        queue.add("foo");
        let item = take(&queue);
        queue.add_after("foo", S);
        advance(S).await;
        assert!(nothing_is_ready(&queue));
        item.forget();
        assert_eq!(all_ready(&queue), ["foo"]);
    }
}

mod shutdown {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_shutdown_nothing_is_added_in_any_way() {
        let queue = queue();
        queue.shutdown();
        queue.add("a");
        queue.add_with("b", Priority::Low);
        queue.add_after("c", S);
        queue.add_from("d", Origin::Live);
        queue.retry("e");
        assert!(queue.is_shut_down());
        assert_eq!((queue.len(), queue.delayed()), (0, 0));
        assert!(queue.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_is_handed_out_after_a_shutdown_and_what_waits_is_dropped() {
        let queue = queue();
        queue.add("ready");
        queue.add_after("waits", S);
        queue.shutdown();
        assert_eq!(queue.delayed(), 0);
        queue.next().await.unwrap().retry();
        assert!(queue.next().await.is_none());
    }

    #[tokio::test]
    async fn a_shutdown_wakes_every_worker_that_waits_and_does_not_wait_for_the_others() {
        let queue = queue();
        let waits: Vec<_> = (0..5)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await.is_none() })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.shutdown();
        for waits in waits {
            assert!(waits.await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_drain_waits_for_what_runs() {
        let queue = queue();
        queue.add("foo");
        queue.add("bar");
        let (foo, bar) = (take(&queue), take(&queue));
        let drain = tokio::spawn(queue.drain());
        tokio::task::yield_now().await;
        foo.done();
        tokio::task::yield_now().await;
        assert!(!drain.is_finished());
        bar.retry();
        drain.await.unwrap();
    }

    #[tokio::test]
    async fn a_drain_waits_for_what_is_ready_too() {
        let queue = queue();
        queue.add("foo");
        let drain = tokio::spawn(queue.drain());
        tokio::task::yield_now().await;
        assert!(!drain.is_finished());
        let foo = take(&queue);
        tokio::task::yield_now().await;
        assert!(!drain.is_finished());
        foo.forget();
        drain.await.unwrap();
    }

    #[tokio::test]
    async fn a_drain_begins_before_it_is_awaited_and_continues_without_a_waiter() {
        let queue = queue();
        drop(queue.drain());
        queue.add("foo");
        assert!(queue.is_empty() && queue.is_shut_down());
    }

    #[tokio::test]
    async fn a_drain_without_anything_to_do_ends_at_once() {
        queue().drain().await;
    }

    #[tokio::test]
    async fn a_shutdown_releases_every_waiter_of_a_drain() {
        let queue = queue();
        queue.add("foo");
        let _foo = take(&queue);
        let drain = tokio::spawn(queue.drain());
        tokio::task::yield_now().await;
        assert!(!drain.is_finished());
        queue.shutdown();
        drain.await.unwrap();
    }

    #[tokio::test]
    async fn an_item_added_again_before_a_drain_comes_round_before_its_end() {
        let queue = queue();
        queue.add("foo");
        let foo = take(&queue);
        queue.add("foo");
        let drain = tokio::spawn(queue.drain());
        let other = tokio::spawn({
            let queue = queue.clone();
            async move {
                let item = queue.next().await.expect("it comes once more: no worker is sent home yet");
                item.forget();
                queue.next().await.is_none()
            }
        });
        tokio::task::yield_now().await;
        assert!(!drain.is_finished() && !other.is_finished());
        foo.done();
        drain.await.unwrap();
        assert!(other.await.unwrap());
    }
}
