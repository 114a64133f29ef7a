//! What was counted of a group.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// What a member of a group has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ShardFigures {
    /// Ranges that are held now.
    pub ranges_held: usize,
    /// Ranges that were claimed after another member had released them, or that no one had held.
    pub claimed: u64,
    /// Ranges that were claimed after the lease of their holder had expired.
    pub taken_over: u64,
    /// Ranges that were released to other members.
    pub released: u64,
    /// Ranges that were lost: with the lease, or because the record was changed by hand.
    pub lost: u64,
    /// How long the claimed ranges had no owner, in total: from the time at which this member has
    /// observed that, which for an expired lease is its last renewal.
    pub without_owner: Duration,
    /// The longest of these times.
    pub longest_without_owner: Duration,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ShardFiguresRecorder(Arc<Mutex<ShardFigures>>);

impl ShardFiguresRecorder {
    pub(super) fn record(&self, f: impl FnOnce(&mut ShardFigures)) {
        f(&mut self.0.lock());
    }

    pub(super) fn snapshot(&self) -> ShardFigures {
        *self.0.lock()
    }
}
