//! Handlers that are removed, dropped or detached, and handlers of a stopped informer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_informer::pipeline::Backlog;
use kube_informer::{Registration, SyncError};
use tokio::sync::mpsc;

use crate::handlers::{GatedHandler, gated_handler, informer};
use crate::support::{EventRecorder, drained, key, put, remove, server, truth};

/// As in client-go, a running callback completes and the backlog is discarded.
#[tokio::test(start_paused = true)]
async fn a_dropped_handler_receives_no_more_events() {
    let server = server().await;
    let maps = informer(&server);
    let slow = gated_handler(&maps, Backlog::default());
    let other = EventRecorder::default();
    let stays = maps.on_event(other.handler());
    maps.start();
    maps.synced().await.unwrap();
    maps.wait_for(put(&server, "default", "a", "1")).await.unwrap();
    maps.wait_for(put(&server, "default", "b", "1")).await.unwrap();
    let GatedHandler { registration, recorder, gate } = slow;
    drained(&stays).await;
    drop(registration);
    gate.notify_one();
    maps.wait_for(put(&server, "default", "c", "1")).await.unwrap();
    drained(&stays).await;
    gate.notify_one();
    tokio::task::yield_now().await;
    assert_eq!(recorder.take(), ["+ default/a"], "what it was operation it finished");
    assert_eq!(other.take().len(), 3, "others are not concerned");
}

#[tokio::test(start_paused = true)]
async fn remove_waits_until_the_handler_has_returned() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = informer(&server);
    let slow = gated_handler(&maps, Backlog::default());
    maps.start();
    maps.synced().await.unwrap();
    while slow.registration.backlog() > 0 {
        tokio::task::yield_now().await;
    }
    let GatedHandler { registration, recorder, gate } = slow;
    let removing = tokio::spawn(registration.remove());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!removing.is_finished());
    gate.notify_one();
    removing.await.unwrap();
    assert_eq!(recorder.take(), ["+ default/a (Initial)"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_remove_itself() {
    let server = server().await;
    put(&server, "default", "a", "1");
    put(&server, "default", "b", "1");
    let maps = informer(&server);
    let (give, take) = std::sync::mpsc::channel::<Registration>();
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    let mut take = Some(take);
    let registration = maps.on_event_async(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        let mine = take.take().and_then(|take| take.recv().ok());
        async move {
            if let Some(mine) = mine {
                mine.remove().await;
            }
        }
    });
    let mut stage = tokio::spawn(registration.synced());
    give.send(registration).unwrap();
    maps.start();
    maps.synced().await.unwrap();
    assert!(matches!((&mut stage).await.unwrap(), Err(SyncError::Stopped)));
    assert_eq!(received.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn removing_before_the_start_ends_at_once() {
    let server = server().await;
    let maps = informer(&server);
    let guard = Arc::new(());
    let captured = Arc::clone(&guard);
    let registration = maps.on_event(move |_| drop(Arc::clone(&captured)));
    registration.remove().await;
    assert_eq!(Arc::strong_count(&guard), 1, "the handler itself is gone");
}

#[tokio::test(start_paused = true)]
async fn a_detached_handler_receives_events_until_the_informer_stops() {
    let server = server().await;
    let maps = informer(&server);
    let recorder = EventRecorder::default();
    maps.on_event(recorder.handler()).detach();
    maps.start();
    maps.synced().await.unwrap();
    put(&server, "default", "a", "1");
    while recorder.objects().is_empty() {
        tokio::task::yield_now().await;
    }
    maps.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_a_stopped_informer_receives_nothing_and_reports_so() {
    let server = server().await;
    let maps = informer(&server);
    maps.start();
    maps.synced().await.unwrap();
    maps.shutdown().await;
    let handler = maps.on_event(|_| panic!("no event is delivered any more"));
    assert!(matches!(handler.synced().await, Err(SyncError::Stopped)));
    assert!(maps.subscribe().next().await.is_none());
    handler.remove().await;
}

/// On real threads: no deadlock, no lost event.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_added_and_removed_under_load_receive_consistent_events() {
    let server = Arc::new(server().await);
    let maps = informer(&server);
    maps.start();
    maps.synced().await.unwrap();
    let writer = tokio::task::spawn_blocking({
        let server = Arc::clone(&server);
        move || {
            for nth in 0..400 {
                let name = format!("m{}", nth % 7);
                if nth % 11 == 10 {
                    remove(&server, "default", &name);
                } else {
                    put(&server, "default", &name, &nth.to_string());
                }
            }
            put(&server, "default", "last", "1")
        }
    });
    let mut workers = Vec::new();
    for nth in 0..20 {
        let maps = maps.clone();
        workers.push(tokio::spawn(async move {
            let mut stories = Vec::new();
            for _ in 0..10 {
                let recorder = EventRecorder::default();
                let handler = maps.on_event(recorder.handler());
                handler.synced().await.unwrap();
                tokio::task::yield_now().await;
                if nth % 2 == 0 {
                    handler.remove().await;
                }
                stories.push(recorder);
            }
            stories
        }));
    }
    let version = writer.await.unwrap();
    maps.wait_for(version).await.unwrap();
    for worker in workers {
        for recorder in worker.await.unwrap() {
            recorder.objects();
        }
    }
    let last = EventRecorder::default();
    let handler = maps.on_event(last.handler());
    handler.synced().await.unwrap();
    assert_eq!(last.objects(), truth(&server));
    assert!(maps.lister().get(&key("default", "last")).is_some());
    maps.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_handler_with_weak_handles_of_its_own_cache_does_not_keep_the_informer() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = informer(&server);
    let (lister, index) = (maps.lister(), maps.index_by_label("value"));
    let (weak_lister, weak_index) = (lister.downgrade(), index.downgrade());
    let (sender, mut seen) = mpsc::unbounded_channel();
    maps.on_event(move |_| {
        let (lister, index) = (weak_lister.upgrade(), weak_index.upgrade());
        sender.send((lister.map(|lister| lister.len()), index.map(|index| index.count("1")))).unwrap();
    })
    .detach();
    maps.start();
    assert_eq!(seen.recv().await, Some((Some(1), Some(1))));
    drop((lister, index, maps));
    let last = tokio::time::timeout(Duration::from_secs(600), seen.recv()).await;
    assert_eq!(last.expect("the handler is dropped"), None);
    while !server.watches().is_empty() {
        tokio::task::yield_now().await;
    }
}
