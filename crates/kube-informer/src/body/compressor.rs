//! Packing one object.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Raw;
use super::delta_encoding::{LONGEST_REFERENCE, Reference};
use super::dictionary::Dictionary;
use super::shared::PackContext;
use super::strip_metadata::Stripped;
use super::unpacker::{LARGEST_KEPT, Unpacker};
use crate::codec::Found;
use crate::object::Meta;

/// Presses kept between objects: one for whoever brings objects in, one for whoever packs cold ones.
const POOL_SIZE: usize = 2;

/// Packs objects, one after the other: as differences from a pattern, or with a dictionary.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    stripped: Stripped,
    packed: Vec<u8>,
    reference: Reference,
    /// Whose bytes the pattern has. Siblings follow one another in a list.
    reference_object: Weak<Raw>,
}

/// Presses that nobody uses.
#[derive(Debug, Default)]
pub(super) struct CompressorPool(Mutex<Vec<Compressor>>);

impl CompressorPool {
    pub(super) fn take(&self) -> Compressor {
        self.0.lock().pop().unwrap_or_default()
    }

    pub(super) fn put(&self, compressor: Compressor) {
        let mut pool = self.0.lock();
        if pool.len() < POOL_SIZE && compressor.size() <= LARGEST_KEPT {
            pool.push(compressor);
        }
    }
}

impl Compressor {
    /// Begins with an object: leaves out what its metadata holds.
    pub(crate) fn load(&mut self, plain: &[u8], found: &Found<'_>, meta: &Meta) {
        self.stripped.strip(plain, found, meta);
    }

    /// Packs it as a difference from the pattern that lives in this home. None if that takes more than `limit` bytes.
    pub(super) fn as_delta(&mut self, context: &PackContext, limit: usize) -> Option<Box<[u8]>> {
        let reference = context.reference()?;
        if !std::ptr::eq(Weak::as_ptr(&self.reference_object), Arc::as_ptr(reference)) {
            self.reference_object = Weak::new();
            let mut unpacker = Unpacker::take()?;
            let unpacked = unpacker.unpack_reference(reference, self.reference.reset());
            unpacker.put();
            unpacked?;
            self.reference_object = Arc::downgrade(reference);
        }
        let Stripped { head, rest, .. } = &self.stripped;
        self.packed.clear();
        self.packed.extend_from_slice(head);
        self.reference.encode(rest, limit.checked_sub(head.len())?, &mut self.packed)?;
        Some(self.packed.as_slice().into())
    }

    /// Packs it with a dictionary. None if that saves nothing.
    pub(super) fn with_dictionary(&mut self, dictionary: &Dictionary, plain: usize) -> Option<Box<[u8]>> {
        let Stripped { head, rest, .. } = &self.stripped;
        dictionary.compress(rest, &mut self.packed)?;
        let is_smaller = head.len() + self.packed.len() < plain;
        is_smaller.then(|| [head.as_slice(), &self.packed].concat().into())
    }

    /// What was packed last is the pattern now, and its bytes are at hand.
    pub(super) fn set_reference(&mut self, raw: &Arc<Raw>) {
        std::mem::swap(self.reference.reset(), &mut self.stripped.rest);
        self.reference_object = Arc::downgrade(raw);
    }

    /// Whether others can be told from it.
    pub(super) fn can_be_reference(&self) -> bool {
        self.stripped.rest.len() <= LONGEST_REFERENCE
    }

    fn size(&self) -> usize {
        self.stripped.rest.capacity() + self.packed.capacity() + self.reference.size()
    }
}
