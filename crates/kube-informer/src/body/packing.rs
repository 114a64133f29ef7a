//! What the packing side of a keeper knows.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::Raw;
use super::Tick;
use super::dictionary::Dictionary;
use super::reference::{GroupId, ReferenceTable};
use super::shared::{PackContext, StoreContext};
use super::sizes::Sizes;
use super::training::Training;

/// The packing side, used by whoever brings objects in and whoever packs cold ones. Readers never come here.
pub(super) struct Packing {
    /// Where new objects go.
    pub(super) context: Arc<PackContext>,
    pub(super) training: Training,
    pub(super) references: ReferenceTable,
    /// Of objects that were packed by themselves.
    pub(super) sizes: Sizes,
    /// Changed objects that are still plain, oldest first.
    pub(super) fresh: VecDeque<Fresh>,
    pub(super) fresh_bytes: usize,
    /// Objects packed while a better dictionary was still to come.
    pub(super) repack: VecDeque<Weak<Raw>>,
    /// When to look for those that are gone.
    sweep_at: usize,
}

/// So many objects are packed again for a better dictionary, and no more.
const MAX_REPACK: usize = 1 << 16;
const FEWEST_TO_SWEEP: usize = 1 << 10;

pub(super) struct Fresh {
    pub(super) since: Tick,
    pub(super) bytes: usize,
    pub(super) raw: Weak<Raw>,
}

/// An object that went through a press.
#[derive(Debug)]
pub(super) struct Compressed {
    /// None if it stays as it is.
    pub(super) body: Option<Box<[u8]>>,
    pub(super) context: Arc<PackContext>,
    pub(super) outcome: PackOutcome,
}

/// What is to be known of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackOutcome {
    pub(super) group: GroupId,
    pub(super) how: PackedAs,
    /// A difference was tried, and not worth it.
    pub(super) missed: bool,
    /// Others can be told from it.
    pub(super) can_be_reference: bool,
}

/// How an object is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackedAs {
    /// As what it differs in from another.
    Delta,
    /// Packed, with a dictionary if there is one.
    Zstd,
    /// Packing it saves nothing.
    Plain,
}

impl Packing {
    pub(super) fn new(store: &Arc<StoreContext>) -> Self {
        Self {
            context: Arc::new(PackContext::new(Dictionary::none(), Arc::clone(store))),
            training: Training::default(),
            references: ReferenceTable::default(),
            sizes: Sizes::default(),
            fresh: VecDeque::new(),
            fresh_bytes: 0,
            repack: VecDeque::new(),
            sweep_at: FEWEST_TO_SWEEP,
        }
    }

    /// Takes note of an object that went through a press, and of its plain and stored sizes.
    pub(super) fn record(&mut self, raw: &Arc<Raw>, outcome: PackOutcome, (plain, stored): (usize, usize)) {
        let PackOutcome { group, how, missed, can_be_reference } = outcome;
        match how {
            PackedAs::Delta => self.references.hit(group),
            PackedAs::Zstd => {
                if self.training.has_dictionary() {
                    self.sizes.add(plain, stored);
                    self.training.packed(plain, stored);
                }
                self.repack_later(&Arc::downgrade(raw));
            }
            PackedAs::Plain => {}
        }
        if missed {
            self.references.missed(group);
        }
        if can_be_reference {
            self.references.set_reference(group, raw);
        }
    }

    /// Takes note of an object that a dictionary still to come will pack better, if one is.
    fn repack_later(&mut self, raw: &Weak<Raw>) {
        if !self.training.expects_better() {
            return;
        }
        if self.repack.len() >= self.sweep_at {
            self.repack.retain(|raw| raw.strong_count() > 0);
            self.sweep_at = (2 * self.repack.len()).max(FEWEST_TO_SWEEP);
        }
        if self.repack.len() < MAX_REPACK {
            self.repack.push_back(Weak::clone(raw));
        }
    }

    /// Gives back what a long line took.
    pub(super) fn shrink(&mut self) {
        if self.repack.is_empty() {
            self.repack = VecDeque::new();
            self.sweep_at = FEWEST_TO_SWEEP;
        }
    }

    pub(super) fn pop_fresh(&mut self) -> Option<Fresh> {
        let fresh = self.fresh.pop_front()?;
        self.fresh_bytes = self.fresh_bytes.saturating_sub(fresh.bytes);
        Some(fresh)
    }
}
