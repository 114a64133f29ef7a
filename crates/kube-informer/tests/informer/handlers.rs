//! Handlers and subscriptions: added, removed, filtered, slow, panicking, resynced.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::support::logs::Logs;
use crate::support::{EventRecorder, client, config_map, drained, key, line, put, remove, server, truth};
use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::Server;
use kube_informer::pipeline::{Backlog, Overflow};
use kube_informer::store::MAX_BATCH;
use kube_informer::{Event, Informer, Kind, Obj, Origin, Registration, SyncError};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tracing::Level;

fn informer(server: &Server) -> Informer<ConfigMap> {
    Informer::builder(client(server)).build()
}

/// A handler that processes one event per notification of its gate.
struct GatedHandler {
    registration: Registration,
    recorder: EventRecorder,
    gate: Arc<Notify>,
}

fn gated_handler(maps: &Informer<ConfigMap>, backlog: Backlog) -> GatedHandler {
    let (recorder, gate) = (EventRecorder::default(), Arc::new(Notify::new()));
    let (received, opened) = (recorder.clone(), Arc::clone(&gate));
    let registration = maps.handler().backlog(backlog).on_event_async(move |event| {
        let (recorder, gate) = (received.clone(), Arc::clone(&opened));
        async move {
            gate.notified().await;
            recorder.record(&event);
        }
    });
    GatedHandler { registration, recorder, gate }
}

impl GatedHandler {
    /// Processes all events in the backlog.
    async fn release(&self) {
        for _ in 0..2 {
            while self.registration.backlog() > 0 {
                self.gate.notify_one();
                tokio::task::yield_now().await;
            }
            self.gate.notify_one();
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_turns_entering_into_an_addition_and_leaving_into_a_filtered_deletion() {
    let server = server().await;
    put(&server, "default", "a", "in");
    put(&server, "default", "b", "out");
    let maps = informer(&server);
    let recorder = EventRecorder::default();
    let handler = maps.handler().filter(|map| map.label("value") == Some("in")).on_event(recorder.handler());
    maps.start();
    handler.synced().await.unwrap();
    put(&server, "default", "b", "in");
    put(&server, "default", "a", "out");
    put(&server, "default", "a", "still-out");
    remove(&server, "default", "a");
    remove(&server, "default", "b");
    maps.wait_for(put(&server, "default", "c", "out")).await.unwrap();
    drained(&handler).await;
    recorder.objects();
    assert_eq!(recorder.take(), ["+ default/a (Initial)", "+ default/b", "- default/a Filtered", "- default/b Known"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_handler_with_a_latest_backlog_receives_only_the_latest_state() {
    let server = server().await;
    let maps = informer(&server);
    let slow = gated_handler(&maps, Backlog::Latest);
    maps.start();
    maps.synced().await.unwrap();
    put(&server, "default", "first", "1");
    for nth in 0..50 {
        put(&server, "default", "a", &nth.to_string());
        put(&server, "default", "b", &nth.to_string());
    }
    remove(&server, "default", "b");
    maps.wait_for(put(&server, "default", "c", "1")).await.unwrap();
    assert!(slow.registration.backlog() <= 2);
    slow.release().await;
    assert_eq!(slow.recorder.take(), ["+ default/first", "+ default/a", "+ default/c"]);
    assert_eq!(slow.recorder.objects(), truth(&server));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_that_replays_delivers_the_difference_as_a_list_would() {
    let server = server().await;
    for name in ["a", "b"] {
        put(&server, "default", name, "0");
    }
    let maps = informer(&server);
    let slow = gated_handler(&maps, Backlog::Every { limit: 4, overflow: Overflow::Replay });
    maps.start();
    maps.synced().await.unwrap();
    slow.release().await;
    slow.registration.synced().await.unwrap();
    slow.recorder.take();
    maps.wait_for(put(&server, "default", "in-hand", "0")).await.unwrap();
    drained(&slow.registration).await;
    for nth in 1..20 {
        put(&server, "default", "a", &nth.to_string());
    }
    remove(&server, "default", "b");
    maps.wait_for(put(&server, "default", "c", "1")).await.unwrap();
    slow.release().await;
    assert_eq!(
        slow.recorder.take(),
        ["+ default/in-hand", "~ default/a (Relist)", "- default/b Missed (Relist)", "+ default/c (Relist)"]
    );
    assert_eq!(slow.recorder.objects(), truth(&server));
}

#[tokio::test(start_paused = true)]
async fn a_quick_handler_is_called_during_a_burst_and_receives_every_event() {
    let server = server().await;
    let maps = informer(&server);
    let recorder = EventRecorder::default();
    let backlog = Backlog::Every { limit: 2 * MAX_BATCH, overflow: Overflow::Replay };
    let handler = maps.handler().backlog(backlog).on_event(recorder.handler());
    maps.start();
    maps.synced().await.unwrap();
    let burst: Vec<_> = (0..10 * MAX_BATCH).map(|nth| nth.to_string()).collect();
    let versions: Vec<_> = burst.iter().map(|name| put(&server, "default", name, "1")).collect();
    maps.wait_for(versions[versions.len() - 1].clone()).await.unwrap();
    drained(&handler).await;
    let lines: Vec<_> = burst.iter().map(|name| format!("+ default/{name}")).collect();
    assert_eq!(recorder.take(), lines);
}

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

/// Not before the handler has returned from its last initial event.
#[tokio::test(start_paused = true)]
async fn a_handler_is_synced_when_it_has_returned_from_its_last_initial_event() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        put(&server, "default", name, "1");
    }
    let maps = informer(&server);
    let slow = gated_handler(&maps, Backlog::default());
    maps.start();
    maps.synced().await.unwrap();
    let synced = tokio::spawn(slow.registration.synced());
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!synced.is_finished());
        slow.gate.notify_one();
    }
    synced.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_synced_when_its_last_initial_event_has_been_taken() {
    let server = server().await;
    let empty = informer(&server);
    let nothing = empty.subscribe();
    empty.start();
    nothing.synced().await.unwrap();
    put(&server, "default", "a", "1");
    let maps = informer(&server);
    let mut events = maps.subscribe();
    maps.start();
    maps.synced().await.unwrap();
    let synced = tokio::spawn(events.synced());
    tokio::task::yield_now().await;
    assert!(!synced.is_finished());
    assert_eq!(line(&events.next().await.unwrap()), "+ default/a (Initial)");
    synced.await.unwrap().unwrap();
}

/// kube-rs wakes only one of them.
#[tokio::test(start_paused = true)]
async fn everybody_who_waits_for_the_sync_is_woken() {
    let server = server().await;
    let maps = informer(&server);
    let handler = maps.on_event(|_| {});
    let synced = |nth| if nth % 2 == 0 { maps.synced().boxed() } else { handler.synced().boxed() };
    let waiters: Vec<_> = (0..50).map(|nth| tokio::spawn(synced(nth))).collect();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()), "it has not been started");
    maps.start();
    for waiter in waiters {
        waiter.await.unwrap().unwrap();
    }
}

/// kube-rs misses the next wake-up if the object of the last event was deleted meanwhile.
#[tokio::test(start_paused = true)]
async fn a_stream_wakes_for_every_event_even_if_its_object_is_gone_meanwhile() {
    let server = server().await;
    let maps = informer(&server);
    maps.start();
    maps.synced().await.unwrap();
    let events = maps.subscribe();
    let (send, mut received) = mpsc::unbounded_channel();
    let reader = tokio::spawn(events.take(4).for_each(move |event| {
        send.send(line(&event)).unwrap();
        std::future::ready(())
    }));
    put(&server, "default", "a", "1");
    remove(&server, "default", "a");
    put(&server, "default", "b", "1");
    put(&server, "default", "c", "1");
    let before = Instant::now();
    reader.await.unwrap();
    assert!(before.elapsed() < Duration::from_secs(1), "no timer had to wake it");
    let mut lines = Vec::new();
    while let Some(line) = received.recv().await {
        lines.push(line);
    }
    assert_eq!(lines, ["+ default/a", "- default/a Known", "+ default/b", "+ default/c"]);
}

#[tokio::test(start_paused = true)]
async fn each_handler_is_resynced_at_its_own_times_and_the_others_are_not() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).resync(Duration::from_secs(1)).build();
    let resyncs = |period: Option<u64>| {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let mut handler = maps.handler();
        if let Some(period) = period {
            handler = handler.resync(Duration::from_secs(period));
        }
        let registration = handler.on_event(move |event: Event<ConfigMap>| {
            if event.origin() == Origin::Resync {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        (registration, count)
    };
    let (as_informer, never, two, three) = (resyncs(None), resyncs(Some(0)), resyncs(Some(2)), resyncs(Some(3)));
    maps.start();
    maps.synced().await.unwrap();
    tokio::time::sleep(Duration::from_millis(12_500)).await;
    let counts = [&as_informer, &never, &two, &three].map(|(_, count)| count.load(Ordering::Relaxed));
    assert_eq!(counts, [12, 0, 6, 4]);
}

#[tokio::test(start_paused = true)]
async fn one_handler_may_be_added_many_times_and_each_receives_events() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = informer(&server);
    let recorder = Arc::new(AtomicUsize::new(0));
    let registrations: Vec<_> = (0..3)
        .map(|_| {
            let recorder = Arc::clone(&recorder);
            maps.on_event(move |_| {
                recorder.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    maps.start();
    for registration in &registrations {
        registration.synced().await.unwrap();
    }
    assert_eq!(recorder.load(Ordering::Relaxed), 3);
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
async fn resyncs_faster_than_their_handler_do_not_starve_changes() {
    let server = server().await;
    for nth in 0..5 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    for backlog in [Backlog::Latest, Backlog::Every { limit: 2, overflow: Overflow::Coalesce }, Backlog::default()] {
        let maps = Informer::<ConfigMap>::builder(client(&server)).resync(Duration::from_secs(1)).build();
        let recorder = EventRecorder::default();
        let received = recorder.clone();
        let handler = maps.handler().backlog(backlog).on_event_async(move |event| {
            let received = received.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                received.record(&event);
            }
        });
        maps.start();
        handler.synced().await.unwrap();
        for nth in 0..5 {
            put(&server, "default", &format!("m{nth}"), &nth.to_string());
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(recorder.objects(), truth(&server), "{backlog:?}");
    }
}

/// The filter has nothing to deliver, so its task has no other reason to yield.
#[tokio::test(start_paused = true)]
async fn a_filter_that_passes_nothing_lets_other_tasks_run() {
    const OBJECTS: usize = 5_000;
    let server = server().await;
    server.load((0..OBJECTS).map(|nth| config_map("default", &format!("m{nth}"), "1"))).unwrap();
    let maps = informer(&server);
    let counted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&counted);
    let test = move |_: &Obj<ConfigMap>| {
        count.fetch_add(1, Ordering::Relaxed);
        false
    };
    let mut events = maps.handler().filter(test).subscribe();
    maps.start();
    maps.synced().await.unwrap();
    while events.backlog() < OBJECTS {
        tokio::task::yield_now().await;
    }
    let filtering = tokio::spawn(async move { events.next().await.is_none() });
    let (mut longest, mut before) = (0, 0);
    while before < OBJECTS {
        tokio::task::yield_now().await;
        let now = counted.load(Ordering::Relaxed);
        longest = longest.max(now - before);
        before = now;
    }
    assert!(longest <= 256, "{longest} events at once");
    filtering.abort();
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

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_is_logged_with_the_kind_and_the_key() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = informer(&server);
    let sync = maps.on_event(|event| panic!("this test panics at {}", event.key()));
    let asynchronous = maps.handler().on_event_async(async |event| panic!("this test panics at {}", event.key()));
    let filtered = maps.handler().filter(|map| panic!("this test panics at {}", map.key())).on_event(drop);
    maps.start();
    sync.synced().await.unwrap();
    asynchronous.synced().await.unwrap();
    filtered.synced().await.unwrap();
    let mut lines = logs.take(Level::ERROR);
    lines.sort();
    let object = r#"kind="ConfigMap" key=default/a"#;
    let handler = format!("ERROR message=a handler panicked; it goes on with the next event {object}");
    let filter = format!("ERROR message=the filter of a handler panicked {object}");
    assert_eq!(lines, [handler.clone(), handler, filter]);
}

/// Called when a [`Nosy`] is dropped.
static PEEK: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// A type of the user that runs code when it is dropped.
#[derive(serde::Deserialize)]
struct Nosy {}

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(peek) = PEEK.get() {
            peek();
        }
    }
}

impl Kind for Nosy {
    fn resource() -> kube::core::ApiResource {
        ConfigMap::resource()
    }
}

#[test]
fn an_object_that_is_dropped_may_use_the_handler_whose_queue_dropped_it() {
    let (done, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = server().await;
            put(&server, "default", "a", "1");
            let maps = Informer::<Nosy>::builder(client(&server)).build();
            let gate = Arc::new(Notify::new());
            let opens = Arc::clone(&gate);
            let handler = maps.handler().backlog(Backlog::Latest).on_event_async(move |event| {
                let gate = Arc::clone(&gate);
                event.object().get().unwrap();
                async move {
                    gate.notified().await;
                    drop(event);
                }
            });
            let handler = Arc::new(handler);
            let (peeks, peeked) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&handler));
            let count = Arc::clone(&peeks);
            PEEK.get_or_init(|| {
                Box::new(move || {
                    let _backlog = peeked.backlog();
                    count.fetch_add(1, Ordering::Relaxed);
                })
            });
            maps.start();
            maps.synced().await.unwrap();
            for value in 2..20 {
                maps.wait_for(put(&server, "default", "a", &value.to_string())).await.unwrap();
            }
            remove(&server, "default", "a");
            maps.wait_until(key("default", "a"), |map| map.is_none()).await.unwrap();
            // The first state, which only the queue holds as the last one delivered.
            assert_eq!(peeks.load(Ordering::Relaxed), 0);
            opens.notify_one();
            while peeks.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            done.send(()).unwrap();
        });
    });
    waits.recv_timeout(Duration::from_secs(120)).expect("neither a deadlock nor a panic");
}
