//! Changes gathered by object.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;

use hashbrown::HashMap;

use super::backlog::Run;
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::store::{Event, FinalState, Origin};

/// For each object that changed: what the handler last heard of it, and how it is now.
///
/// Told in the order in which the objects first changed. An object that came and went unheard leaves no trace, so this never
/// holds more objects than the handler knows of and the store has.
#[derive(Debug)]
pub(super) struct Coalescer {
    entries: HashMap<ObjectKey, Entry>,
    line: BTreeMap<u64, Place>,
    /// How much is left of the resync in line.
    again: usize,
    next_place: u64,
    telling: Telling,
}

/// In whose words the difference is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// As the last change was.
    AsItHappened,
    /// As a list would show it: told with [`Origin::Relist`], deletions as missed.
    AsListed,
}

#[derive(Debug)]
struct Entry {
    place: u64,
    heard: Heard,
    /// How the object that the handler heard of ended, if it did.
    end: Option<End>,
    /// The object as it is now.
    now: Option<(Obj<Untyped>, Origin)>,
}

/// What the handler last heard of an object.
#[derive(Debug)]
enum Heard {
    Nothing,
    /// This state.
    State(Obj<Untyped>),
    /// Some state: a deletion shows the last one there was, not the last one that was told.
    Some,
}

#[derive(Debug)]
struct End {
    last: Obj<Untyped>,
    state: FinalState,
    origin: Origin,
}

#[derive(Debug)]
enum Place {
    Object(ObjectKey),
    /// Objects that had nothing gathered when this came.
    Resync(Run),
    /// Everything before this was there at the beginning.
    Synced,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// One event, or the end of an object and the beginning of its successor.
    Events(Event, Option<Event>),
    Synced,
}

impl Coalescer {
    pub(super) fn new(telling: Telling) -> Self {
        Self { entries: HashMap::new(), line: BTreeMap::new(), again: 0, next_place: 0, telling }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.again
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.entries.contains_key(key)
    }

    /// Queues a resync, behind everything that has gathered so far: in front, a short period would starve it.
    pub(super) fn resync(&mut self, run: Run) {
        let run = run.without(self);
        self.again = run.left();
        self.enter(Place::Resync(run));
    }

    pub(super) fn is_resyncing(&self) -> bool {
        self.again > 0
    }

    pub(super) fn synced(&mut self) {
        self.enter(Place::Synced);
    }

    pub(super) fn push(&mut self, event: Event) {
        let Some(entry) = self.entries.get_mut(event.key()) else { return self.begin(event) };
        match event {
            Event::Added { object, origin } => entry.now = Some((object, origin)),
            Event::Updated { new, origin, .. } => {
                let origin = entry.now.as_ref().map_or(origin, |(_, before)| stronger(*before, origin));
                entry.now = Some((new, origin));
            }
            Event::Deleted { last, state, origin } => {
                entry.now = None;
                // An end that was not told yet is the end of what the handler knows; what came after it, it never heard of.
                if matches!(entry.heard, Heard::Nothing) {
                    self.forget(last.key());
                } else if entry.end.is_none() {
                    entry.end = Some(End { last, state, origin });
                }
            }
        }
    }

    fn begin(&mut self, event: Event) {
        let key = event.key().clone();
        let (heard, end, now) = match event {
            Event::Added { object, origin } => (Heard::Nothing, None, Some((object, origin))),
            Event::Updated { old, new, origin } => (Heard::State(old), None, Some((new, origin))),
            Event::Deleted { last, state, origin } => (Heard::Some, Some(End { last, state, origin }), None),
        };
        let place = self.enter(Place::Object(key.clone()));
        self.entries.insert(key, Entry { place, heard, end, now });
    }

    /// The handler is about to be told of this object for the first time: how it is now, if it still is.
    /// Without anything gathered, as it was.
    pub(super) fn introduce(&mut self, object: Obj<Untyped>) -> Option<Obj<Untyped>> {
        match self.forget(object.key()) {
            Some(entry) => entry.now.map(|(now, _)| now),
            None => Some(object),
        }
    }

    pub(super) fn pop(&mut self) -> Option<Next> {
        loop {
            let mut first = self.line.first_entry()?;
            if let Place::Resync(run) = first.get_mut()
                && let Some(event) = run.next()
            {
                self.again -= 1;
                // What has changed since is told at its own place.
                if !self.entries.contains_key(event.key()) {
                    return Some(Next::Events(event, None));
                }
                continue;
            }
            match first.remove() {
                Place::Object(key) => {
                    let entry = self.entries.remove(&key).expect("whatever stands in line has an entry");
                    return Some(self.tell(entry));
                }
                Place::Synced => return Some(Next::Synced),
                Place::Resync(_) => {}
            }
        }
    }

    /// Whether the mark of the beginning's end was next, and is taken out.
    pub(super) fn pop_synced(&mut self) -> bool {
        let next = self.line.first_entry().filter(|first| matches!(first.get(), Place::Synced));
        next.map(OccupiedEntry::remove).is_some()
    }

    fn tell(&self, entry: Entry) -> Next {
        let origin = |origin| match (self.telling, origin) {
            (Telling::AsListed, Origin::Live | Origin::Relist) => Origin::Relist,
            (Telling::AsListed | Telling::AsItHappened, origin) => origin,
        };
        let added = |(object, why): (_, Origin)| Event::Added { object, origin: origin(why) };
        match (entry.heard, entry.end, entry.now) {
            (Heard::State(old), None, Some((new, why))) => {
                Next::Events(Event::Updated { old, new, origin: origin(why) }, None)
            }
            // It left and came back.
            (Heard::State(old), Some(_), Some((new, why))) if is_same(&old, &new) => {
                Next::Events(Event::Updated { old, new, origin: origin(why) }, None)
            }
            (_, Some(end), now) => {
                let state = match (self.telling, end.state) {
                    (Telling::AsListed, FinalState::Known) => FinalState::Missed,
                    (Telling::AsListed | Telling::AsItHappened, state) => state,
                };
                let deleted = Event::Deleted { last: end.last, state, origin: origin(end.origin) };
                Next::Events(deleted, now.map(added))
            }
            (Heard::Nothing, None, Some(now)) => Next::Events(added(now), None),
            (Heard::Some, None, _) | (_, None, None) => {
                unreachable!("an object that is gone has an end, or is forgotten")
            }
        }
    }

    fn enter(&mut self, place: Place) -> u64 {
        let at = self.next_place;
        self.next_place += 1;
        self.line.insert(at, place);
        at
    }

    fn forget(&mut self, key: &ObjectKey) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.line.remove(&entry.place);
        Some(entry)
    }
}

/// Of two reasons to tell of one object, the one that says more. What belongs to the beginning goes on belonging to it.
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
