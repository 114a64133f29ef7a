//! The receiver of deltas.

use std::future::Future;

use tokio::sync::mpsc;

use crate::store::Delta;

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
