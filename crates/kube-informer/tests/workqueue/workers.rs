//! Workers that are functions (`WorkQueue::work`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::server_support::logs::Logs;
use crate::support::{S, queue};
use kube_informer::workqueue::RateLimit;
use kube_informer::{Outcome, WorkQueue};
use parking_lot::Mutex;
use tracing::Level;

/// Lets all tasks run until they are idle.
async fn settle() {
    tokio::time::sleep(Duration::from_nanos(1)).await;
}

#[tokio::test(start_paused = true)]
async fn each_outcome_does_what_it_says() {
    for (outcome, attempts, delayed) in
        [(Outcome::Done, 1, 0), (Outcome::Forget, 0, 0), (Outcome::Retry, 2, 1), (Outcome::RetryAfter(7 * S), 1, 1)]
    {
        let queue = queue();
        queue.retry("a");
        tokio::time::advance(S).await;
        let returned = outcome.clone();
        let worker = tokio::spawn(queue.clone().work(move |_| {
            let outcome = returned.clone();
            async move { outcome }
        }));
        settle().await;
        assert_eq!((queue.attempts(&"a"), queue.delayed()), (attempts, delayed), "{outcome:?}");
        assert_eq!((queue.len(), queue.running()), (0, 0), "{outcome:?}");
        worker.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn items_come_in_their_order_and_fail_each_for_itself() {
    let queue = queue();
    let seen = Arc::new(Mutex::new(Vec::new()));
    ["a", "b", "c"].into_iter().for_each(|item| queue.add(item));
    let recorded = Arc::clone(&seen);
    let worker = tokio::spawn(queue.clone().work(move |item| {
        recorded.lock().push(item);
        async move { if item == "b" { Err("busy") } else { Ok(()) } }
    }));
    settle().await;
    assert_eq!(*seen.lock(), ["a", "b", "c"]);
    tokio::time::sleep(S).await;
    assert_eq!(*seen.lock(), ["a", "b", "c", "b"]);
    assert_eq!((queue.attempts(&"a"), queue.attempts(&"b")), (0, 2));
    queue.shutdown();
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_has_failed_and_the_worker_goes_on() {
    let queue = queue();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    ["at once", "later", "c"].into_iter().for_each(|item| queue.add(item));
    let worker = tokio::spawn(queue.clone().work(move |item| {
        assert_ne!(item, "at once", "this test panics");
        let count = Arc::clone(&count);
        async move {
            tokio::task::yield_now().await;
            assert_ne!(item, "later", "this test panics");
            count.fetch_add(1, Ordering::Relaxed);
        }
    }));
    settle().await;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_eq!(["at once", "later", "c"].map(|item| queue.attempts(&item)), [1, 1, 0]);
    assert_eq!((queue.running(), queue.delayed()), (0, 2));
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_half_way_goes_back_as_failed() {
    let queue = queue();
    queue.add("a");
    let worker = tokio::spawn(queue.clone().work(|_| std::future::pending::<()>()));
    settle().await;
    assert_eq!(queue.running(), 1);
    worker.abort();
    settle().await;
    assert_eq!((queue.running(), queue.delayed(), queue.attempts(&"a")), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_functions_which_then_end() {
    let queue = queue();
    let runs = Arc::new(AtomicUsize::new(0));
    let workers = [0, 1].map(|_| {
        let count = Arc::clone(&runs);
        tokio::spawn(queue.clone().work(move |_| {
            let count = Arc::clone(&count);
            async move {
                tokio::time::sleep(S).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        }))
    });
    ["a", "b", "c"].into_iter().for_each(|item| queue.add(item));
    queue.drain().await;
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    for worker in workers {
        worker.await.unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn work_that_is_always_there_lets_others_run() {
    let queue = WorkQueue::new(RateLimit::default());
    queue.add("a");
    let again = queue.clone();
    let worker = tokio::spawn(queue.clone().work(move |item| {
        again.add(item);
        async {}
    }));
    // The worker never awaits: unless it yields, this is never reached.
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
    queue.shutdown();
    worker.await.unwrap();
}

/// Panics when it is cloned for the second time.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Fragile {
    name: &'static str,
    clones: Clones,
}

/// Number of clones; ignored by equality and hash.
#[derive(Debug, Clone, Default)]
struct Clones(Arc<AtomicUsize>);

impl PartialEq for Clones {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Clones {}

impl std::hash::Hash for Clones {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert_ne!(self.clones.0.fetch_add(1, Ordering::Relaxed), 1, "this test panics");
        Self { name: self.name, clones: self.clones.clone() }
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_that_breaks_between_two_turns_has_its_second_turn_all_the_same() {
    let queue = WorkQueue::new(RateLimit::exponential(S, S));
    let (counter, runs) = (Clones::default(), Arc::new(AtomicUsize::new(0)));
    let (again, count) = (queue.clone(), Arc::clone(&runs));
    let worker = tokio::spawn(queue.clone().work(move |item: Fragile| {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            again.add(Fragile { name: "a", clones: item.clones });
        }
        async {}
    }));
    queue.add(Fragile { name: "a", clones: counter.clone() });
    settle().await;
    assert_eq!(runs.load(Ordering::Relaxed), 2);
    assert_eq!(counter.0.load(Ordering::Relaxed), 3, "it was cloned for the first turn, broke, and was cloned again");
    queue.drain().await;
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_and_a_panic_are_logged_with_the_queue_and_the_item() {
    let logs = Logs::record();
    let queue = WorkQueue::<&str>::builder().name("pods").rate_limit(RateLimit::exponential(S, S)).build();
    queue.add("a");
    let worker = tokio::spawn(queue.clone().work(|item| async move {
        match item {
            "a" => Err("no connection"),
            _ => panic!("this test panics"),
        }
        .map(|(): ()| Outcome::Done)
    }));
    settle().await;
    tokio::time::sleep(S).await;
    queue.add("b");
    settle().await;
    let failed = |attempts| {
        let fields = r#"queue="pods" item="a""#;
        format!(
            r#"WARN message=work on an item failed; it is tried again {fields} attempts={attempts} error="no connection""#
        )
    };
    assert_eq!(logs.take(Level::WARN), [failed(1), failed(2)]);
    let panicked = r#"ERROR message=work on an item panicked; it is tried again queue="pods" item="b" attempts=1"#;
    assert_eq!(logs.take(Level::ERROR), [panicked]);
    assert_eq!((queue.attempts(&"a"), queue.attempts(&"b")), (2, 1));
    worker.abort();
}
