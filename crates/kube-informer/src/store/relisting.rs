//! Relists: a list is compared with the store while it arrives.

use std::sync::Arc;

use super::delta::{History, Relist, WatchScope};
use super::event::{Event, FinalState, Origin};
use super::events::Events;
use super::listing::Listing;
use super::progress::is_older;
use super::state::{KeyHashes, StoreEntry};
use super::{Previous, Store, is_same};
use crate::body::{Arrival, Obj, Untyped};
use crate::object::{ObjectKey, Version};

impl Store {
    pub(super) fn relist_begun(&mut self, relist: Relist) {
        if relist.history == History::WentBack {
            self.tombstones.clear();
        }
        match self.listings.iter_mut().find(|listing| listing.relist.scope == relist.scope) {
            Some(listing) => listing.restart(relist, self.tombstones.count()),
            None => {
                let first = !self.scopes.is_complete(&relist.scope);
                let origin = if first { Origin::Initial } else { Origin::Relist };
                self.listings.push(Listing::new(relist, origin, self.tombstones.count()));
            }
        }
        if let [_] = self.listings.as_slice() {
            self.slots.release();
        }
    }

    pub(super) fn listed(&mut self, hashes: KeyHashes, object: Obj<Untyped>, events: &mut Events) {
        let Some(at) = self.listings.iter().position(|listing| listing.relist.scope.covers(object.key())) else {
            self.scopes.advance_for(object.key(), object.version());
            return self.changed(hashes, object, Origin::Live, events);
        };
        let listing = &mut self.listings[at];
        listing.contradicting.remove(object.key());
        let went_back = listing.went_back();
        let held = self.state.get_at(hashes, object.key());
        match held {
            Some(held) => {
                let shown = !listing.seen.set(held.slot);
                let known = is_same(&object, &held.raw) && *object.version() == held.raw.meta().version;
                // A server that went back in time may reuse a version for different contents.
                if known && (!went_back || object.json() == held.object().json()) {
                    return;
                }
                if !went_back && is_older(object.version(), &held.raw.meta().version) {
                    // A stream may repeat an object.
                    if !shown {
                        listing.contradicting.insert(object.key().clone(), object);
                    }
                    return;
                }
            }
            None if !went_back && self.tombstones.removed_at(&object).is_some() => {
                if self.tombstones.is_removed_before(&object, listing.tombstones_before) {
                    listing.contradicting.insert(object.key().clone(), object);
                }
                return;
            }
            None => {}
        }
        let held = held.cloned();
        self.store_listed(at, object, hashes, held, events);
    }

    /// Stores an object of the list at index `at`. `held` is the entry under its key.
    fn store_listed(
        &mut self,
        at: usize,
        object: Obj<Untyped>,
        hashes: KeyHashes,
        held: Option<StoreEntry>,
        events: &mut Events,
    ) {
        let origin = self.listings[at].origin;
        let object = match self.ingest.admit(object, Arrival::Listed) {
            Ok(object) => object,
            Err(object) => return self.filtered(&object, origin, events),
        };
        let (slot, before) = self.put(&object, hashes, held, origin, events);
        self.listings[at].seen.set(slot);
        match before {
            Previous::Reported(old) => events.push(Event::Updated { old, new: object, origin }),
            Previous::Unreported => {}
            Previous::Absent => self.listings[at].add_unreported(hashes.with_slot(slot)),
        }
    }

    pub(super) fn relist_ended(&mut self, scope: &WatchScope, version: &Version, events: &mut Events) {
        self.resolve_contradicting(scope, version, events);
        let Some(mut listing) = self.take_listing(scope) else { return };
        for key in self.missing(&listing, version) {
            let unreported = self.state.get(&key).is_some_and(|held| listing.take_unreported(held.slot));
            let Some((last, reported)) = self.take(self.state.hashes_of(&key), &key) else { continue };
            self.tombstones.insert(last.key(), last.uid(), version);
            if reported && !unreported {
                events.push(Event::Deleted { last, state: FinalState::Missed, origin: listing.origin });
            }
        }
        self.report_added(&listing, events);
        self.scopes.completed(scope, version, listing.relist.history);
    }

    /// Accepts the objects that a complete list returned in an older state than the known one, if
    /// the list itself is not older: the server went back in time and has advanced since, so the
    /// list is authoritative.
    fn resolve_contradicting(&mut self, scope: &WatchScope, version: &Version, events: &mut Events) {
        let Some(at) = self.listings.iter().position(|listing| listing.relist.scope == *scope) else { return };
        for object in std::mem::take(&mut self.listings[at].contradicting).into_values() {
            let known = match self.state.get(object.key()) {
                Some(held) => Some(&held.raw.meta().version),
                None => self.tombstones.removed_at(&object),
            };
            if known.is_some_and(|known| is_older(object.version(), known) && !is_older(version, known)) {
                let hashes = self.state.hashes_of(object.key());
                let held = self.state.get_at(hashes, object.key()).cloned();
                self.store_listed(at, object, hashes, held, events);
            }
        }
    }

    /// Drops older states of this key from lists in progress; a watch event supersedes them.
    pub(super) fn drop_contradicting(&mut self, key: &ObjectKey) {
        for listing in &mut self.listings {
            listing.contradicting.remove(key);
        }
    }

    /// Keys in the store that the list does not contain, except for objects with a newer version
    /// than the list, which it cannot contain.
    fn missing(&self, listing: &Listing, version: &Version) -> Vec<ObjectKey> {
        let later = |entry: &StoreEntry| !listing.went_back() && is_older(version, &entry.raw.meta().version);
        let missing =
            self.in_scope(&listing.relist.scope).filter(|entry| !listing.seen.has(entry.slot) && !later(entry));
        missing.map(|entry| entry.key().clone()).collect()
    }

    pub(super) fn relist_abandoned(&mut self, scope: &WatchScope, events: &mut Events) {
        if let Some(listing) = self.take_listing(scope) {
            self.report_added(&listing, events);
        }
    }

    pub(super) fn relist_dropped(&mut self, scope: &WatchScope) {
        let Some(listing) = self.listings.iter().find(|listing| listing.relist.scope == *scope) else { return };
        let unreported = listing.unreported().filter_map(|slot_ref| self.state.at(slot_ref));
        let keys: Vec<ObjectKey> = unreported.map(|entry| entry.key().clone()).collect();
        for key in keys {
            drop(self.take(self.state.hashes_of(&key), &key));
        }
        drop(self.take_listing(scope));
    }

    pub(super) fn take_listing(&mut self, scope: &WatchScope) -> Option<Listing> {
        let at = self.listings.iter().position(|listing| listing.relist.scope == *scope)?;
        let listing = self.listings.swap_remove(at);
        if self.listings.is_empty() {
            self.slots.release();
        }
        Some(listing)
    }

    fn report_added(&self, listing: &Listing, events: &mut Events) {
        let unreported = listing.unreported().filter_map(|slot_ref| self.state.at(slot_ref));
        events.push_added(unreported.map(|entry| Arc::clone(&entry.raw)).collect(), listing.origin);
    }
}
