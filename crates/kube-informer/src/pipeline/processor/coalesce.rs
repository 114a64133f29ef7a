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
    pub(super) fn resync(&mut self, batch: EventBatch) {
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

    pub(super) fn push(&mut self, event: Event) {
        let Some(entry) = self.entries.get_mut(event.key()) else { return self.add_entry(event) };
        match event {
            Event::Added { object, origin } => entry.now = Some((object, origin)),
            Event::Updated { new, origin, .. } => {
                let origin = entry.now.as_ref().map_or(origin, |(_, before)| stronger(*before, origin));
                entry.now = Some((new, origin));
            }
            Event::Deleted { last, state, origin } => {
                entry.now = None;
                // A pending deletion is that of the object the handler knows; any successor was
                // never delivered.
                if matches!(entry.last_delivered, LastDelivered::Nothing) {
                    self.remove_entry(last.key());
                } else if entry.end.is_none() {
                    entry.end = Some(End { last, state, origin });
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
    pub(super) fn introduce(&mut self, object: Obj<Untyped>) -> Option<Obj<Untyped>> {
        match self.remove_entry(object.key()) {
            Some(entry) => entry.now.map(|(now, _)| now),
            None => Some(object),
        }
    }

    pub(super) fn pop(&mut self) -> Option<NextEvents> {
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
                continue;
            }
            match first.remove() {
                QueueItem::Object(key) => {
                    let entry = self.entries.remove(&key).expect("whatever stands in line has an entry");
                    return Some(self.events_of(entry));
                }
                QueueItem::Synced => return Some(NextEvents::Synced),
                QueueItem::Resync(_) => {}
            }
        }
    }

    /// Removes the sync marker if it is the next item; returns whether it was.
    pub(super) fn pop_synced(&mut self) -> bool {
        let next = self.queue.first_entry().filter(|first| matches!(first.get(), QueueItem::Synced));
        next.map(OccupiedEntry::remove).is_some()
    }

    fn events_of(&self, entry: ObjectChange) -> NextEvents {
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
            (LastDelivered::State(old), Some(_), Some((new, why))) if is_same(&old, &new) => {
                NextEvents::Events(Event::Updated { old, new, origin: origin(why) }, None)
            }
            (_, Some(end), now) => {
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
