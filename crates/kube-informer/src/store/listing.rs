//! A list that is coming in.

use std::collections::BTreeMap;

use super::Origin;
use super::state::SlotRef;
use super::{History, Relist};
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;

/// Which entries a list has shown so far, by slot, and which of them nobody has been told of.
///
/// No slot is used again while a list comes in, so that a slot means one key throughout.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) relist: Relist,
    pub(super) origin: Origin,
    pub(super) seen: Bits,
    /// Where new objects are, in the order of the list. Those whose bit is gone have been told of or have left.
    untold: Vec<SlotRef>,
    untold_bits: Bits,
    /// Objects that the list showed in a state from before the one that was known. Old news if the list itself is older than what was
    /// known; if it is not, a server that went back and has gone on since: its end will tell. None, as a rule.
    pub(super) doubted: BTreeMap<ObjectKey, Obj<Untyped>>,
    /// How many objects had left when the list began.
    pub(super) departures: u64,
}

impl Listing {
    pub(super) fn new(relist: Relist, origin: Origin, departures: u64) -> Self {
        Self {
            relist,
            origin,
            seen: Bits::default(),
            untold: Vec::new(),
            untold_bits: Bits::default(),
            doubted: BTreeMap::new(),
            departures,
        }
    }

    /// The list begins anew. What nobody has been told of yet remains so.
    pub(super) fn restart(&mut self, relist: Relist, departures: u64) {
        self.doubted.clear();
        self.departures = departures;
        // Once the server has gone back, that is what the store has to be compared with, whatever list completes.
        let history = match self.relist.history {
            History::WentBack => History::WentBack,
            History::Continues => relist.history,
        };
        self.relist = Relist { history, ..relist };
        self.seen = Bits::default();
        self.untold.retain(|place| self.untold_bits.has(place.slot));
    }

    pub(super) fn went_back(&self) -> bool {
        self.relist.history == History::WentBack
    }

    pub(super) fn add_untold(&mut self, place: SlotRef) {
        if self.untold_bits.set(place.slot) {
            self.untold.push(place);
        }
    }

    /// Whether nobody had been told of it; from now on it counts as told.
    pub(super) fn take_untold(&mut self, slot: u32) -> bool {
        self.untold_bits.clear(slot)
    }

    pub(super) fn is_untold(&self, slot: u32) -> bool {
        self.untold_bits.has(slot)
    }

    /// All of which nobody has been told, in the order of the list.
    pub(super) fn untold(&self) -> impl Iterator<Item = SlotRef> {
        self.untold.iter().filter(|place| self.untold_bits.has(place.slot)).copied()
    }
}

/// A set of slots.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    /// Whether it was not set before.
    pub(super) fn set(&mut self, slot: u32) -> bool {
        let (word, bit) = (slot as usize / 64, 1 << (slot % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Whether it was set before.
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
