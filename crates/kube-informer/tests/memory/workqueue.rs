//! Memory of the work queue.

use std::alloc::System;
use std::num::NonZeroUsize;
use std::time::Duration;

use kube_informer::WorkQueue;
use kube_informer::workqueue::RateLimit;
use stats_alloc::Region;

use crate::{ALLOCATOR, alone};

/// Three words, one of them non-zero, like an object's key, but without heap memory.
type Key = (NonZeroUsize, usize, usize);

fn key(i: usize) -> Key {
    (NonZeroUsize::MIN, i, i)
}

const MILLION: usize = 1_000_000;
const BYTES_AN_ITEM: isize = 100;

fn held(region: &Region<'_, System>) -> isize {
    let change = region.change();
    change.bytes_allocated as isize - change.bytes_deallocated as isize
}

async fn end_all(queue: &WorkQueue<Key>) {
    while !queue.is_empty() {
        queue.next().await.expect("one is ready").forget();
    }
}

/// Bytes held after the queue has shrunk, which it does ten seconds after a burst, with the next
/// operation.
async fn held_later(queue: &WorkQueue<Key>, region: &Region<'_, System>) -> isize {
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(queue.is_empty());
    held(region)
}

#[test]
fn a_million_items_take_less_than_a_hundred_bytes_each_and_their_memory_is_given_back() {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let region = Region::new(ALLOCATOR);
        let queue = WorkQueue::<Key>::new(RateLimit::default());
        (0..MILLION).for_each(|i| queue.add(key(i)));
        let ready = held(&region) / MILLION as isize;
        end_all(&queue).await;
        let kept = held(&region) / MILLION as isize;
        let empty = held_later(&queue, &region).await;
        println!("ready: {ready} bytes an item; all done: {kept}; {empty} bytes in all after ten seconds");
        assert!(ready < BYTES_AN_ITEM && kept <= ready && empty < 1_000_000);

        (0..MILLION).for_each(|i| queue.add_after(key(i), Duration::from_millis((i * 7919 % MILLION) as u64)));
        let delayed = held(&region) / MILLION as isize;
        tokio::time::advance(Duration::from_millis(MILLION as u64)).await;
        end_all(&queue).await;
        let empty = held_later(&queue, &region).await;
        println!("delayed: {delayed} bytes an item; {empty} bytes in all ten seconds after all have been done");
        assert!(delayed < BYTES_AN_ITEM && empty < 1_000_000);

        // Memory is released even if the queue is never empty.
        (0..MILLION).for_each(|i| queue.add(key(i)));
        (0..100).for_each(|i| queue.add_after(key(MILLION + i), Duration::from_secs(60)));
        end_all(&queue).await;
        let nearly_empty = held_later(&queue, &region).await;
        assert_eq!(queue.delayed(), 100);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(queue.len(), 100);
        end_all(&queue).await;
        println!("{nearly_empty} bytes for the last hundred");
        assert!(nearly_empty < 1_000_000);

        // A burst that repeats within ten seconds reuses the memory of the last one.
        (0..MILLION).for_each(|i| queue.add(key(i)));
        end_all(&queue).await;
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(9)).await;
            let again = Region::new(ALLOCATOR);
            (0..MILLION).for_each(|i| queue.add(key(i)));
            end_all(&queue).await;
            assert_eq!(again.change().bytes_allocated, 0);
        }

        // Memory is released even if the only worker is never idle.
        (0..MILLION).for_each(|i| queue.add(key(i)));
        let again = queue.clone();
        let worker = tokio::spawn(queue.clone().work(move |item: Key| {
            let last = item == key(MILLION - 1);
            if last {
                again.add(item);
            }
            tokio::time::sleep(Duration::from_secs(u64::from(last)))
        }));
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((queue.len(), queue.running()), (0, 1));
        let busy = held(&region);
        println!("{busy} bytes for one that is always worked on");
        assert!(busy < 1_000_000);
        worker.abort();
    });
}
