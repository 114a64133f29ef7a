//! What objects that are packed alike have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Keep;
use super::dictionary::Dictionary;
use super::recent::Recent;

/// Where an object belongs: the dictionary it was packed with, and what it shares with all objects of its store.
///
/// One pointer of each object leads here. It stays alive as long as an object packed with its dictionary.
#[derive(Debug)]
pub(crate) struct Home {
    dictionary: Dictionary,
    common: Arc<Common>,
}

/// What all objects of one store have in common, whichever dictionary they were packed with.
#[derive(Debug)]
pub(crate) struct Common {
    keep: Keep,
    recent: Recent,
    decodes: AtomicU64,
}

impl Home {
    pub(super) fn new(dictionary: Dictionary, common: Arc<Common>) -> Self {
        Self { dictionary, common }
    }

    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    pub(crate) fn common(&self) -> &Arc<Common> {
        &self.common
    }
}

impl Common {
    pub(super) fn new(keep: Keep, recent_bytes: usize) -> Self {
        Self { keep, recent: Recent::new(recent_bytes), decodes: AtomicU64::new(0) }
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    pub(crate) fn decodes(&self) -> u64 {
        self.decodes.load(Ordering::Relaxed)
    }

    pub(crate) fn count_decode(&self) {
        self.decodes.fetch_add(1, Ordering::Relaxed);
    }
}
