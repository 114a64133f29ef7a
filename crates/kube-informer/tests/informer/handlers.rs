//! Handlers and subscriptions: added, filtered, slow, resynced.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{EventRecorder, client, config_map, drained, line, put, remove, server, truth};
use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::Server;
use kube_informer::pipeline::{Backlog, Overflow};
use kube_informer::store::MAX_BATCH;
use kube_informer::{Event, Informer, Obj, Origin, Registration};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

pub(crate) fn informer(server: &Server) -> Informer<ConfigMap> {
    Informer::builder(client(server)).build()
}

/// A handler that processes one event per notification of its gate.
pub(crate) struct GatedHandler {
    pub(crate) registration: Registration,
    pub(crate) recorder: EventRecorder,
    pub(crate) gate: Arc<Notify>,
}

pub(crate) fn gated_handler(maps: &Informer<ConfigMap>, backlog: Backlog) -> GatedHandler {
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
