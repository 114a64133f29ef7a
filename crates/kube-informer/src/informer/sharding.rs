//! Moving the shard of an informer.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;

use super::core::Core;
use crate::Informer;
use crate::object::Object;
use crate::shard::Shard;

/// The shard of an informer, which its reflectors follow.
pub(super) type Shards = watch::Sender<Arc<Shard>>;

/// A shard is not held, and waiting longer does not help.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::informer::ShardError;
/// use kube_informer::shard::{HashRanges, Shard, ShardKey};
///
/// let everything = Informer::<ConfigMap>::builder(client).start();
/// let shard = Shard::new(ShardKey::Uid, HashRanges::all());
/// assert_eq!(everything.set_shard(shard).await, Err(ShardError::NotSharded));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The informer was built without a shard.
    #[error("the informer was built without a shard, so it has none to move: build it with one")]
    NotSharded,
    /// Another shard was set before this one was held.
    #[error("another shard was set before the cache held this one")]
    Superseded,
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
}

impl<K: Object> Informer<K> {
    /// Moves the [shard](crate::InformerBuilder::shard). Takes effect when it is called; the future
    /// completes when the cache holds the new shard.
    ///
    /// - Objects that leave are deleted from the cache at once, with the final state
    ///   [`Filtered`](crate::FinalState::Filtered): they still exist on the server.
    /// - Objects that enter are listed alone, at the newest version, and are added with
    ///   [`Origin::Relist`](crate::Origin::Relist). When the future completes, the cache has what
    ///   was written to them before the call.
    /// - Objects that stay are not listed again. The watch of the new ranges continues from the
    ///   version that the old one has reached.
    ///
    /// Several moves that the informer has not noticed yet are one. Wait for a move that gives up
    /// ranges before they are given to another member: ranges that return unnoticed are not listed.
    ///
    /// A move before the first list is complete, during a relist, or to another
    /// [key](crate::shard::ShardKey) lists the whole shard instead.
    ///
    /// Objects that enter do not raise the version that [`wait_for`](Self::wait_for) waits for,
    /// which is that of the watch. The handles of a factory share one informer, and so its shard.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    /// use kube_informer::shard::{HashRanges, Shard, ShardKey};
    ///
    /// let shard = |ranges| Shard::new(ShardKey::Uid, ranges);
    /// let maps = Informer::<ConfigMap>::builder(client).shard(shard(HashRanges::NONE)).start();
    /// maps.synced().await?;
    /// assert!(maps.lister().is_empty());
    /// maps.set_shard(shard(HashRanges::all())).await?;
    /// assert_eq!(maps.lister().len(), 3);
    /// # Ok(()) });
    /// ```
    pub fn set_shard(&self, shard: Shard) -> impl Future<Output = Result<(), ShardError>> + Send + use<K> {
        self.core().set_shard(shard)
    }
}

impl Core {
    fn set_shard(self: &Arc<Self>, shard: Shard) -> impl Future<Output = Result<(), ShardError>> + Send + use<> {
        let (core, shard) = (Arc::clone(self), Arc::new(shard));
        if let Some(shards) = self.shards() {
            shards.send_replace(Arc::clone(&shard));
            // Wakes waits for the shard before it, which end.
            self.shared().advance(|_| {});
        }
        async move {
            let Some(shards) = core.shards() else { return Err(ShardError::NotSharded) };
            let mut progress = core.shared().progress();
            loop {
                let now = progress.borrow_and_update().clone();
                if now.stopped {
                    return Err(ShardError::Stopped);
                }
                if !Arc::ptr_eq(&shards.borrow(), &shard) {
                    return Err(ShardError::Superseded);
                }
                if now.shard.is_some_and(|held| Arc::ptr_eq(&held, &shard)) || !core.shared().has_scopes() {
                    return Ok(());
                }
                if progress.changed().await.is_err() {
                    return Err(ShardError::Stopped);
                }
            }
        }
    }
}
