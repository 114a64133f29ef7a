//! The loss of leadership.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The leadership is lost. The process should end: another one writes, or will soon.
///
/// Writes that were not sent for this reason fail with it as the source of their `kube::Error`: see
/// [`is_cause_of`](Self::is_cause_of).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the leadership by lease {lease} is lost: {cause}")]
pub struct LeadershipLost {
    pub(super) lease: Arc<str>,
    pub(super) cause: LossCause,
}

/// Why a leadership is lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LossCause {
    /// The lease was not renewed in time.
    #[error("it could not be renewed within {0:?}")]
    Expired(Duration),
    /// The lease names another holder, or none.
    #[error("it is held by {}", holder_text(.0))]
    TakenOver(String),
    /// This process has released the lease, or has ended its election.
    #[error("it was released")]
    Released,
}

fn holder_text(holder: &str) -> String {
    if holder.is_empty() { "nobody".to_owned() } else { format!("{holder:?}") }
}

impl LeadershipLost {
    /// The namespace and name of the lease.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// Why it was lost.
    #[must_use]
    pub fn cause(&self) -> &LossCause {
        &self.cause
    }

    /// Whether a request failed because the leadership was lost: the server has not received it.
    #[must_use]
    pub fn is_cause_of(error: &(dyn Error + 'static)) -> bool {
        error.is::<Self>() || error.source().is_some_and(Self::is_cause_of)
    }
}
