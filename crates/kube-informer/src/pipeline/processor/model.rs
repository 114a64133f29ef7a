//! Randomized test of the queues against a model: a store that is always right, and a handler that
//! checks the events it receives.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::backlog::{Backlog, Overflow, Popped, Queue};
use crate::body::{Obj, Untyped};
use crate::store::{BatchKind, Event, EventBatch, FinalState, Origin};

const SEEDS: u64 = 4_000;
const STEPS: usize = 300;

/// The true state, and the source of events.
struct World {
    rng: Pcg64Mcg,
    version: u64,
    uids: u64,
    /// The UIDs of objects that may come back: into a filter, or with a restored backup.
    absent: BTreeMap<String, String>,
    store: BTreeMap<String, Obj<Untyped>>,
}

/// The state that a handler derives from the received events.
#[derive(Default)]
struct Listener {
    known: BTreeMap<String, Obj<Untyped>>,
    received: Vec<String>,
    synced: u32,
}

impl World {
    fn object(&mut self, name: &str, uid: &str) -> Obj<Untyped> {
        self.version += 1;
        let version = self.version;
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        Obj::from_json(json).unwrap()
    }

    /// A random change, as the event that the store would emit.
    fn change(&mut self) -> Event {
        let name = format!("o{}", self.rng.random_range(0..6));
        let origin = if self.rng.random_bool(0.2) { Origin::Relist } else { Origin::Live };
        let Some(old) = self.store.remove(&name) else {
            self.uids += 1;
            let uid = self.absent.remove(&name).unwrap_or_else(|| format!("u{}", self.uids));
            return self.add(name, &uid, origin);
        };
        let uid = old.uid().unwrap().to_string();
        if self.rng.random_bool(0.4) {
            let (last, state) = match self.rng.random_range(0..3) {
                0 => {
                    let last = self.object(&name, &uid);
                    if self.rng.random_bool(0.3) {
                        self.absent.insert(name, uid);
                    }
                    (last, FinalState::Known)
                }
                1 => (old, FinalState::Missed),
                _ => {
                    self.absent.insert(name, uid);
                    (old, FinalState::Filtered)
                }
            };
            return Event::deleted(last, state, origin);
        }
        let new = self.object(&name, &uid);
        self.store.insert(name, new.clone());
        Event::updated(old, new, origin)
    }

    fn add(&mut self, name: String, uid: &str, origin: Origin) -> Event {
        let object = self.object(&name, uid);
        self.store.insert(name, object.clone());
        Event::added(object, origin)
    }

    fn batch(&self, kind: BatchKind) -> EventBatch {
        let objects = self.store.values().map(|object| object.raw().clone()).collect();
        EventBatch::new(objects, kind)
    }

    /// New objects of a relist, as one batch.
    fn listed(&mut self) -> (Vec<Event>, EventBatch) {
        let mut objects = Vec::new();
        let mut deletions = Vec::new();
        for name in ["o0", "o3", "o5", "n1", "n2"] {
            self.absent.remove(name);
            if let Some(last) = self.store.remove(name) {
                deletions.push(Event::deleted(last, FinalState::Missed, Origin::Relist));
            }
            self.uids += 1;
            let uid = format!("u{}", self.uids);
            objects.push(self.add(name.to_owned(), &uid, Origin::Relist).object().raw().clone());
        }
        (deletions, EventBatch::new(objects.into(), BatchKind::Added(Origin::Relist)))
    }
}

impl Listener {
    fn receive(&mut self, popped: Popped) {
        let event = match popped {
            Popped::Synced => return self.synced += 1,
            Popped::Event(event) => event,
        };
        if event.origin() != Origin::Resync {
            self.received.push(line(&event));
        }
        let name = event.key().to_string();
        let known = self.known.get(&name);
        match event {
            Event::Added { object, .. } => {
                assert!(known.is_none(), "{name} is added twice");
                self.known.insert(name, object);
            }
            Event::Updated { old, new, origin } => {
                let known = known.unwrap_or_else(|| panic!("{name} is updated before it is added"));
                assert_eq!(known.uid(), new.uid(), "{name} becomes another object without a deletion");
                assert_eq!(known.version(), old.version(), "{name} is updated from a state that was not delivered");
                match origin {
                    Origin::Resync => assert_eq!(new.version(), old.version(), "a resync of {name} changes it"),
                    _ => assert!(new.version() > old.version(), "{name} goes back"),
                }
                self.known.insert(name, new);
            }
            Event::Deleted { last, .. } => {
                let known = known.unwrap_or_else(|| panic!("{name} is deleted before it is added"));
                assert_eq!(known.uid(), last.uid(), "the wrong {name} is deleted");
                self.known.remove(&name);
            }
        }
    }
}

fn line(event: &Event) -> String {
    let what = match event {
        Event::Added { .. } => "added",
        Event::Updated { .. } => "updated",
        Event::Deleted { .. } => "deleted",
    };
    format!("{what} {} {}", event.key(), event.object().version())
}

fn policy(rng: &mut Pcg64Mcg) -> Backlog {
    let limit = rng.random_range(0..12);
    match rng.random_range(0..4) {
        0 => Backlog::Latest,
        1 => Backlog::Every { limit, overflow: Overflow::Coalesce },
        2 => Backlog::Every { limit, overflow: Overflow::Replay },
        _ => Backlog::Every { limit: usize::MAX, overflow: Overflow::Coalesce },
    }
}

#[test]
fn whatever_the_backlog_each_object_has_one_addition_ordered_updates_and_one_deletion_and_ends_at_the_truth() {
    for seed in 0..SEEDS {
        let result = std::panic::catch_unwind(|| run(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// Records what is pushed into a queue.
struct Feed {
    queue: Queue,
    every: Vec<String>,
}

impl Feed {
    fn event(&mut self, event: Event) {
        self.every.push(line(&event));
        self.queue.push(event);
    }

    fn push_batch(&mut self, batch: EventBatch) {
        // A resync may be skipped.
        self.every.extend(batch.clone().filter(|event| event.origin() != Origin::Resync).map(|event| line(&event)));
        self.queue.push_batch(batch);
    }
}

fn run(seed: u64) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let policy = policy(&mut rng);
    let mut world = World { rng, version: 0, uids: 0, absent: BTreeMap::new(), store: BTreeMap::new() };
    let mut feed = Feed { queue: Queue::new(policy), every: Vec::new() };
    let mut listener = Listener::default();
    for _ in 0..world.rng.random_range(0..8) {
        drop(world.change());
    }
    // A handler added late: the current state, then the sync marker.
    feed.push_batch(world.batch(BatchKind::Added(Origin::Initial)));
    feed.queue.push_synced();
    let eagerness = world.rng.random_range(0.05..0.95);
    for _ in 0..STEPS {
        if world.rng.random_bool(eagerness) {
            match feed.queue.pop() {
                Some(popped) => listener.receive(popped),
                None => assert_eq!(feed.queue.len(), 0, "something waits that does not come"),
            }
            continue;
        }
        match world.rng.random_range(0..40) {
            0 => feed.push_batch(world.batch(BatchKind::Resync)),
            1 => {
                let (deletions, added) = world.listed();
                deletions.into_iter().for_each(|event| feed.event(event));
                feed.push_batch(added);
            }
            _ => feed.event(world.change()),
        }
        let waits = feed.queue.len();
        assert!(waits <= bound(policy, &world, &listener), "more waits than may: {waits}");
    }
    while let Some(popped) = feed.queue.pop() {
        listener.receive(popped);
    }
    assert_eq!(feed.queue.len(), 0);
    assert_eq!(listener.synced, 1, "the beginning ends once");
    let versions = |objects: &BTreeMap<String, Obj<Untyped>>| -> Vec<(String, String)> {
        objects.iter().map(|(name, object)| (name.clone(), object.version().to_string())).collect()
    };
    assert_eq!(versions(&listener.known), versions(&world.store), "the delivered state differs from the store");
    if feed.queue.overflows() == 0 && policy != Backlog::Latest {
        assert_eq!(listener.received, feed.every, "without an overflow every event is delivered, in order");
    }
}

/// The upper bound of the queue length: the limit, the objects known to the handler or in the
/// store, and those delivered together.
fn bound(policy: Backlog, world: &World, listener: &Listener) -> usize {
    let objects = world.store.len() + listener.known.len();
    match policy {
        Backlog::Every { limit: usize::MAX, .. } => usize::MAX,
        Backlog::Every { limit, .. } => limit + 3 * objects + 8,
        Backlog::Latest => 3 * objects + 8,
    }
}
