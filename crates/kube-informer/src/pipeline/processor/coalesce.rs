//! Coalescing of events by object.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;

use hashbrown::HashMap;

use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::store::{Event, EventBatch, FinalState, Origin};

/// For each changed object: the state last delivered to the handler, and the current state.
///
/// Objects are delivered in the order of their first change. An object that was added and deleted
/// before its delivery leaves no entry, so there are never more entries than objects known to the
/// handler plus objects in the store.
#[derive(Debug)]
pub(super) struct Coalescer {
    entries: HashMap<ObjectKey, ObjectChange>,
    queue: BTreeMap<u64, QueueItem>,
    /// How many objects of the queued resync are left.
    resync_left: usize,
    next_position: u64,
    mode: CoalesceMode,
}

/// Which origin the delivered events have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoalesceMode {
    /// The origin of the last change.
    LastChange,
    /// As after a relist: with [`Origin::Relist`], and deletions as missed.
    AsRelist,
}

#[derive(Debug)]
struct ObjectChange {
    position: u64,
    last_delivered: LastDelivered,
    /// The deletion of the object that the handler knows, if it was deleted.
    end: Option<End>,
    /// The current object.
    now: Option<(Obj<Untyped>, Origin)>,
}

/// The state of an object that was last delivered to the handler.
#[derive(Debug)]
enum LastDelivered {
    Nothing,
    /// This state.
    State(Obj<Untyped>),
    /// Unknown: a deletion carries the last state of the object, not the last delivered one.
    Unknown,
}

#[derive(Debug)]
struct End {
    last: Obj<Untyped>,
    state: FinalState,
    origin: Origin,
}

#[derive(Debug)]
enum QueueItem {
    Object(ObjectKey),
    /// Objects that had no coalesced events when the resync was queued.
    Resync(EventBatch),
    /// The sync marker: every item before it is initial.
    Synced,
}

/// What a queue no longer holds. It is dropped when the queue's lock has been released, because a
/// decoded body is the user's type.
#[derive(Debug, Default)]
pub(super) struct Discarded {
    objects: Vec<Obj<Untyped>>,
    batches: Vec<EventBatch>,
}

impl Discarded {
    pub(super) fn batch(&mut self, batch: EventBatch) {
        self.batches.push(batch);
    }

    fn object(&mut self, object: impl IntoIterator<Item = Obj<Untyped>>) {
        self.objects.extend(object);
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Added { object, .. } | Event::Deleted { last: object, .. } => self.objects.push(object),
            Event::Updated { old, new, .. } => self.objects.extend([old, new]),
        }
    }

    fn change(&mut self, change: ObjectChange) {
        let ObjectChange { last_delivered, end, now, position: _ } = change;
        self.last_delivered(last_delivered);
        self.object(end.map(|end| end.last));
        self.object(now.map(|(now, _)| now));
    }

    fn last_delivered(&mut self, last_delivered: LastDelivered) {
        if let LastDelivered::State(state) = last_delivered {
            self.objects.push(state);
        }
    }
}

/// The next item to deliver.
#[derive(Debug)]
pub(super) enum NextEvents {
    /// One event, or the deletion of an object and the addition of its successor.
    Events(Event, Option<Event>),
    Synced,
}

impl Coalescer {
    pub(super) fn new(mode: CoalesceMode) -> Self {
        Self { entries: HashMap::new(), queue: BTreeMap::new(), resync_left: 0, next_position: 0, mode }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.resync_left
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.entries.contains_key(key)
    }

    /// Queues a resync behind everything coalesced so far. At the front, a short resync period
    /// would starve the other items.
    pub(super) fn resync(&mut self, batch: EventBatch, discarded: &mut Discarded) {
        discarded.batch(batch.clone());
        let batch = batch.without(|key| self.has(key));
        self.resync_left = batch.len();
        self.enqueue(QueueItem::Resync(batch));
    }

    pub(super) fn is_resyncing(&self) -> bool {
        self.resync_left > 0
    }

    pub(super) fn synced(&mut self) {
        self.enqueue(QueueItem::Synced);
    }

    pub(super) fn push(&mut self, event: Event, discarded: &mut Discarded) {
        let Some(entry) = self.entries.get_mut(event.key()) else { return self.add_entry(event) };
        let before = entry.now.take();
        let origin_before = before.as_ref().map(|(_, origin)| *origin);
        discarded.object(before.map(|(object, _)| object));
        match event {
            Event::Added { object, origin } => entry.now = Some((object, origin)),
            Event::Updated { old, new, origin } => {
                discarded.object([old]);
                entry.now = Some((new, origin_before.map_or(origin, |before| stronger(before, origin))));
            }
            Event::Deleted { last, state, origin } => {
                // A pending deletion is that of the object the handler knows; any successor was
                // never delivered.
                if matches!(entry.last_delivered, LastDelivered::Nothing) {
                    self.remove_entry(last.key());
                    discarded.object([last]);
                } else if entry.end.is_none() {
                    entry.end = Some(End { last, state, origin });
                } else {
                    discarded.object([last]);
                }
            }
        }
    }

    fn add_entry(&mut self, event: Event) {
        let key = event.key().clone();
        let (last_delivered, end, now) = match event {
            Event::Added { object, origin } => (LastDelivered::Nothing, None, Some((object, origin))),
            Event::Updated { old, new, origin } => (LastDelivered::State(old), None, Some((new, origin))),
            Event::Deleted { last, state, origin } => (LastDelivered::Unknown, Some(End { last, state, origin }), None),
        };
        let position = self.enqueue(QueueItem::Object(key.clone()));
        self.entries.insert(key, ObjectChange { position, last_delivered, end, now });
    }

    /// Called when an object is about to be delivered for the first time: returns its current
    /// state, or `None` if it has been deleted. Without coalesced events, that is `object`.
    pub(super) fn introduce(&mut self, object: Obj<Untyped>, discarded: &mut Discarded) -> Option<Obj<Untyped>> {
        let Some(mut entry) = self.remove_entry(object.key()) else { return Some(object) };
        let now = entry.now.take().map(|(now, _)| now);
        discarded.object([object]);
        discarded.change(entry);
        now
    }

    pub(super) fn pop(&mut self, discarded: &mut Discarded) -> Option<NextEvents> {
        loop {
            let mut first = self.queue.first_entry()?;
            if let QueueItem::Resync(batch) = first.get_mut()
                && let Some(event) = batch.next()
            {
                self.resync_left -= 1;
                // An object that has changed since is delivered at its own position.
                if !self.entries.contains_key(event.key()) {
                    return Some(NextEvents::Events(event, None));
                }
                discarded.event(event);
                continue;
            }
            match first.remove() {
                QueueItem::Object(key) => {
                    let entry = self.entries.remove(&key).expect("whatever stands in line has an entry");
                    return Some(self.events_of(entry, discarded));
                }
                QueueItem::Synced => return Some(NextEvents::Synced),
                QueueItem::Resync(batch) => discarded.batch(batch),
            }
        }
    }

    /// Removes the sync marker if it is the next item; returns whether it was.
    pub(super) fn pop_synced(&mut self) -> bool {
        let next = self.queue.first_entry().filter(|first| matches!(first.get(), QueueItem::Synced));
        next.map(OccupiedEntry::remove).is_some()
    }

    fn events_of(&self, entry: ObjectChange, discarded: &mut Discarded) -> NextEvents {
        let origin = |origin| match (self.mode, origin) {
            (CoalesceMode::AsRelist, Origin::Live | Origin::Relist) => Origin::Relist,
            (CoalesceMode::AsRelist | CoalesceMode::LastChange, origin) => origin,
        };
        let added = |(object, why): (_, Origin)| Event::Added { object, origin: origin(why) };
        match (entry.last_delivered, entry.end, entry.now) {
            (LastDelivered::State(old), None, Some((new, why))) => {
                NextEvents::Events(Event::Updated { old, new, origin: origin(why) }, None)
            }
            // Left and came back: the same UID.
            (LastDelivered::State(old), Some(end), Some((new, why))) if is_same(&old, &new) => {
                discarded.object([end.last]);
                NextEvents::Events(Event::Updated { old, new, origin: origin(why) }, None)
            }
            (last_delivered, Some(end), now) => {
                discarded.last_delivered(last_delivered);
                let state = match (self.mode, end.state) {
                    (CoalesceMode::AsRelist, FinalState::Known) => FinalState::Missed,
                    (CoalesceMode::AsRelist | CoalesceMode::LastChange, state) => state,
                };
                let deleted = Event::Deleted { last: end.last, state, origin: origin(end.origin) };
                NextEvents::Events(deleted, now.map(added))
            }
            (LastDelivered::Nothing, None, Some(now)) => NextEvents::Events(added(now), None),
            (LastDelivered::Unknown, None, _) | (_, None, None) => {
                unreachable!("an object that is gone has an end, or is forgotten")
            }
        }
    }

    fn enqueue(&mut self, item: QueueItem) -> u64 {
        let at = self.next_position;
        self.next_position += 1;
        self.queue.insert(at, item);
        at
    }

    fn remove_entry(&mut self, key: &ObjectKey) -> Option<ObjectChange> {
        let entry = self.entries.remove(key)?;
        self.queue.remove(&entry.position);
        Some(entry)
    }
}

/// The more significant of two origins of one object. `Initial` ranks highest: an initial object
/// stays initial.
fn stronger(before: Origin, now: Origin) -> Origin {
    let rank = |origin| match origin {
        Origin::Initial => 3,
        Origin::Live => 2,
        Origin::Relist => 1,
        Origin::Resync => 0,
    };
    if rank(before) >= rank(now) { before } else { now }
}

fn is_same(one: &Obj<Untyped>, other: &Obj<Untyped>) -> bool {
    one.uid().is_some() && one.uid() == other.uid()
}
