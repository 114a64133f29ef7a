//! The request to stop.

use tokio::sync::watch;

/// The request to a task to end. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(super) fn new(stopping: watch::Receiver<bool>) -> Self {
        Self(stopping)
    }

    /// Completes when the manager shuts down.
    pub async fn requested(&self) {
        // An error: the manager was dropped.
        self.0.clone().wait_for(|stopping| *stopping).await.ok();
    }

    /// Whether the manager shuts down.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    pub(super) async fn into_requested(self) {
        self.requested().await;
    }
}
