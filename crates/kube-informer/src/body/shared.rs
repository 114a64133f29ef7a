//! State shared by objects that are packed with the same dictionary or reference.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Raw;
use super::decoded_cache::DecodedCache;
use super::dictionary::Dictionary;
use super::{BodyEncoderSettings, Keep};

/// What an object was packed with, and the state shared by all objects of its store.
///
/// Each object holds one pointer to its context, which lives as long as any object packed with it.
#[derive(Debug)]
pub(crate) struct PackContext {
    packed_with: PackedWith,
    store: Arc<StoreContext>,
}

/// What the objects of a context are packed with.
#[derive(Debug)]
pub(crate) enum PackedWith {
    /// Boxed: most contexts hold a reference, which is smaller.
    Dictionary(Box<Dictionary>),
    /// Delta encoding against this object, which is itself packed with a dictionary. It may have
    /// left the store.
    Reference(Arc<Raw>),
}

/// State shared by all objects of one store, whatever they were packed with.
#[derive(Debug)]
pub(crate) struct StoreContext {
    keep: Keep,
    decodes_managed_fields: bool,
    decoded_cache: DecodedCache,
    decodes: AtomicU64,
}

impl PackContext {
    pub(super) fn new(dictionary: Dictionary, store: Arc<StoreContext>) -> Self {
        Self { packed_with: PackedWith::Dictionary(Box::new(dictionary)), store }
    }

    pub(super) fn with_reference(reference: Arc<Raw>, store: Arc<StoreContext>) -> Self {
        Self { packed_with: PackedWith::Reference(reference), store }
    }

    pub(super) fn packed_with(&self) -> &PackedWith {
        &self.packed_with
    }

    pub(super) fn dictionary(&self) -> Option<&Dictionary> {
        match &self.packed_with {
            PackedWith::Dictionary(dictionary) => Some(dictionary),
            PackedWith::Reference(_) => None,
        }
    }

    pub(super) fn reference(&self) -> Option<&Arc<Raw>> {
        match &self.packed_with {
            PackedWith::Dictionary(_) => None,
            PackedWith::Reference(reference) => Some(reference),
        }
    }

    pub(crate) fn store(&self) -> &Arc<StoreContext> {
        &self.store
    }
}

impl StoreContext {
    pub(super) fn new(settings: &BodyEncoderSettings) -> Self {
        Self {
            keep: settings.keep,
            decodes_managed_fields: settings.decode_managed_fields,
            decoded_cache: DecodedCache::new(settings.recent_bytes),
            decodes: AtomicU64::new(0),
        }
    }

    pub(crate) fn decodes_managed_fields(&self) -> bool {
        self.decodes_managed_fields
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    pub(crate) fn decoded_cache(&self) -> &DecodedCache {
        &self.decoded_cache
    }

    pub(crate) fn decodes(&self) -> u64 {
        self.decodes.load(Ordering::Relaxed)
    }

    pub(crate) fn count_decode(&self) {
        self.decodes.fetch_add(1, Ordering::Relaxed);
    }
}
