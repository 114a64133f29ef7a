//! What the packing side of a keeper knows.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::Raw;
use super::Tick;
use super::dictionary::Dictionary;
use super::reference::{Families, Name};
use super::shared::{Common, Home};
use super::sizes::Sizes;
use super::training::Training;

/// The packing side, used by whoever brings objects in and whoever packs cold ones. Readers never come here.
pub(super) struct Packing {
    /// Where new objects go.
    pub(super) home: Arc<Home>,
    pub(super) training: Training,
    pub(super) families: Families,
    /// Of objects that were packed by themselves.
    pub(super) sizes: Sizes,
    /// Changed objects that are still plain, oldest first.
    pub(super) fresh: VecDeque<Fresh>,
    pub(super) fresh_bytes: usize,
    /// Objects packed while a better dictionary was still to come.
    pub(super) again: VecDeque<Weak<Raw>>,
    /// When to look for those that are gone.
    sweep_at: usize,
}

/// So many objects are packed again for a better dictionary, and no more.
const MOST_PACKED_AGAIN: usize = 1 << 16;
const FEWEST_TO_SWEEP: usize = 1 << 10;

pub(super) struct Fresh {
    pub(super) since: Tick,
    pub(super) bytes: usize,
    pub(super) raw: Weak<Raw>,
}

/// An object that went through a press.
#[derive(Debug)]
pub(super) struct Pressed {
    /// None if it stays as it is.
    pub(super) body: Option<Box<[u8]>>,
    pub(super) home: Arc<Home>,
    pub(super) told: Told,
}

/// What is to be known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) family: Name,
    pub(super) how: How,
    /// A difference was tried, and not worth it.
    pub(super) missed: bool,
    /// Others can be told from it.
    pub(super) makes_a_pattern: bool,
}

/// How an object is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// As what it differs in from another.
    Difference,
    /// Packed, with a dictionary if there is one.
    Packed,
    /// Packing it saves nothing.
    NotWorthIt,
}

impl Packing {
    pub(super) fn new(common: &Arc<Common>) -> Self {
        Self {
            home: Arc::new(Home::new(Dictionary::none(), Arc::clone(common))),
            training: Training::default(),
            families: Families::default(),
            sizes: Sizes::default(),
            fresh: VecDeque::new(),
            fresh_bytes: 0,
            again: VecDeque::new(),
            sweep_at: FEWEST_TO_SWEEP,
        }
    }

    /// Takes note of an object that went through a press, and of its plain and stored sizes.
    pub(super) fn pressed(&mut self, raw: &Arc<Raw>, pressed: Told, (plain, stored): (usize, usize)) {
        let Told { family, how, missed, makes_a_pattern } = pressed;
        match how {
            How::Difference => self.families.hit(family),
            How::Packed => {
                if self.training.has_dictionary() {
                    self.sizes.add(plain, stored);
                    self.training.packed(plain, stored);
                }
                self.pack_again_later(&Arc::downgrade(raw));
            }
            How::NotWorthIt => {}
        }
        if missed {
            self.families.missed(family);
        }
        if makes_a_pattern {
            self.families.pattern(family, raw);
        }
    }

    /// Takes note of an object that a dictionary still to come will pack better, if one is.
    fn pack_again_later(&mut self, raw: &Weak<Raw>) {
        if !self.training.expects_better() {
            return;
        }
        if self.again.len() >= self.sweep_at {
            self.again.retain(|raw| raw.strong_count() > 0);
            self.sweep_at = (2 * self.again.len()).max(FEWEST_TO_SWEEP);
        }
        if self.again.len() < MOST_PACKED_AGAIN {
            self.again.push_back(Weak::clone(raw));
        }
    }

    /// Gives back what a long line took.
    pub(super) fn shrink(&mut self) {
        if self.again.is_empty() {
            self.again = VecDeque::new();
            self.sweep_at = FEWEST_TO_SWEEP;
        }
    }

    pub(super) fn pop_fresh(&mut self) -> Option<Fresh> {
        let fresh = self.fresh.pop_front()?;
        self.fresh_bytes = self.fresh_bytes.saturating_sub(fresh.bytes);
        Some(fresh)
    }
}
