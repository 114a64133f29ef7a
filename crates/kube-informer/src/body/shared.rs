//! What objects that are packed alike have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Keep;
use super::Raw;
use super::decoded_cache::Recent;
use super::dictionary::Dictionary;

/// Where an object belongs: what it was packed with, and what it shares with all objects of its store.
///
/// One pointer of each object leads here. It stays alive as long as an object packed with the same.
#[derive(Debug)]
pub(crate) struct Home {
    means: Means,
    common: Arc<Common>,
}

/// What objects are packed with.
#[derive(Debug)]
pub(crate) enum Means {
    /// Boxed: patterns have many homes.
    Dictionary(Box<Dictionary>),
    /// An object that is packed by itself: others are told as differences from it. It may have left the store.
    Pattern(Arc<Raw>),
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
        Self { means: Means::Dictionary(Box::new(dictionary)), common }
    }

    pub(super) fn of_pattern(pattern: Arc<Raw>, common: Arc<Common>) -> Self {
        Self { means: Means::Pattern(pattern), common }
    }

    pub(super) fn means(&self) -> &Means {
        &self.means
    }

    pub(super) fn dictionary(&self) -> Option<&Dictionary> {
        match &self.means {
            Means::Dictionary(dictionary) => Some(dictionary),
            Means::Pattern(_) => None,
        }
    }

    pub(super) fn pattern(&self) -> Option<&Arc<Raw>> {
        match &self.means {
            Means::Dictionary(_) => None,
            Means::Pattern(pattern) => Some(pattern),
        }
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
