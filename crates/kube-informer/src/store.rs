//! The store: applies deltas, publishes immutable states to readers, and returns the events for
//! handlers.
//!
//! Programs receive [`Event`]s and return [`Verdict`]s. [`Store`], [`Reader`] and [`Delta`] are the
//! advanced layer, for a cache that is filled by other means than an informer, and for benchmarks.

// Contains the HAMT of objects and its double buffer, index tables, the ingest functions,
// tombstones and deferred reclamation; no async, clock or I/O. It may use `object`, `codec` and
// `body`, and nothing else.

use std::iter::repeat;
use std::sync::Arc;

use foldhash::SharedSeed;
use hashbrown::HashSet;

pub use self::delta::{Delta, History, Relist, WatchScope};
pub use self::event::{Event, FinalState, Origin};
pub use self::event_order::EventOrder;
pub use self::events::Events;
pub use self::ingest::{Ingest, Verdict};
pub(crate) use self::reader::Feed;
pub use self::reader::Reader;
pub(crate) use self::reader::WeakReader;
pub use self::reclaim::ReclaimStatus;

pub(crate) use self::event_batch::{BatchKind, EventBatch};
pub(crate) use self::events::Notification;
pub(crate) use self::hamt::Hamt;
pub(crate) use self::ingest::{guarded, guarded_for};
pub(crate) use self::label_bloom::BloomQuery;
pub(crate) use self::state::{Hashing, SlotRef, StoreEntry, StoreState};

use self::double_buffer::DoubleBuffer;
use self::index_build::IndexBuild;
use self::index_table::AnyTable;
use self::label_sets::LabelSets;
use self::listing::Listing;
use self::prefetch::prefetch_entries;
use self::progress::{Progress, is_older};
use self::reader::StoreShared;
use self::reclaim::Reclaimer;
use self::slots::Slots;
use self::state::KeyHashes;
use self::tombstones::Tombstones;
use crate::body::Arrival;
use crate::body::{Obj, Raw, Untyped};
use crate::object::ObjectKey;
use crate::shard::Shard;

mod delta;
mod double_buffer;
pub(crate) mod event;
mod event_batch;
mod event_order;
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
mod relisting;
mod slots;
mod state;
mod tombstones;

/// The store, as its single writer holds it; every other user holds a [`Reader`].
///
/// [`apply`](Self::apply) folds deltas into a new state, publishes that state to readers, and only
/// then returns the events. Guarantees:
///
/// - Added or updated is decided by the contents of the store, never by the type of the watch
///   event.
/// - Each object has one sequence of events: added, updated with resource versions that never go
///   back, deleted. The same key with a new uid is a new object: the old one is deleted
///   ([`FinalState::Missed`]), the new one added.
/// - No state is reported twice: an object with the resource version in the store, or with an older
///   one, changes nothing. Older versions are accepted only from a server that went back in time:
///   in a list flagged as [`History::WentBack`], or in a list that is complete and not older than
///   the state it contradicts.
/// - A list is compared with the store while it arrives, so there are never two copies of the
///   cache. Changes are reported immediately. New objects are readable immediately, but reported
///   only when the list is complete and the deletions it implies have been reported. The version of
///   the store advances then.
/// - A list that is restarted or abandoned leaves no object unreported and deletes nothing. One
///   that is dropped also takes back its new objects.
/// - An object that the [`Ingest`] rejects is not stored; one that is already in the store is
///   deleted, as [`FinalState::Filtered`].
#[derive(Debug)]
#[doc(alias = "ThreadSafeStore")]
#[doc(alias = "Indexer")]
pub struct Store {
    shared: Arc<StoreShared>,
    /// Ahead of what readers see while `apply` runs.
    state: DoubleBuffer,
    reclaimer: Reclaimer,
    slots: Slots,
    label_sets: LabelSets,
    tables: Vec<(usize, Box<dyn AnyTable>)>,
    /// Index tables under construction, not yet visible to readers.
    building: Vec<IndexBuild>,
    scopes: Progress,
    listings: Vec<Listing>,
    tombstones: Tombstones,
    ingest: Ingest,
}

impl Default for Store {
    fn default() -> Self {
        Self::new(Ingest::default())
    }
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new(ingest: Ingest) -> Self {
        Self::hashed(ingest, Hashing::random())
    }

    /// An empty store whose iteration order depends only on the keys and this seed.
    #[must_use]
    pub fn seeded(ingest: Ingest, seed: u64) -> Self {
        Self::hashed(ingest, Hashing::with_seed(seed, SharedSeed::global_fixed()))
    }

    fn hashed(ingest: Ingest, hashing: Hashing) -> Self {
        let state = StoreState::new(hashing);
        Self {
            shared: Arc::new(StoreShared::new(state.clone())),
            reclaimer: Reclaimer::default(),
            slots: Slots::default(),
            label_sets: LabelSets::new(state.hashing().clone()),
            state: DoubleBuffer::new(state),
            tables: Vec::new(),
            building: Vec::new(),
            scopes: Progress::default(),
            listings: Vec::new(),
            tombstones: Tombstones::default(),
            ingest,
        }
    }

    /// A reader of this store.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shared))
    }

    /// The number of objects, reported or not.
    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether this scope has been listed completely.
    #[must_use]
    pub fn is_complete(&self, scope: &WatchScope) -> bool {
        self.scopes.is_complete(scope)
    }

    /// All objects already reported: the initial events of a handler that is added later.
    pub(crate) fn present(&self) -> EventBatch {
        let reported = |entry: &&StoreEntry| !self.listings.iter().any(|listing| listing.is_unreported(entry.slot));
        let objects = self.state.iter().filter(reported).map(|entry| Arc::clone(&entry.raw)).collect();
        EventBatch::new(objects, BatchKind::Added(Origin::Initial))
    }

    /// Applies deltas in order, advances pending index builds by one step, publishes the state to
    /// readers, and returns the events for handlers.
    pub fn apply(&mut self, deltas: impl IntoIterator<Item = Delta>) -> Events {
        self.state.catch_up();
        self.adopt_tables();
        let mut deltas = deltas.into_iter();
        let mut events = Events::with_room(deltas.size_hint().0);
        loop {
            let next: Vec<Delta> = deltas.by_ref().take(PREFETCHED_DELTAS).collect();
            if next.is_empty() {
                break;
            }
            self.fold_all(next, &mut events);
        }
        self.build_tables();
        self.publish();
        events
    }

    /// Whether an index build is pending. Each [`apply`](Self::apply) advances it by one step, also
    /// without deltas.
    #[must_use]
    pub fn is_building(&self) -> bool {
        !self.building.is_empty()
    }

    /// Prepares the next [`apply`](Self::apply), and frees a bounded number of nodes that no reader
    /// holds any more.
    ///
    /// Call it when the events have been delivered and the writer is idle, and again later as long
    /// as it returns [`ReclaimStatus::Pending`].
    pub fn tidy(&mut self) -> ReclaimStatus {
        self.state.catch_up();
        self.reclaimer.tidy()
    }

    fn fold_all(&mut self, deltas: Vec<Delta>, events: &mut Events) {
        let mut key_hashes = Vec::new();
        if deltas.len() > 1 {
            key_hashes.extend(deltas.iter().map(|delta| Some(self.state.hashes_of(delta.key()?))));
            prefetch_entries(&self.state.spaces, key_hashes.iter().copied().flatten());
        }
        for (delta, hashes) in deltas.into_iter().zip(key_hashes.into_iter().chain(repeat(None))) {
            self.fold(delta, hashes, events);
        }
    }

    /// `hashes` are those of the key, if they are already computed.
    fn fold(&mut self, delta: Delta, hashes: Option<KeyHashes>, events: &mut Events) {
        let hashes_of = |object: &Obj<Untyped>| hashes.unwrap_or_else(|| self.state.hashes_of(object.key()));
        match delta {
            Delta::Changed(object) => {
                let hashes = hashes_of(&object);
                self.scopes.advance_for(object.key(), object.version());
                self.changed(hashes, object, Origin::Live, events);
            }
            Delta::Entered(object) => self.changed(hashes_of(&object), object, Origin::Relist, events),
            Delta::Deleted(object) => self.deleted(hashes_of(&object), object, events),
            Delta::RelistBegun(relist) => self.relist_begun(relist),
            Delta::Listed(object) => self.listed(hashes_of(&object), object, events),
            Delta::RelistEnded { scope, version } => self.relist_ended(&scope, &version, events),
            Delta::RelistAbandoned(scope) => self.relist_abandoned(&scope, events),
            Delta::RelistDropped(scope) => self.relist_dropped(&scope),
            Delta::ScopeLeft(scope) => self.scope_left(&scope, events),
            Delta::ShardLeft { scope, shard } => self.shard_left(&scope, &shard, events),
            Delta::ShardHeld { .. } => {}
            Delta::Resync { except } => self.resync(except, events),
            Delta::Bookmark { scope, version } => self.scopes.reached(&scope, &version),
        }
    }

    /// Stores the state of an object, unless a later one is known.
    fn changed(&mut self, hashes: KeyHashes, object: Obj<Untyped>, origin: Origin, events: &mut Events) {
        self.drop_contradicting(object.key());
        let held = self.state.get_at(hashes, object.key());
        let stale =
            held.map_or_else(|| self.tombstones.removed_at(&object).is_some(), |held| is_known(&object, &held.raw));
        if stale {
            return;
        }
        let held = held.cloned();
        match self.ingest.admit(object, Arrival::Changed(0)) {
            Ok(object) => {
                let (slot, before) = self.put(&object, hashes, held, origin, events);
                if matches!(before, Previous::Unreported) {
                    for listing in &mut self.listings {
                        listing.take_unreported(slot);
                    }
                }
                events.push(match before {
                    Previous::Reported(old) => Event::Updated { old, new: object, origin },
                    Previous::Absent | Previous::Unreported => Event::Added { object, origin },
                });
            }
            Err(object) => self.filtered(&object, origin, events),
        }
    }

    fn deleted(&mut self, hashes: KeyHashes, object: Obj<Untyped>, events: &mut Events) {
        self.scopes.advance_for(object.key(), object.version());
        self.drop_contradicting(object.key());
        // No tombstone for an object that is not in the store: a keyed queue does not deliver such
        // a deletion, and both queue disciplines must produce the same events.
        let Some(held) = self.state.get_at(hashes, object.key()) else { return };
        if is_older(object.version(), &held.raw.meta().version) {
            return;
        }
        let same = is_same(&object, &held.raw);
        let Some((last, reported)) = self.take(hashes, object.key()) else { return };
        self.tombstones.insert(object.key(), object.uid(), object.version());
        self.tombstones.insert(last.key(), last.uid(), object.version());
        if !reported {
            return;
        }
        // The deletion of another object with this name does not carry the final state of the held
        // one.
        let known = same.then(|| self.ingest.transformed(object, Arrival::Changed(0))).flatten();
        let state = if same { FinalState::Known } else { FinalState::Missed };
        events.push(Event::Deleted { last: known.unwrap_or(last), state, origin: Origin::Live });
    }

    fn scope_left(&mut self, scope: &WatchScope, events: &mut Events) {
        let keys: Vec<ObjectKey> = self.in_scope(scope).map(|entry| entry.key().clone()).collect();
        for key in keys {
            if let Some((last, true)) = self.take(self.state.hashes_of(&key), &key) {
                events.push(Event::Deleted { last, state: FinalState::Filtered, origin: Origin::Live });
            }
        }
        drop(self.take_listing(scope));
        self.tombstones.forget(scope);
        self.scopes.left(scope);
    }

    /// Removes the objects of the scope that do not belong to the shard. They may return, in the
    /// same states.
    fn shard_left(&mut self, scope: &WatchScope, shard: &Shard, events: &mut Events) {
        let leaves = |entry: &&StoreEntry| !shard.has(entry.raw.meta().uid.as_ref(), entry.key());
        let keys: Vec<ObjectKey> = self.in_scope(scope).filter(leaves).map(|entry| entry.key().clone()).collect();
        for key in keys {
            if let Some((last, true)) = self.take(self.state.hashes_of(&key), &key) {
                events.push(Event::Deleted { last, state: FinalState::Filtered, origin: Origin::Live });
            }
        }
    }

    fn resync(&self, except: Vec<ObjectKey>, events: &mut Events) {
        let except: HashSet<ObjectKey> = except.into_iter().collect();
        let reported = |entry: &&StoreEntry| {
            !except.contains(entry.key()) && !self.listings.iter().any(|listing| listing.is_unreported(entry.slot))
        };
        events.push_resync(self.state.iter().filter(reported).map(|entry| Arc::clone(&entry.raw)).collect());
    }

    /// Deletes the stored state of an object that the ingest functions have rejected.
    fn filtered(&mut self, object: &Obj<Untyped>, origin: Origin, events: &mut Events) {
        let (key, uid, version) = (object.key(), object.uid(), object.version());
        // A tombstone even if it was not stored: an older state that passes the filter may still
        // arrive.
        self.tombstones.insert(key, uid, version);
        let Some((last, reported)) = self.take(self.state.hashes_of(key), key) else { return };
        self.tombstones.insert(last.key(), last.uid(), version);
        if reported {
            let state = if last.uid() == uid { FinalState::Filtered } else { FinalState::Missed };
            events.push(Event::Deleted { last, state, origin });
        }
    }

    /// Inserts an object, or replaces `held`, the entry under its key. If `held` is another object
    /// (with another uid), its deletion is reported first. Returns the slot of the object.
    fn put(
        &mut self,
        object: &Obj<Untyped>,
        hashes: KeyHashes,
        mut held: Option<StoreEntry>,
        origin: Origin,
        events: &mut Events,
    ) -> (u32, Previous) {
        if held.as_ref().is_some_and(|held| !is_same(object, &held.raw)) {
            held = None;
            if let Some((last, reported)) = self.take(hashes, object.key()) {
                self.tombstones.insert(last.key(), last.uid(), object.version());
                if reported {
                    events.push(Event::Deleted { last, state: FinalState::Missed, origin });
                }
            }
        }
        let labels_and_owners = object.raw().meta().labels_and_owners();
        let (slot, labels) = match &held {
            Some(held) if held.raw.meta().labels_and_owners() == labels_and_owners => (held.slot, held.labels),
            Some(held) => {
                self.label_sets.put_back(held.raw.meta().labels_and_owners());
                (held.slot, self.label_sets.take(labels_and_owners))
            }
            None => (self.slots.take(), self.label_sets.take(labels_and_owners)),
        };
        let slot_ref = hashes.with_slot(slot);
        for table in self.every_table() {
            table.put(slot_ref, object);
        }
        let entry = StoreEntry { raw: Arc::clone(object.raw()), labels, slot };
        match origin {
            Origin::Initial if held.is_none() => self.state.fill(slot_ref, entry),
            _ => self.state.put(slot_ref, entry),
        }
        let before = match held {
            None => Previous::Absent,
            Some(_) if self.listings.iter().any(|listing| listing.is_unreported(slot)) => Previous::Unreported,
            Some(held) => Previous::Reported(Obj::new(held.raw)),
        };
        (slot, before)
    }

    /// Removes an object. Returns its last state, and whether handlers have received it.
    fn take(&mut self, hashes: KeyHashes, key: &ObjectKey) -> Option<(Obj<Untyped>, bool)> {
        let (slot_ref, entry) = self.state.remove(hashes, key)?;
        for table in self.every_table() {
            table.remove(slot_ref);
        }
        self.label_sets.put_back(entry.raw.meta().labels_and_owners());
        let mut unreported = false;
        for listing in &mut self.listings {
            unreported |= listing.take_unreported(entry.slot);
            listing.seen.clear(entry.slot);
        }
        self.slots.put_back(entry.slot, !self.listings.is_empty());
        Some((Obj::new(entry.raw), !unreported))
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
        let built = |building: &mut IndexBuild| building.advance(&self.state, INDEX_BUILD_STEP);
        self.tables.extend(self.building.extract_if(.., built).map(|building| (building.id, building.table)));
    }

    fn every_table(&mut self) -> impl Iterator<Item = &mut Box<dyn AnyTable>> {
        let building = self.building.iter_mut().map(|building| &mut building.table);
        self.tables.iter_mut().map(|(_, table)| table).chain(building)
    }

    fn publish(&mut self) {
        let known = self.state.tables.len();
        let changed = self.tables.iter_mut().fold(false, |changed, (_, table)| table.freeze() | changed);
        if changed || known != self.tables.len() {
            self.state.set_tables(self.tables.iter().filter_map(|(id, table)| Some((*id, table.frozen()?))).collect());
        }
        let blooms = self.label_sets.blooms().clone();
        if let Some(before) = self.state.publish(&self.shared, blooms, self.scopes.version()) {
            self.reclaimer.add(before);
        }
    }
}

/// The most deltas applied at once. Handlers receive their events soon, while the objects are still
/// in the CPU cache.
pub const MAX_BATCH: usize = 128;

/// Objects that an index build processes per `apply`. An index function that decodes takes 0.1 ms
/// for each.
const INDEX_BUILD_STEP: usize = 64;

/// Deltas that are prefetched together: enough to overlap their cache misses, and few enough that
/// the entries are still cached when their deltas are applied.
const PREFETCHED_DELTAS: usize = 64;

/// What the store held under a key.
enum Previous {
    Absent,
    /// The same object, not yet reported to handlers.
    Unreported,
    /// The same object, last reported in this state.
    Reported(Obj<Untyped>),
}

/// Whether the store already has this state of the object, or a later one.
fn is_known(object: &Obj<Untyped>, held: &Raw) -> bool {
    let held_version = &held.meta().version;
    is_older(object.version(), held_version) || (is_same(object, held) && object.version() == held_version)
}

/// Whether both are the same object, not two with the same key.
fn is_same(object: &Obj<Untyped>, held: &Raw) -> bool {
    object.uid() == held.meta().uid.as_ref()
}
