//! The shard that each scope holds completely.

use std::sync::Arc;

use crate::shard::Shard;
use crate::store::{Delta, WatchScope};

/// The shard whose objects are all in the store, for each scope of a sharded informer.
#[derive(Debug, Default)]
pub(super) struct HeldShards(Vec<(WatchScope, Arc<Shard>)>);

impl HeldShards {
    /// Notes what a batch of deltas makes known. The batch must be applied next.
    pub(super) fn note(&mut self, batch: &[Delta]) {
        for delta in batch {
            match delta {
                Delta::ShardHeld { scope, shard } => {
                    self.forget(scope);
                    self.0.push((scope.clone(), Arc::clone(shard)));
                }
                Delta::ShardLeft { scope, .. } | Delta::ScopeLeft(scope) => self.forget(scope),
                _ => {}
            }
        }
    }

    /// The shard that all of these scopes hold; none if they differ. Compared by identity: an
    /// equal shard may have been left in between.
    pub(super) fn of<'s>(&self, mut scopes: impl Iterator<Item = &'s WatchScope>) -> Option<Arc<Shard>> {
        let held = |scope: &WatchScope| self.0.iter().find(|(other, _)| other == scope).map(|(_, shard)| shard);
        let first = held(scopes.next()?)?;
        scopes.all(|scope| held(scope).is_some_and(|other| Arc::ptr_eq(other, first))).then(|| Arc::clone(first))
    }

    fn forget(&mut self, scope: &WatchScope) {
        self.0.retain(|(other, _)| other != scope);
    }
}
