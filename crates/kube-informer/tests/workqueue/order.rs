//! Order of execution: backoff, priorities, and the differences from client-go.

use crate::support::{MS, S, all_ready, nothing_is_ready, now, queue, take};
use kube_informer::workqueue::{Priority, RateLimit};
use kube_informer::{Origin, WorkQueue};
use tokio::time::{Instant, advance};

mod rate_limits {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_item_backs_off_by_itself_and_begins_anew_when_it_is_forgotten() {
        let queue = WorkQueue::new(RateLimit::exponential(MS, S));
        let start = Instant::now();
        let ready_after = async |item: &'static str| {
            queue.retry(item);
            let begin = Instant::now();
            assert_eq!(
                queue.next().await.map(|taken| {
                    let name = *taken;
                    taken.done();
                    name
                }),
                Some(item)
            );
            begin.elapsed()
        };
        assert_eq!(ready_after("one").await, MS);
        assert_eq!(ready_after("one").await, 2 * MS);
        assert_eq!(ready_after("two").await, MS);
        assert_eq!(ready_after("two").await, 2 * MS);
        assert_eq!(queue.attempts(&"one"), 2);
        queue.forget(&"one");
        assert_eq!(queue.attempts(&"one"), 0);
        assert_eq!(queue.attempts(&"two"), 2);
        assert_eq!(ready_after("one").await, MS);
        assert!(start.elapsed() < S);
    }

    #[tokio::test(start_paused = true)]
    async fn forgetting_does_not_call_off_a_retry() {
        let queue = queue();
        queue.retry("foo");
        queue.forget(&"foo");
        assert_eq!((queue.delayed(), queue.attempts(&"foo")), (1, 0));
        advance(S).await;
        assert_eq!(all_ready(&queue), ["foo"]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_an_item_at_rest_are_remembered_for_an_hour() {
        let queue = queue();
        queue.retry("foo");
        advance(S).await;
        take(&queue).done();
        advance(3599 * S).await;
        assert_eq!(queue.attempts(&"foo"), 1);
        advance(S).await;
        assert_eq!(queue.attempts(&"foo"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_remembered_of_the_last_16384_items_at_rest() {
        let queue = WorkQueue::<u32>::new(RateLimit::none());
        for item in 0..20_000 {
            queue.retry(item);
            queue.next().await.unwrap().done();
        }
        assert_eq!(queue.attempts(&(20_000 - 16_384 - 1)), 0);
        assert_eq!(queue.attempts(&(20_000 - 16_384)), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_an_item_that_waits_are_remembered_for_as_long_as_it_waits() {
        let queue = WorkQueue::new(RateLimit::exponential(7200 * S, 7200 * S));
        queue.retry("foo");
        advance(7200 * S).await;
        assert_eq!(take(&queue).attempts(), 1);
    }
}

/// Cases where client-go runs an item too often, too early or not at all.
mod better_than_client_go {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_immediate_add_takes_the_place_of_a_pending_delayed_one() {
        let queue = queue();
        queue.add_after("foo", S);
        queue.add("foo");
        assert_eq!((queue.len(), queue.delayed()), (1, 0));
        assert_eq!(all_ready(&queue), ["foo"]);
        advance(10 * S).await;
        assert!(nothing_is_ready(&queue));
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_add_of_an_item_that_is_ready_already_still_comes() {
        let queue = queue();
        queue.add("foo");
        queue.add_after("foo", S);
        queue.add("foo");
        assert_eq!(all_ready(&queue), ["foo"]);
        advance(S).await;
        assert_eq!(all_ready(&queue), ["foo"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_add_of_a_failing_item_runs_now_and_keeps_its_failures() {
        let queue = queue();
        queue.retry("foo");
        queue.add_from("foo", Origin::Live);
        let item = take(&queue);
        assert_eq!(item.attempts(), 1);
        item.retry();
        assert_eq!(queue.attempts(&"foo"), 2);
        advance(2 * S - MS).await;
        assert!(nothing_is_ready(&queue), "the backoff goes on where it was");
        advance(MS).await;
        assert_eq!(take(&queue).attempts(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_add_that_nothing_happened_for_waits_for_the_backoff_of_a_failing_item() {
        for origin in [Origin::Initial, Origin::Relist, Origin::Resync] {
            let queue = queue();
            queue.retry("foo");
            queue.add_from("foo", origin);
            assert!(nothing_is_ready(&queue), "{origin:?}");
            advance(S).await;
            assert_eq!(all_ready(&queue), ["foo"], "{origin:?}");
            assert_eq!(queue.delayed(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_resync_runs_an_item_that_waits_but_never_failed() {
        let queue = queue();
        queue.add_after("foo", S);
        queue.add_from("foo", Origin::Resync);
        assert_eq!(all_ready(&queue), ["foo"]);
        assert_eq!(queue.delayed(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_fails_and_was_added_live_meanwhile_runs_at_once_and_only_once() {
        let queue = queue();
        queue.add("foo");
        let item = take(&queue);
        queue.add_from("foo", Origin::Live);
        item.retry();
        assert_eq!((queue.len(), queue.delayed(), queue.attempts(&"foo")), (1, 0, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_fails_and_was_resynced_meanwhile_waits_for_its_backoff() {
        let queue = queue();
        queue.add("foo");
        let item = take(&queue);
        queue.add_from("foo", Origin::Resync);
        item.retry();
        assert_eq!((queue.len(), queue.delayed(), queue.attempts(&"foo")), (0, 1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_succeeds_and_was_resynced_meanwhile_runs_again() {
        let queue = queue();
        queue.add("foo");
        let item = take(&queue);
        queue.add_from("foo", Origin::Resync);
        item.forget();
        assert_eq!(all_ready(&queue), ["foo"]);
    }
}

mod priorities {
    use super::*;

    #[tokio::test]
    async fn the_origin_of_an_event_decides_who_goes_first() {
        let queue = queue();
        queue.add_from("initial", Origin::Initial);
        queue.add_from("resync", Origin::Resync);
        queue.add_from("relist", Origin::Relist);
        queue.add_from("live", Origin::Live);
        queue.add("added");
        assert_eq!(all_ready(&queue), ["live", "added", "relist", "initial", "resync"]);
    }

    #[tokio::test]
    async fn an_item_that_is_ready_is_raised_and_never_lowered() {
        let queue = queue();
        queue.add_with("a", Priority::Low);
        queue.add_with("b", Priority::Low);
        queue.add_with("c", Priority::High);
        queue.add_with("b", Priority::High);
        queue.add_with("c", Priority::Low);
        assert_eq!(all_ready(&queue), ["c", "b", "a"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_that_failed_keeps_its_priority() {
        let queue = queue();
        queue.add_with("low", Priority::Low);
        take(&queue).retry();
        advance(S).await;
        queue.add("high");
        assert_eq!(all_ready(&queue), ["high", "low"]);
    }

    #[tokio::test]
    async fn an_item_added_again_while_it_runs_has_the_priority_of_that_add() {
        let queue = queue();
        queue.add_with("foo", Priority::Low);
        let item = take(&queue);
        assert_eq!(item.priority(), Priority::Low);
        queue.add_with("bar", Priority::Normal);
        queue.add("foo");
        item.forget();
        assert_eq!(all_ready(&queue), ["foo", "bar"]);
    }

    #[tokio::test(start_paused = true)]
    async fn overdue_work_has_every_second_turn_however_much_fresh_work_there_is() {
        let queue = WorkQueue::<u32>::builder().longest_wait(10 * S).build();
        (0..3).for_each(|item| queue.add_with(item, Priority::Low));
        advance(10 * S).await;
        (100..110).for_each(|item| queue.add(item));
        let turns: Vec<_> = (0..8).map(|_| now(queue.next()).unwrap().map(|item| *item).unwrap()).collect();
        assert_eq!(turns, [0, 100, 1, 101, 2, 102, 103, 104]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_is_not_overdue_waits_for_all_fresh_work() {
        let queue = WorkQueue::<u32>::builder().longest_wait(10 * S).build();
        queue.add_with(0, Priority::Low);
        advance(10 * S - MS).await;
        (100..103).for_each(|item| queue.add(item));
        let turns: Vec<_> = (0..4).map(|_| now(queue.next()).unwrap().map(|item| *item).unwrap()).collect();
        assert_eq!(turns, [100, 101, 102, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn low_work_under_a_flood_of_fresh_work_waits_no_longer_than_is_stated() {
        let queue = WorkQueue::<u32>::builder().longest_wait(30 * S).build();
        queue.add_with(0, Priority::Low);
        let start = Instant::now();
        for fresh in 1.. {
            queue.add(fresh);
            queue.add(fresh + 1_000_000);
            advance(100 * MS).await;
            let item = queue.next().await.unwrap();
            if *item == 0 {
                break;
            }
            item.forget();
        }
        assert_eq!(start.elapsed(), 30 * S);
    }
}
