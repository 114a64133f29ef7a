//! The receiver of deltas.

use std::future::Future;

use tokio::sync::mpsc;

use crate::store::{Delta, WatchScope};

/// Receives the reflector's deltas, in order.
///
/// While the sink has no room, `accept` does not complete and the reflector reads nothing:
/// backpressure reaches the server instead of filling memory.
///
/// ```
/// use kube_informer::store::Delta;
/// use kube_informer::reflector::{DeltaSink, SinkClosed};
///
/// /// Counts deltas and drops them.
/// struct Counting(u64);
///
/// impl DeltaSink for Counting {
///     async fn accept(&mut self, _: Delta) -> Result<(), SinkClosed> {
///         self.0 += 1;
///         Ok(())
///     }
/// }
/// ```
#[doc(alias("ReflectorStore", "ReflectorBookmarkStore", "ResourceVersionUpdater"))]
pub trait DeltaSink: Send {
    /// Takes a delta as soon as there is room.
    fn accept(&mut self, delta: Delta) -> impl Future<Output = Result<(), SinkClosed>> + Send;

    /// How many bytes of objects of this scope are held, approximately, including those that were
    /// accepted last. The reflector asks after each list, and each time a watch has delivered half
    /// of
    /// [`max_watch_bytes`](super::ReflectorSettings::max_watch_bytes), which is not applied if this
    /// is `None`.
    fn held_bytes(&self, scope: &WatchScope) -> Option<u64> {
        let _ = scope;
        None
    }
}

/// The sink is closed and takes no more deltas: the reflector ends.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use kube_informer::store::{Delta, WatchScope};
/// use kube_informer::reflector::{DeltaSink as _, SinkClosed};
///
/// let (mut deltas, receiver) = tokio::sync::mpsc::channel(1);
/// drop(receiver);
/// assert_eq!(deltas.accept(Delta::ScopeLeft(WatchScope::Everything)).await, Err(SinkClosed));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of deltas is gone")]
pub struct SinkClosed;

impl DeltaSink for mpsc::Sender<Delta> {
    async fn accept(&mut self, delta: Delta) -> Result<(), SinkClosed> {
        self.send(delta).await.map_err(|_| SinkClosed)
    }
}
