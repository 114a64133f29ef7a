//! A list in progress.

use std::collections::BTreeMap;

use super::Origin;
use super::state::SlotRef;
use super::{History, Relist};
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;

/// The entries that a list has contained so far, by slot, and those of them not yet reported to
/// handlers.
///
/// No slot is reused while a list is in progress, so a slot refers to one key throughout.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) relist: Relist,
    pub(super) origin: Origin,
    pub(super) seen: Bits,
    /// New objects, in the order of the list. Those whose bit is cleared have been reported or
    /// removed.
    unreported: Vec<SlotRef>,
    untold_bits: Bits,
    /// Objects that the list contained in an older state than the known one; usually none. They are
    /// stale if the list itself is older than the known state. Otherwise the server went back in
    /// time and has advanced since. Decided when the list ends.
    pub(super) contradicting: BTreeMap<ObjectKey, Obj<Untyped>>,
    /// Number of tombstones created before the list began.
    pub(super) tombstones_before: u64,
}

impl Listing {
    pub(super) fn new(relist: Relist, origin: Origin, tombstones_before: u64) -> Self {
        Self {
            relist,
            origin,
            seen: Bits::default(),
            unreported: Vec::new(),
            untold_bits: Bits::default(),
            contradicting: BTreeMap::new(),
            tombstones_before,
        }
    }

    /// Restarts the list. Unreported objects stay unreported.
    pub(super) fn restart(&mut self, relist: Relist, tombstones_before: u64) {
        self.contradicting.clear();
        self.tombstones_before = tombstones_before;
        // Once the server has gone back in time, whichever list completes is authoritative.
        let history = match self.relist.history {
            History::WentBack => History::WentBack,
            History::Continues => relist.history,
        };
        self.relist = Relist { history, ..relist };
        self.seen = Bits::default();
        self.unreported.retain(|slot_ref| self.untold_bits.has(slot_ref.slot));
    }

    pub(super) fn went_back(&self) -> bool {
        self.relist.history == History::WentBack
    }

    pub(super) fn add_unreported(&mut self, slot_ref: SlotRef) {
        if self.untold_bits.set(slot_ref.slot) {
            self.unreported.push(slot_ref);
        }
    }

    /// Whether the object was unreported; from then on it counts as reported.
    pub(super) fn take_unreported(&mut self, slot: u32) -> bool {
        self.untold_bits.clear(slot)
    }

    pub(super) fn is_unreported(&self, slot: u32) -> bool {
        self.untold_bits.has(slot)
    }

    /// All unreported objects, in the order of the list.
    pub(super) fn unreported(&self) -> impl Iterator<Item = SlotRef> {
        self.unreported.iter().filter(|slot_ref| self.untold_bits.has(slot_ref.slot)).copied()
    }
}

/// A bit set of slots.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Sets a bit, and returns whether it was clear before.
    pub(super) fn set(&mut self, slot: u32) -> bool {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Clears a bit, and returns whether it was set before.
    pub(super) fn clear(&mut self, slot: u32) -> bool {
        let had = self.has(slot);
        if had {
            self.0[slot as usize / 64] &= !(1 << (slot % 64));
        }
        had
    }

    pub(super) fn has(&self, slot: u32) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word & (1 << (slot % 64)) != 0)
    }
}
