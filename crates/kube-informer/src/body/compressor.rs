//! Packs one object at a time, with reusable buffers.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Raw;
use super::delta_encoding::{LONGEST_REFERENCE, Reference};
use super::dictionary::Dictionary;
use super::shared::PackContext;
use super::strip_metadata::Stripped;
use super::unpacker::{LARGEST_KEPT, Unpacker};
use crate::codec::ScannedObject;
use crate::object::Meta;

/// Compressors kept for reuse: one for the task that accepts objects, one for packing cold ones.
const POOL_SIZE: usize = 2;

/// Packs objects, one after the other: delta-encoded against a reference, or with a dictionary.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    stripped: Stripped,
    packed: Vec<u8>,
    reference: Reference,
    /// The object whose bytes `reference` holds. Siblings are adjacent in a list, so it is often
    /// reused.
    reference_object: Weak<Raw>,
}

/// Compressors not in use.
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
    /// Loads an object, without the parts that are stored in its metadata.
    pub(crate) fn load(&mut self, plain: &[u8], found: &ScannedObject<'_>, meta: &Meta) {
        self.stripped.strip(plain, found, meta);
    }

    /// Delta-encodes the loaded object against the reference of this context. None if the result
    /// exceeds `limit` bytes.
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

    /// Compresses the loaded object with a dictionary. None if that saves nothing.
    pub(super) fn with_dictionary(&mut self, dictionary: &Dictionary, plain: usize) -> Option<Box<[u8]>> {
        let Stripped { head, rest, .. } = &self.stripped;
        dictionary.compress(rest, &mut self.packed)?;
        let is_smaller = head.len() + self.packed.len() < plain;
        is_smaller.then(|| [head.as_slice(), &self.packed].concat().into())
    }

    /// Makes the loaded object, which is `raw`, the reference: its bytes need no unpacking.
    pub(super) fn set_reference(&mut self, raw: &Arc<Raw>) {
        std::mem::swap(self.reference.reset(), &mut self.stripped.rest);
        self.reference_object = Arc::downgrade(raw);
    }

    /// Whether the loaded object is short enough to be a reference.
    pub(super) fn can_be_reference(&self) -> bool {
        self.stripped.rest.len() <= LONGEST_REFERENCE
    }

    fn size(&self) -> usize {
        self.stripped.rest.capacity() + self.packed.capacity() + self.reference.size()
    }
}
