//! The fold: deltas in, events out, and the state that readers see.

use std::iter::repeat;
use std::sync::Arc;

use foldhash::SharedSeed;
use hashbrown::HashSet;

pub use self::delta::{Delta, History, Relist, WatchScope};
pub use self::event::{Event, FinalState, Origin};
pub use self::events::Events;
pub use self::ingest::{Ingest, Verdict};
pub use self::reader::Reader;
pub use self::reclaim::ReclaimStatus;

pub(crate) use self::hamt::Hamt;
pub(crate) use self::ingest::guarded;
pub(crate) use self::label_bloom::BloomQuery;
pub(crate) use self::state::{Hashing, SlotRef, StoreEntry, StoreState};

use self::double_buffer::DoubleBuffer;
use self::index_build::IndexBuild;
use self::index_table::AnyTable;
use self::label_sets::LabelSets;
use self::listing::Listing;
use self::prefetch::look_ahead;
use self::progress::{Progress, is_older};
use self::reader::Shared;
use self::reclaim::Reclaimer;
use self::sabotage::Sabotage;
use self::slots::Slots;
use self::state::KeyHashes;
use self::tombstones::Tombstones;
use crate::body::Arrival;
use crate::body::{Obj, Raw, Untyped};
use crate::object::ObjectKey;
use crate::object::Version;
use crate::pipeline::processor::{BatchKind, Run};

#[doc(hidden)]
pub mod delta;
mod double_buffer;
pub(crate) mod event;
mod events;
mod hamt;
mod index_build;
pub(crate) mod index_table;
mod ingest;
mod label_bloom;
mod label_sets;
mod listing;
#[cfg(test)]
mod model;
mod prefetch;
mod progress;
mod reader;
mod reclaim;
mod sabotage;
mod slots;
mod state;
mod tombstones;

/// The store, for its one writer. Everybody else has a [`Reader`].
///
/// [`apply`](Self::apply) is all there is to it: it folds deltas into a state, lets readers see that state, and only then hands
/// out the events. What the fold promises:
///
/// - Added or updated is decided by what is in the store, never by what the watch called it.
/// - One story for each object: added, updated with versions that never go back, deleted. The same key with a new uid is a new
///   object: the old one is deleted ([`FinalState::Missed`]), the new one added.
/// - What was heard before is not heard again: an object of the version that is in the store, or of an older one, changes nothing.
///   Only a server that went back may bring older versions: in a list that says so ([`History::WentBack`]), or in one that is complete
///   and not older than what it contradicts.
/// - A list is compared as it comes in, so there are never two copies of the cache. Changes are told at once. New objects can be
///   read at once, but are told only when the list is complete and the deletions it showed have been told. The version moves then.
/// - A list that is broken off and begun again, or abandoned, leaves nothing untold and deletes nothing.
/// - An object that the [`Ingest`] leaves out was never there; one that was in the store is deleted, as [`FinalState::Filtered`].
#[derive(Debug)]
#[doc(alias = "ThreadSafeStore")]
#[doc(alias = "Indexer")]
pub struct Store {
    shared: Arc<Shared>,
    /// Within `apply` ahead of what readers see.
    state: DoubleBuffer,
    retired: Reclaimer,
    slots: Slots,
    label_sets: LabelSets,
    tables: Vec<(usize, Box<dyn AnyTable>)>,
    /// Those that readers do not see yet.
    building: Vec<IndexBuild>,
    scopes: Progress,
    listings: Vec<Listing>,
    departed: Tombstones,
    door: Ingest,
    #[cfg(test)]
    sabotage: Option<Sabotage>,
}

impl Default for Store {
    fn default() -> Self {
        Self::new(Ingest::default())
    }
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new(door: Ingest) -> Self {
        Self::hashed(door, Hashing::random())
    }

    /// An empty store in which the order of objects depends on nothing but their keys and this seed.
    #[must_use]
    pub fn seeded(door: Ingest, seed: u64) -> Self {
        Self::hashed(door, Hashing::with_seed(seed, SharedSeed::global_fixed()))
    }

    fn hashed(door: Ingest, hashing: Hashing) -> Self {
        let state = StoreState::new(hashing);
        Self {
            shared: Arc::new(Shared::new(state.clone())),
            retired: Reclaimer::default(),
            slots: Slots::default(),
            label_sets: LabelSets::new(state.hashing().clone()),
            state: DoubleBuffer::new(state),
            tables: Vec::new(),
            building: Vec::new(),
            scopes: Progress::default(),
            listings: Vec::new(),
            departed: Tombstones::default(),
            door,
            #[cfg(test)]
            sabotage: None,
        }
    }

    /// A reader of this store.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shared))
    }

    /// Whether this scope has been listed completely.
    #[must_use]
    pub fn is_complete(&self, scope: &WatchScope) -> bool {
        self.scopes.is_complete(scope)
    }

    /// Everything that has been told of so far: what a handler that comes late has to hear first.
    pub(crate) fn present(&self) -> Run {
        let told = |entry: &&StoreEntry| !self.listings.iter().any(|listing| listing.is_untold(entry.slot));
        let objects = self.state.iter().filter(told).map(|entry| Arc::clone(&entry.raw)).collect();
        Run::new(objects, BatchKind::Added(Origin::Initial))
    }

    /// Applies deltas in order, builds a little of the indexes that were asked for, lets readers see the result, and says what to tell.
    pub fn apply(&mut self, deltas: impl IntoIterator<Item = Delta>) -> Events {
        self.state.catch_up();
        self.adopt_tables();
        let mut deltas = deltas.into_iter();
        let mut events = Events::with_room(deltas.size_hint().0);
        if self.is_sabotaged(Sabotage::EventBeforeStore) {
            self.publish();
        }
        loop {
            let next: Vec<Delta> = deltas.by_ref().take(LOOKED_AT_AHEAD).collect();
            if next.is_empty() {
                break;
            }
            self.fold_all(next, &mut events);
        }
        self.build_tables();
        if !self.is_sabotaged(Sabotage::EventBeforeStore) {
            self.publish();
        }
        events
    }

    /// Whether an index is not built yet: each [`apply`](Self::apply) builds a little, also one of nothing.
    #[must_use]
    pub fn is_building(&self) -> bool {
        !self.building.is_empty()
    }

    /// Makes ready for the next [`apply`](Self::apply), and frees a little of what readers have let go of. To be called when the
    /// events have been told and nothing else is to be done, and again later as long as there are [`ReclaimStatus`].
    pub fn tidy(&mut self) -> ReclaimStatus {
        self.state.catch_up();
        self.retired.tidy()
    }

    fn fold_all(&mut self, deltas: Vec<Delta>, events: &mut Events) {
        let mut spots = Vec::new();
        if deltas.len() > 1 {
            spots.extend(deltas.iter().map(|delta| Some(self.state.spot(delta.key()?))));
            look_ahead(&self.state.spaces, spots.iter().copied().flatten());
        }
        for (delta, spot) in deltas.into_iter().zip(spots.into_iter().chain(repeat(None))) {
            self.fold(delta, spot, events);
        }
    }

    /// The spot is that of its key, if it has been made already.
    fn fold(&mut self, delta: Delta, spot: Option<KeyHashes>, events: &mut Events) {
        let at = |object: &Obj<Untyped>| spot.unwrap_or_else(|| self.state.spot(object.key()));
        match delta {
            Delta::Changed(object) => self.changed(at(&object), object, events),
            Delta::Deleted(object) => self.deleted(at(&object), object, events),
            Delta::RelistBegun(relist) => self.relist_begun(relist),
            Delta::Listed(object) => self.listed(at(&object), object, events),
            Delta::RelistEnded { scope, version } => self.relist_ended(&scope, &version, events),
            Delta::RelistAbandoned(scope) => self.relist_abandoned(&scope, events),
            Delta::ScopeLeft(scope) => self.scope_left(&scope, events),
            Delta::Resync { except } => self.resync(except, events),
            Delta::Bookmark { scope, version } => self.scopes.reached(&scope, &version),
        }
    }

    fn changed(&mut self, spot: KeyHashes, object: Obj<Untyped>, events: &mut Events) {
        self.scopes.heard_of(object.key(), object.version());
        self.undoubt(object.key());
        let held = self.state.get_at(spot, object.key());
        let stale = held.map_or_else(|| self.departed.old_news(&object).is_some(), |held| is_heard(&object, &held.raw));
        if stale {
            return;
        }
        let held = held.cloned();
        match self.door.admit(object, Arrival::Changed(0)) {
            Ok(object) => {
                let (slot, before) = self.put(&object, spot, held, Origin::Live, events);
                if matches!(before, Before::Untold) {
                    for listing in &mut self.listings {
                        listing.take_untold(slot);
                    }
                }
                events.one(match before {
                    Before::Told(old) => Event::Updated { old, new: object, origin: Origin::Live },
                    Before::Nothing | Before::Untold => Event::Added { object, origin: Origin::Live },
                });
            }
            Err(object) => self.filtered(&object, Origin::Live, events),
        }
    }

    fn deleted(&mut self, spot: KeyHashes, object: Obj<Untyped>, events: &mut Events) {
        self.scopes.heard_of(object.key(), object.version());
        self.undoubt(object.key());
        // Not even noted if it was never here: a keyed queue would not have brought it, and both are to tell the same.
        let Some(held) = self.state.get_at(spot, object.key()) else { return };
        if is_older(object.version(), &held.raw.meta().version) {
            return;
        }
        let same = is_same(&object, &held.raw);
        let Some((last, told)) = self.take(spot, object.key()) else { return };
        self.departed.note(object.key(), object.uid(), object.version());
        self.departed.note(last.key(), last.uid(), object.version());
        if !told || self.is_sabotaged(Sabotage::LostTombstone) {
            return;
        }
        // Of another object under this name the end of the one that was held is not known.
        let known = same.then(|| self.door.transformed(object, Arrival::Changed(0))).flatten();
        let state = if same { FinalState::Known } else { FinalState::Missed };
        events.one(Event::Deleted { last: known.unwrap_or(last), state, origin: Origin::Live });
    }

    fn relist_begun(&mut self, relist: Relist) {
        if relist.history == History::WentBack {
            self.departed.clear();
        }
        match self.listings.iter_mut().find(|listing| listing.relist.scope == relist.scope) {
            Some(listing) => listing.restart(relist, self.departed.count()),
            None => {
                let first = !self.scopes.is_complete(&relist.scope);
                let origin = if first { Origin::Initial } else { Origin::Relist };
                self.listings.push(Listing::new(relist, origin, self.departed.count()));
            }
        }
        if let [_] = self.listings.as_slice() {
            self.slots.release();
        }
    }

    fn listed(&mut self, spot: KeyHashes, object: Obj<Untyped>, events: &mut Events) {
        let Some(at) = self.listings.iter().position(|listing| listing.relist.scope.covers(object.key())) else {
            return self.changed(spot, object, events);
        };
        let listing = &mut self.listings[at];
        listing.doubted.remove(object.key());
        let went_back = listing.went_back();
        let held = self.state.get_at(spot, object.key());
        match held {
            Some(held) => {
                let shown = !listing.seen.set(held.slot);
                let known = is_same(&object, &held.raw) && *object.version() == held.raw.meta().version;
                // A server that went back may give a version a second time, with other contents.
                if known && (!went_back || object.json() == held.object().json()) {
                    return;
                }
                if !went_back && is_older(object.version(), &held.raw.meta().version) {
                    // A stream may repeat itself.
                    if !shown {
                        listing.doubted.insert(object.key().clone(), object);
                    }
                    return;
                }
            }
            None if !went_back && self.departed.old_news(&object).is_some() => {
                if self.departed.left_before(&object, listing.departures) {
                    listing.doubted.insert(object.key().clone(), object);
                }
                return;
            }
            None => {}
        }
        let held = held.cloned();
        self.let_in(at, object, spot, held, events);
    }

    /// Takes an object as this list shows it, at its key's spot, where `held` is.
    fn let_in(
        &mut self,
        at: usize,
        object: Obj<Untyped>,
        spot: KeyHashes,
        held: Option<StoreEntry>,
        events: &mut Events,
    ) {
        let origin = self.listings[at].origin;
        let object = match self.door.admit(object, Arrival::Listed) {
            Ok(object) => object,
            Err(object) => return self.filtered(&object, origin, events),
        };
        let (slot, before) = self.put(&object, spot, held, origin, events);
        self.listings[at].seen.set(slot);
        match before {
            Before::Told(old) => events.one(Event::Updated { old, new: object, origin }),
            Before::Untold => {}
            Before::Nothing => {
                self.listings[at].add_untold(spot.with_slot(slot));
                if self.is_sabotaged(Sabotage::DoubleAdd) {
                    events.one(Event::Added { object, origin });
                }
            }
        }
    }

    fn relist_ended(&mut self, scope: &WatchScope, version: &Version, events: &mut Events) {
        self.settle_doubts(scope, version, events);
        let Some(mut listing) = self.take_listing(scope) else { return };
        let missing: Vec<ObjectKey> = match self.is_sabotaged(Sabotage::NoMissedDeletes) {
            true => Vec::new(),
            false => self.missing(&listing, version),
        };
        if self.is_sabotaged(Sabotage::WrongOrder) {
            self.tell_untold(&listing, events);
        }
        for key in missing {
            let untold = self.state.get(&key).is_some_and(|held| listing.take_untold(held.slot));
            let Some((last, told)) = self.take(self.state.spot(&key), &key) else { continue };
            self.departed.note(last.key(), last.uid(), version);
            if told && !untold {
                events.one(Event::Deleted { last, state: FinalState::Missed, origin: listing.origin });
            }
        }
        if !self.is_sabotaged(Sabotage::WrongOrder) {
            self.tell_untold(&listing, events);
        }
        self.scopes.completed(scope, version, listing.relist.history);
    }

    /// A complete list that is not older than what was known, and yet shows an earlier state, is of a server that went back and has gone
    /// on since: what it shows is how things are.
    fn settle_doubts(&mut self, scope: &WatchScope, version: &Version, events: &mut Events) {
        let Some(at) = self.listings.iter().position(|listing| listing.relist.scope == *scope) else { return };
        for object in std::mem::take(&mut self.listings[at].doubted).into_values() {
            let known = match self.state.get(object.key()) {
                Some(held) => Some(&held.raw.meta().version),
                None => self.departed.old_news(&object),
            };
            if known.is_some_and(|known| is_older(object.version(), known) && !is_older(version, known)) {
                let spot = self.state.spot(object.key());
                let held = self.state.get_at(spot, object.key()).cloned();
                self.let_in(at, object, spot, held, events);
            }
        }
    }

    /// What a list showed of this key before is of no interest any more.
    fn undoubt(&mut self, key: &ObjectKey) {
        for listing in &mut self.listings {
            listing.doubted.remove(key);
        }
    }

    /// What the list has not shown, but for what was heard of since: that the list could not know.
    fn missing(&self, listing: &Listing, version: &Version) -> Vec<ObjectKey> {
        let later = |entry: &StoreEntry| !listing.went_back() && is_older(version, &entry.raw.meta().version);
        let missing =
            self.in_scope(&listing.relist.scope).filter(|entry| !listing.seen.has(entry.slot) && !later(entry));
        missing.map(|entry| entry.key().clone()).collect()
    }

    fn relist_abandoned(&mut self, scope: &WatchScope, events: &mut Events) {
        if let Some(listing) = self.take_listing(scope) {
            self.tell_untold(&listing, events);
        }
    }

    fn take_listing(&mut self, scope: &WatchScope) -> Option<Listing> {
        let at = self.listings.iter().position(|listing| listing.relist.scope == *scope)?;
        let listing = self.listings.swap_remove(at);
        if self.listings.is_empty() {
            self.slots.release();
        }
        Some(listing)
    }

    fn tell_untold(&self, listing: &Listing, events: &mut Events) {
        let untold = listing.untold().filter_map(|place| self.state.at(place));
        events.added(untold.map(|entry| Arc::clone(&entry.raw)).collect(), listing.origin);
    }

    fn scope_left(&mut self, scope: &WatchScope, events: &mut Events) {
        let keys: Vec<ObjectKey> = self.in_scope(scope).map(|entry| entry.key().clone()).collect();
        for key in keys {
            if let Some((last, true)) = self.take(self.state.spot(&key), &key) {
                events.one(Event::Deleted { last, state: FinalState::Filtered, origin: Origin::Live });
            }
        }
        drop(self.take_listing(scope));
        self.departed.forget(scope);
        self.scopes.left(scope);
    }

    fn resync(&self, except: Vec<ObjectKey>, events: &mut Events) {
        let except: HashSet<ObjectKey> = except.into_iter().collect();
        let told = |entry: &&StoreEntry| {
            !except.contains(entry.key()) && !self.listings.iter().any(|listing| listing.is_untold(entry.slot))
        };
        events.again(self.state.iter().filter(told).map(|entry| Arc::clone(&entry.raw)).collect());
    }

    /// The door has left out this object.
    fn filtered(&mut self, object: &Obj<Untyped>, origin: Origin, events: &mut Events) {
        let (key, uid, version) = (object.key(), object.uid(), object.version());
        // Noted even if it was not there: an earlier state that would pass may still come.
        self.departed.note(key, uid, version);
        let Some((last, told)) = self.take(self.state.spot(key), key) else { return };
        self.departed.note(last.key(), last.uid(), version);
        if told {
            let state = if last.uid() == uid { FinalState::Filtered } else { FinalState::Missed };
            events.one(Event::Deleted { last, state, origin });
        }
    }

    /// Puts an object in, at its key's spot, where `held` is. If that is another one under its key, the end of it is told. Gives the
    /// slot that the object has now.
    fn put(
        &mut self,
        object: &Obj<Untyped>,
        spot: KeyHashes,
        mut held: Option<StoreEntry>,
        origin: Origin,
        events: &mut Events,
    ) -> (u32, Before) {
        if held.as_ref().is_some_and(|held| !is_same(object, &held.raw)) {
            held = None;
            if let Some((last, told)) = self.take(spot, object.key()) {
                self.departed.note(last.key(), last.uid(), object.version());
                if told {
                    events.one(Event::Deleted { last, state: FinalState::Missed, origin });
                }
            }
        }
        let facts = object.raw().meta().facts();
        let (slot, labels) = match &held {
            Some(held) if held.raw.meta().facts() == facts => (held.slot, held.labels),
            Some(held) => {
                self.label_sets.put_back(held.raw.meta().facts());
                (held.slot, self.label_sets.take(facts))
            }
            None => (self.slots.take(), self.label_sets.take(facts)),
        };
        let place = spot.with_slot(slot);
        for table in self.every_table() {
            table.put(place, object);
        }
        let entry = StoreEntry { raw: Arc::clone(object.raw()), labels, slot };
        match origin {
            Origin::Initial if held.is_none() => self.state.fill(place, entry),
            _ => self.state.put(place, entry),
        }
        let before = match held {
            None => Before::Nothing,
            Some(_) if self.listings.iter().any(|listing| listing.is_untold(slot)) => Before::Untold,
            Some(held) => Before::Told(Obj::new(held.raw)),
        };
        (slot, before)
    }

    /// Takes an object out. Gives its last state, and whether anybody has been told of it.
    fn take(&mut self, spot: KeyHashes, key: &ObjectKey) -> Option<(Obj<Untyped>, bool)> {
        let (place, entry) = self.state.remove(spot, key)?;
        for table in self.every_table() {
            table.remove(place);
        }
        self.label_sets.put_back(entry.raw.meta().facts());
        let mut untold = false;
        for listing in &mut self.listings {
            untold |= listing.take_untold(entry.slot);
            listing.seen.clear(entry.slot);
        }
        self.slots.put_back(entry.slot, !self.listings.is_empty());
        Some((Obj::new(entry.raw), !untold))
    }

    fn in_scope(&self, scope: &WatchScope) -> Box<dyn Iterator<Item = &StoreEntry> + '_> {
        match scope {
            WatchScope::Everything => Box::new(self.state.iter()),
            WatchScope::Namespace(namespace) => Box::new(self.state.namespace(namespace)),
        }
    }

    fn adopt_tables(&mut self) {
        for (id, table) in self.shared.waiting() {
            self.building.push(IndexBuild::new(id, table, &self.state));
        }
        self.tables.retain(|(_, table)| table.is_wanted());
        self.building.retain(|building| building.table.is_wanted());
    }

    fn build_tables(&mut self) {
        let built = |building: &mut IndexBuild| building.advance(&self.state, BUILT_AT_ONCE);
        self.tables.extend(self.building.extract_if(.., built).map(|building| (building.id, building.table)));
    }

    fn every_table(&mut self) -> impl Iterator<Item = &mut Box<dyn AnyTable>> {
        let building = self.building.iter_mut().map(|building| &mut building.table);
        self.tables.iter_mut().map(|(_, table)| table).chain(building)
    }

    #[cfg(test)]
    fn is_sabotaged(&self, how: Sabotage) -> bool {
        self.sabotage == Some(how)
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "a test build asks itself")]
    fn is_sabotaged(&self, _how: Sabotage) -> bool {
        false
    }

    fn publish(&mut self) {
        let known = self.state.tables.len();
        let changed = self.tables.iter_mut().fold(false, |changed, (_, table)| table.freeze() | changed);
        if changed || known != self.tables.len() {
            self.state.set_tables(self.tables.iter().filter_map(|(id, table)| Some((*id, table.frozen()?))).collect());
        }
        let marks = self.label_sets.marks().clone();
        if let Some(before) = self.state.publish(&self.shared, marks, self.scopes.version()) {
            self.retired.add(before);
        }
    }
}

/// How many objects a late index looks at between two deltas or batches of them. A function that decodes takes a tenth of a
/// millisecond for each.
const BUILT_AT_ONCE: usize = 64;

/// How many objects are looked at side by side: enough to wait for memory once instead of many times, and few enough to be still at hand
/// when it is their turn.
const LOOKED_AT_AHEAD: usize = 64;

/// What was under a key.
enum Before {
    Nothing,
    /// The same object, of which nobody has been told yet.
    Untold,
    /// The same object in this state.
    Told(Obj<Untyped>),
}

/// Whether the store already has this state of the object, or a later one.
fn is_heard(object: &Obj<Untyped>, held: &Raw) -> bool {
    let held_version = &held.meta().version;
    is_older(object.version(), held_version) || (is_same(object, held) && object.version() == held_version)
}

/// Whether it is the same object, not another one under its key.
fn is_same(object: &Obj<Untyped>, held: &Raw) -> bool {
    object.uid() == held.meta().uid.as_ref()
}
