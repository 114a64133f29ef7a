//! What objects that are packed alike have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Keep;
use super::Raw;
use super::decoded_cache::DecodedCache;
use super::dictionary::Dictionary;

/// Where an object belongs: what it was packed with, and what it shares with all objects of its store.
///
/// One pointer of each object leads here. It stays alive as long as an object packed with the same.
#[derive(Debug)]
pub(crate) struct PackContext {
    packed_with: PackedWith,
    store: Arc<StoreContext>,
}

/// What objects are packed with.
#[derive(Debug)]
pub(crate) enum PackedWith {
    /// Boxed: patterns have many homes.
    Dictionary(Box<Dictionary>),
    /// An object that is packed by itself: others are told as differences from it. It may have left the store.
    Reference(Arc<Raw>),
}

/// What all objects of one store have in common, whichever dictionary they were packed with.
#[derive(Debug)]
pub(crate) struct StoreContext {
    keep: Keep,
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
    pub(super) fn new(keep: Keep, recent_bytes: usize) -> Self {
        Self { keep, decoded_cache: DecodedCache::new(recent_bytes), decodes: AtomicU64::new(0) }
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
