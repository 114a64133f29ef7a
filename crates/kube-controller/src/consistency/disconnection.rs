//! Holds reconciles back while the connection of the reconciled kind's cache is lost.

use std::time::Duration;

use kube_informer::client::Failure;
use kube_informer::{Condition, Health};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::figures::FiguresRecorder;

/// Waits for the cache of the reconciled kind when its connection was lost.
///
/// The watches of a controller are independent. After an outage the watch of a child may be back
/// first: a child of an object that was deleted meanwhile would be created again.
#[derive(Debug, Clone)]
pub(crate) struct Disconnection {
    health: watch::Receiver<Health>,
    figures: FiguresRecorder,
    /// How long one key waits.
    bound: Duration,
}

impl Disconnection {
    pub(crate) fn new(health: watch::Receiver<Health>, figures: FiguresRecorder, bound: Duration) -> Self {
        Self { health, figures, bound }
    }

    /// Completes when the watch follows the server again, at the latest after the bound.
    pub(crate) async fn ended(&mut self) {
        if !is_disconnected(&self.health.borrow()) {
            return;
        }
        self.figures.record(|figures| figures.consistency.disconnected_waits += 1);
        // An error: the informer has stopped, and will never be connected again.
        let connected = self.health.wait_for(|health| !is_disconnected(health));
        if timeout(self.bound, connected).await.is_err() {
            self.figures.record(|figures| figures.consistency.disconnected_given_up += 1);
            tracing::warn!(
                waited = ?self.bound,
                "an object is reconciled although the connection of its watch is lost, and it may have changed"
            );
        }
    }
}

/// Whether the connection was lost and the cache is not known to have what it has missed since.
///
/// The list that follows when the server has forgotten the history belongs to it. Other failures,
/// such as an object that cannot be read, may last for good.
fn is_disconnected(health: &Health) -> bool {
    match &health.condition {
        Condition::Listing { .. } => true,
        Condition::Degraded { cause, .. } => {
            cause.is_expired()
                || matches!(
                    cause.failure(),
                    Failure::ConnectionRefused | Failure::Transport(_) | Failure::BodyCut(_) | Failure::TimedOut { .. }
                )
        }
        _ => false,
    }
}
