//! Explores thread schedules of the controller, its queue and the mailboxes with shuttle.
//!
//! The reflectors' side of the queue is played by threads. A schedule in which all threads are
//! blocked is a deadlock, which shuttle reports with a seed to replay it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;

use futures_util::FutureExt as _;
use shuttle::future::block_on;
use shuttle::scheduler::RandomScheduler;
use shuttle::thread::{self, JoinHandle};
use tokio::time::Instant;

use super::inbox::Slot;
use super::{Clock, Controller, ControllerShared, MaintenanceMode, Parts};
use crate::body::{BodyEncoder, BodyEncoderSettings, Keep, Obj, Untyped};
use crate::object::Version;
use crate::pipeline::health::Condition;
use crate::pipeline::processor::{
    Backlog, CheckPeriod, Completeness, Mailbox, NewHandler, Processor, ResyncChoice, Settle, Stage,
};
use crate::pipeline::{DeltaFifo, DeltaFifoBounds, Discipline};
use crate::reflector::DeltaSink as _;
use crate::store::{BatchKind, EventBatch, Notification, Origin};
use crate::store::{Delta, EventOrder, History, Ingest, Relist, Store, WatchScope};

const SCHEDULES: usize = 500;
/// A debug build of the controller needs more than shuttle's default.
const STACK: usize = 1 << 20;

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = STACK;
    shuttle::Runner::new(RandomScheduler::new(SCHEDULES), config).run(scenario);
}

fn join<T>(threads: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn object(name: &str, version: u64) -> Obj<Untyped> {
    let json = format!(
        r#"{{"kind":"Thing","apiVersion":"v1","metadata":{{"name":"{name}","uid":"{name}","resourceVersion":"{version}"}}}}"#
    );
    Obj::from_json(json).unwrap()
}

/// A list of `a` and `b`, then changes, the last of which adds `z`.
fn history() -> Vec<Delta> {
    let scope = WatchScope::Everything;
    vec![
        Delta::RelistBegun(Relist { scope: scope.clone(), history: History::Continues }),
        Delta::Listed(object("a", 1)),
        Delta::Listed(object("b", 2)),
        Delta::RelistEnded { scope, version: Version::from(2) },
        Delta::Changed(object("a", 3)),
        Delta::Deleted(object("b", 4)),
        Delta::Changed(object("z", 5)),
    ]
}

/// A controller whose scopes have no reflectors, with room for two deltas.
fn controller() -> (Controller, Arc<ControllerShared>) {
    let shared = Arc::new(ControllerShared::new("things".into(), Vec::new(), None));
    let store = Store::seeded(Ingest::default(), 1);
    let bounds = DeltaFifoBounds { deltas: 2, ..DeltaFifoBounds::default() };
    let settings = BodyEncoderSettings { keep: Keep::Plain, ..BodyEncoderSettings::default() };
    let parts = Parts {
        store,
        fifo: DeltaFifo::new(Discipline::Ordered, bounds, |_| false),
        encoder: BodyEncoder::new(settings),
        clock: Clock::default(),
        mode: MaintenanceMode::Inline,
        decode_ahead: None,
        check: CheckPeriod::new(None),
        reflect: Box::new(|_| unreachable!("there are no scopes")),
        reporter: None,
        span: tracing::Span::none(),
    };
    (Controller::new(Arc::clone(&shared), parts), shared)
}

fn run(controller: Controller, shared: &ControllerShared) -> JoinHandle<()> {
    let alive = shared.alive();
    thread::spawn(move || block_on(controller.run(alive)))
}

fn producer(mut slot: Slot, deltas: Vec<Delta>) -> JoinHandle<()> {
    thread::spawn(move || {
        block_on(async {
            for delta in deltas {
                slot.accept(delta).await.unwrap();
            }
        });
    })
}

fn mailbox() -> Arc<Mailbox> {
    Arc::new(Mailbox::new(Backlog::default(), Settle::OnReturn))
}

fn admit(shared: &ControllerShared, mailbox: &Arc<Mailbox>) {
    shared.admit(NewHandler { mailbox: Arc::clone(mailbox), resync: ResyncChoice::Never });
}

/// Takes events until `z` is added or the mailbox is closed; returns the names of the objects that
/// the events leave.
fn take(mailbox: &Mailbox) -> Vec<String> {
    let mut order = EventOrder::default();
    block_on(async {
        while let Some(event) = poll_fn(|cx| mailbox.poll_take(cx)).await {
            order.check(&event).unwrap();
            if event.key().name() == "z" {
                break;
            }
        }
    });
    let mut names: Vec<String> = order.objects().map(|(key, _)| key.to_string()).collect();
    names.sort();
    names
}

/// Takes events until the mailbox is closed.
fn drain(mailbox: &Mailbox) {
    block_on(async { while poll_fn(|cx| mailbox.poll_take(cx)).await.is_some() {} });
}

#[test]
fn a_handler_that_is_added_at_any_time_receives_every_object_once_and_every_later_change() {
    check(|| {
        let (controller, shared) = controller();
        let slot = controller.slot();
        let running = run(controller, &shared);
        let producing = producer(slot, history());
        let handlers = [0, 1].map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mailbox = mailbox();
                admit(&shared, &mailbox);
                let names = take(&mailbox);
                mailbox.end();
                names
            })
        });
        assert_eq!(join(handlers), [["a", "z"], ["a", "z"]]);
        join([producing]);
        shared.stop();
        join([running]);
    });
}

#[test]
fn every_delta_passes_a_queue_that_is_always_full() {
    check(|| {
        let (controller, shared) = controller();
        let one = (1..5).map(|nth| Delta::Changed(object(&format!("one-{nth}"), nth)));
        let other = (1..5).map(|nth| Delta::Changed(object(&format!("other-{nth}"), nth)));
        let producers = [producer(controller.slot(), one.collect()), producer(controller.slot(), other.collect())];
        let reader = controller.store.reader();
        let running = run(controller, &shared);
        join(producers);
        while reader.state().len() < 8 {
            thread::yield_now();
        }
        shared.stop();
        join([running]);
    });
}

#[test]
fn a_stop_at_any_time_ends_everything_that_waits() {
    check(|| {
        let (controller, shared) = controller();
        let mut slot = controller.slot();
        let running = run(controller, &shared);
        let handlers = [0, 1].map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mailbox = mailbox();
                admit(&shared, &mailbox);
                drain(&mailbox);
                mailbox.end();
            })
        });
        let (mut progress, mut health) = (shared.progress(), shared.watch_health());
        let waiting = thread::spawn(move || {
            block_on(async {
                drop(progress.wait_for(|progress| progress.stopped).await.unwrap());
                drop(health.wait_for(|health| matches!(health.condition, Condition::Stopped)).await.unwrap());
            });
        });
        let stopping = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.stop();
                block_on(shared.all_ended());
                assert!(shared.has_ended() && shared.has_stopped());
            })
        };
        // It does not wait for room, which there may never be again.
        let producing = thread::spawn(move || {
            history().into_iter().all(|delta| slot.accept(delta).now_or_never().is_some());
        });
        join([running, waiting, stopping, producing]);
        join(handlers);
    });
}

#[test]
fn health_can_be_read_and_scopes_can_be_set_while_they_change() {
    check(|| {
        let (controller, shared) = controller();
        let running = run(controller, &shared);
        let readers = [0, 1].map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for _ in 0..3 {
                    let health = shared.health();
                    assert!(!health.is_synced() || !matches!(health.condition, Condition::Idle));
                    shared.is_complete();
                }
            })
        });
        let changing = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for _ in 0..3 {
                    shared.note_status_change();
                    shared.publish_health();
                }
                shared.stop();
            })
        };
        join(readers);
        join([changing, running]);
        assert!(matches!(shared.health().condition, Condition::Stopped));
    });
}

fn notifications(deltas: Vec<Delta>) -> VecDeque<Notification> {
    let mut store = Store::seeded(Ingest::default(), 1);
    deltas.into_iter().flat_map(|delta| store.apply([delta]).into_notifications()).collect()
}

#[test]
fn a_mailbox_settles_once_its_taker_has_taken_the_initial_state_and_ends_whenever_it_is_closed() {
    check(|| {
        let mailbox = mailbox();
        let taker = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                drain(&mailbox);
                mailbox.end();
            })
        };
        let mut stage = mailbox.stage();
        let synced = thread::spawn(move || {
            block_on(async {
                let stage = *stage.wait_for(|stage| *stage != Stage::Initial).await.unwrap();
                assert!(matches!(stage, Stage::Synced | Stage::Ended));
            });
        });
        let filler = {
            let mailbox = Arc::clone(&mailbox);
            thread::spawn(move || {
                let now = Instant::now();
                let mut processor = Processor::new(CheckPeriod::new(None));
                let new_handler = NewHandler { mailbox, resync: ResyncChoice::Never };
                processor.admit(
                    new_handler,
                    EventBatch::new(Arc::from([]), BatchKind::Added(Origin::Initial)),
                    Completeness::Listing,
                    now,
                );
                for notification in notifications(history()) {
                    processor.deliver([notification].into(), now);
                    processor.complete(now);
                }
                processor.close();
            })
        };
        let mut ended = mailbox.stage();
        let removing = thread::spawn(move || {
            mailbox.close();
            block_on(async { drop(ended.wait_for(|stage| *stage == Stage::Ended).await.unwrap()) });
        });
        join([taker, synced, filler, removing]);
    });
}
