//! Packing state of a body encoder.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::Raw;
use super::Tick;
use super::dictionary::Dictionary;
use super::reference::{GroupId, ReferenceTable};
use super::shared::{PackContext, StoreContext};
use super::sizes::{MeanSize, Sizes};
use super::training::Training;

/// State used to pack objects, under one lock: by the task that accepts objects and by packing of
/// cold ones. Readers never take it.
pub(super) struct Packing {
    /// Context of new objects: the current dictionary.
    pub(super) context: Arc<PackContext>,
    pub(super) training: Training,
    pub(super) references: ReferenceTable,
    /// Sizes of objects compressed with the dictionary.
    pub(super) sizes: Sizes,
    /// Sizes of objects as they are received.
    pub(super) plain_sizes: MeanSize,
    /// Changed objects that are still plain, oldest first. Those that were replaced or deleted stay
    /// until it is their turn.
    pub(super) fresh: VecDeque<Fresh>,
    pub(super) fresh_bytes: usize,
    /// Objects packed while a better dictionary was still expected.
    pub(super) repack: VecDeque<Weak<Raw>>,
    /// Length of `repack` at which dropped objects are removed from it.
    sweep_at: usize,
}

/// At most this many objects are repacked with a better dictionary.
const MAX_REPACK: usize = 1 << 16;
const MIN_SWEEP: usize = 1 << 10;

pub(super) struct Fresh {
    pub(super) since: Tick,
    pub(super) bytes: usize,
    pub(super) raw: Weak<Raw>,
}

/// Result of packing one object.
#[derive(Debug)]
pub(super) struct Compressed {
    /// None if it stays plain.
    pub(super) body: Option<Box<[u8]>>,
    pub(super) context: Arc<PackContext>,
    pub(super) outcome: PackOutcome,
}

/// How an object was packed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackOutcome {
    pub(super) group: GroupId,
    pub(super) how: PackedAs,
    /// Delta encoding was tried and rejected.
    pub(super) missed: bool,
    /// It can be the reference of others.
    pub(super) can_be_reference: bool,
}

/// Encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackedAs {
    /// Delta-encoded against a reference.
    Delta,
    /// Compressed with zstd, with a dictionary if there is one.
    Zstd,
    /// Not packed: it would save nothing.
    Plain,
}

impl Packing {
    pub(super) fn new(store: &Arc<StoreContext>) -> Self {
        Self {
            context: Arc::new(PackContext::new(Dictionary::none(), Arc::clone(store))),
            training: Training::default(),
            references: ReferenceTable::default(),
            sizes: Sizes::default(),
            plain_sizes: MeanSize::default(),
            fresh: VecDeque::new(),
            fresh_bytes: 0,
            repack: VecDeque::new(),
            sweep_at: MIN_SWEEP,
        }
    }

    /// Records how an object was packed, and its plain and stored sizes.
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

    /// Queues an object for repacking, if a better dictionary is expected.
    fn repack_later(&mut self, raw: &Weak<Raw>) {
        if !self.training.expects_better() {
            return;
        }
        if self.repack.len() >= self.sweep_at {
            self.repack.retain(|raw| raw.strong_count() > 0);
            self.sweep_at = (2 * self.repack.len()).max(MIN_SWEEP);
        }
        if self.repack.len() < MAX_REPACK {
            self.repack.push_back(Weak::clone(raw));
        }
    }

    /// Frees the memory of an empty repack queue.
    pub(super) fn shrink(&mut self) {
        if self.repack.is_empty() {
            self.repack = VecDeque::new();
            self.sweep_at = MIN_SWEEP;
        }
    }

    /// Queues a changed object of this size, to be packed when it is cold.
    pub(super) fn push_fresh(&mut self, since: Tick, plain: usize, raw: &Arc<Raw>) {
        // An entry takes memory even when its object is gone.
        let bytes = plain + size_of::<Raw>() + size_of::<Fresh>();
        self.fresh.push_back(Fresh { since, bytes, raw: Arc::downgrade(raw) });
        self.fresh_bytes += bytes;
    }

    pub(super) fn pop_fresh(&mut self) -> Option<Fresh> {
        let fresh = self.fresh.pop_front()?;
        self.fresh_bytes = self.fresh_bytes.saturating_sub(fresh.bytes);
        Some(fresh)
    }
}
