//! Injected faults, alone and in pairs.
//!
//! After each: the cache equals the server's state, every handler received valid event sequences,
//! and the request rate stayed within the backoff.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::time::Duration;

use crate::support::{EventRecorder, cached, client, drained, key, put, remove, server, truth};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::access::Access;
use kube_embedded::faults::{Fault, FaultHandle, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::pipeline::Backlog;
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{Condition, Health, Informer, Obj, Registration, Wire};
use tokio::time::timeout;

/// Maximum time to recover from a fault.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Maximum requests per second.
const MAX_REQUESTS_PER_SECOND: usize = 6;

struct Rig {
    server: Server,
    maps: Informer<ConfigMap>,
    handlers: Vec<(Registration, EventRecorder)>,
}

impl Rig {
    /// Starts a synced informer of five objects.
    async fn new(wire: Wire) -> Self {
        let rig = Self::unsynced(wire, ReflectorSettings::default(), &[]).await;
        timeout(RECOVERY_TIMEOUT, rig.maps.synced()).await.unwrap().unwrap();
        rig
    }

    async fn unsynced(wire: Wire, settings: ReflectorSettings, rules: &[Rule]) -> Self {
        let server = server().await;
        for nth in 0..5 {
            put(&server, "default", &format!("m{nth}"), "1");
        }
        for rule in rules {
            server.faults().inject(rule.clone());
        }
        let maps = Informer::<ConfigMap>::builder(client(&server)).wire(wire).reflector(settings).seed(7).build();
        let recorded_handler = |backlog| {
            let recorder = EventRecorder::default();
            (maps.handler().backlog(backlog).on_event(recorder.handler()), recorder)
        };
        let handlers = vec![recorded_handler(Backlog::default()), recorded_handler(Backlog::Latest)];
        maps.start();
        Self { server, maps, handlers }
    }

    fn inject(&self, fault: Fault, times: u64) -> FaultHandle {
        self.server.faults().inject(Rule::new(fault).verb(Verb::Watch).times(times))
    }

    /// Changes objects, whether or not the informer can observe it.
    fn change_objects(&self) {
        put(&self.server, "default", "m0", "2");
        remove(&self.server, "default", "m1");
        put(&self.server, "default", "m1", "anew");
        remove(&self.server, "default", "m2");
        put(&self.server, "default", "m9", "1");
    }

    /// Waits for recovery, then checks cache, handlers and request rate.
    async fn converges(&self) {
        let mark = self.server.revision().to_string();
        let version = put(&self.server, "default", "done", &mark);
        let is_marked = move |map: &Obj<ConfigMap>| map.label("value") == Some(&mark);
        let done = self.maps.wait_until(key("default", "done"), move |map| map.is_some_and(&is_marked));
        timeout(RECOVERY_TIMEOUT, done).await.expect("it never gets over it").unwrap();
        // A list may contain the object before it reports the deletions.
        timeout(RECOVERY_TIMEOUT, self.maps.wait_for(version)).await.expect("it never gets over it").unwrap();
        assert_eq!(cached(&self.maps), truth(&self.server));
        for (handler, recorder) in &self.handlers {
            handler.synced().await.unwrap();
            drained(handler).await;
            assert_eq!(recorder.objects(), truth(&self.server));
        }
        let times: Vec<_> = self.server.requests().iter().map(|seen| seen.at).collect();
        for (nth, at) in times.iter().enumerate() {
            let within = times[nth..].iter().take_while(|then| then.duration_since(*at) < Duration::from_secs(1));
            let within = within.count();
            assert!(within <= MAX_REQUESTS_PER_SECOND, "{within} requests within a second");
        }
    }
}

/// Runs each test with JSON and with protobuf.
macro_rules! on_both_wires {
    ($($test:ident)*) => {
        mod json {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                super::$test(super::Wire::Json).await;
            })*
        }

        mod protobuf {
            $(#[tokio::test(start_paused = true)]
            async fn $test() {
                super::$test(super::Wire::Protobuf).await;
            })*
        }
    };
}

on_both_wires! {
    a_410_in_the_middle_of_a_paged_list
    a_cut_in_the_middle_of_a_frame_and_then_refused_connections
    a_stall_and_then_a_410
    a_streaming_list_without_its_end_and_then_429_on_the_list
    a_duplicate_event_after_a_reconnect
    a_backup_restored_during_a_cut
    a_backup_restored_and_written_to_during_a_cut
    permission_revoked_during_a_relist
    each_fault_alone_is_got_over
}

fn paged() -> ReflectorSettings {
    ReflectorSettings { streaming: Streaming::Never, page_size: Some(2), ..ReflectorSettings::default() }
}

async fn a_410_in_the_middle_of_a_paged_list(wire: Wire) {
    let rig = Rig::unsynced(wire, paged(), &[]).await;
    rig.maps.synced().await.unwrap();
    let expired = Rule::new(Fault::GoneAtOpen).verb(Verb::List).query_given("continue").once();
    let expired = rig.server.faults().inject(expired);
    // The first list is served whole from the server's watch cache; the one after a 410 is paged.
    rig.change_objects();
    rig.server.restart();
    rig.converges().await;
    assert_eq!(expired.count(), 1);
}

async fn a_cut_in_the_middle_of_a_frame_and_then_refused_connections(wire: Wire) {
    let rig = Rig::new(wire).await;
    let cut = rig.inject(Fault::CutWithinEvent(1), 1);
    rig.server.cut();
    rig.change_objects();
    tokio::time::sleep(Duration::from_secs(2)).await;
    rig.server.refuse().await;
    rig.server.cut();
    put(&rig.server, "default", "m3", "2");
    tokio::time::sleep(Duration::from_secs(100)).await;
    rig.server.accept().await;
    rig.converges().await;
    assert_eq!(cut.count(), 1);
}

async fn a_stall_and_then_a_410(wire: Wire) {
    let rig = Rig::new(wire).await;
    let stall = rig.inject(Fault::StallAfterEvents(0), 1);
    rig.server.cut();
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.change_objects();
    rig.server.compact_now();
    let gone = rig.inject(Fault::GoneAfterEvents(0), 1);
    rig.converges().await;
    assert_eq!((stall.count(), gone.count()), (1, 1));
}

async fn a_streaming_list_without_its_end_and_then_429_on_the_list(wire: Wire) {
    let endless = Rule::new(Fault::OmitInitialEventsEnd).query("sendInitialEvents", "true");
    let busy = Rule::new(Fault::TooManyRequests).verb(Verb::List).times(3);
    let rig = Rig::unsynced(wire, ReflectorSettings::default(), &[endless, busy]).await;
    timeout(RECOVERY_TIMEOUT, rig.maps.synced()).await.unwrap().unwrap();
    rig.change_objects();
    rig.converges().await;
}

async fn a_duplicate_event_after_a_reconnect(wire: Wire) {
    let rig = Rig::new(wire).await;
    let cut = rig.inject(Fault::CutAfterEvents(2), 1);
    rig.server.cut();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let duplicate = rig.inject(Fault::DuplicateAfterEvents(1), 1);
    rig.change_objects();
    rig.converges().await;
    assert_eq!((cut.count(), duplicate.count()), (1, 1));
}

async fn a_backup_restored_during_a_cut(wire: Wire) {
    let rig = Rig::new(wire).await;
    let backup = rig.server.backup();
    rig.change_objects();
    rig.maps.wait_until(key("default", "m9"), |map| map.is_some()).await.unwrap();
    for (handler, recorder) in &rig.handlers {
        drained(handler).await;
        recorder.server_may_go_back();
    }
    rig.server.refuse().await;
    rig.server.cut();
    rig.server.restore(&backup);
    tokio::time::sleep(Duration::from_secs(20)).await;
    rig.server.accept().await;
    let gone = rig.maps.wait_until(key("default", "m9"), |map| map.is_none());
    timeout(RECOVERY_TIMEOUT, gone).await.unwrap().unwrap();
    rig.converges().await;
}

/// The restored server's version is beyond that of the cache when the informer reconnects.
async fn a_backup_restored_and_written_to_during_a_cut(wire: Wire) {
    let rig = Rig::new(wire).await;
    let backup = rig.server.backup();
    rig.change_objects();
    let version = put(&rig.server, "default", "ghost", "1");
    rig.maps.wait_for(version.clone()).await.unwrap();
    for (handler, recorder) in &rig.handlers {
        drained(handler).await;
        recorder.server_may_go_back();
    }
    rig.server.refuse().await;
    rig.server.cut();
    rig.server.restore(&backup);
    for value in 0..50 {
        put(&rig.server, "default", "m0", &value.to_string());
    }
    assert!(rig.server.revision() > version.number().unwrap());
    tokio::time::sleep(Duration::from_secs(20)).await;
    rig.server.accept().await;
    let gone = rig.maps.wait_until(key("default", "ghost"), |map| map.is_none());
    timeout(RECOVERY_TIMEOUT, gone).await.expect("the lost object stays in the cache").unwrap();
    rig.converges().await;
}

async fn permission_revoked_during_a_relist(wire: Wire) {
    let rig = Rig::new(wire).await;
    rig.change_objects();
    rig.server.set_access(Access::closed());
    rig.server.restart();
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert!(matches!(rig.maps.health().condition, Condition::Degraded { .. }));
    assert!(rig.maps.is_synced());
    rig.server.set_access(Access::open());
    rig.converges().await;
}

/// Each fault of the server alone.
async fn each_fault_alone_is_got_over(wire: Wire) {
    let faults = [
        Fault::Disconnect,
        Fault::status(500),
        Fault::status(503).retry_after(3),
        Fault::status(504),
        Fault::status(400),
        Fault::TooManyRequests,
        Fault::GoneAtOpen,
        Fault::Delay(Duration::from_secs(5)),
        Fault::StallAfterBytes(100),
        Fault::StallAfterEvents(1),
        Fault::CutAfterBytes(700),
        Fault::CutAfterEvents(1),
        Fault::CutWithinEvent(1),
        Fault::EndAfterEvents(0),
        Fault::EndAfterEvents(2),
        Fault::GarbageAfterEvents(1, "}{ no frame\n".into()),
        Fault::GoneAfterEvents(1),
        Fault::OmitInitialEventsEnd,
        Fault::OmitBookmarks,
        Fault::DuplicateAfterEvents(1),
    ];
    for fault in faults {
        for times in [1, 4] {
            // From the first request on.
            let rig = Rig::unsynced(wire, ReflectorSettings::default(), &[Rule::new(fault.clone()).times(times)]).await;
            println!("{fault:?}, {times} times");
            let mut health = rig.maps.watch_health();
            drop(timeout(RECOVERY_TIMEOUT, health.wait_for(Health::is_synced)).await.expect("it never syncs"));
            rig.change_objects();
            rig.converges().await;
            // On an established watch.
            rig.inject(fault.clone(), times);
            rig.server.cut();
            put(&rig.server, "default", "m3", "3");
            tokio::time::sleep(Duration::from_secs(1)).await;
            remove(&rig.server, "default", "m3");
            rig.converges().await;
        }
    }
}
