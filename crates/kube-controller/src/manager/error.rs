//! Why a manager has ended.

use std::io;
use std::sync::Arc;

use kube_informer::factory::FactorySyncError;
use tower::BoxError;

use crate::controller::NotSynced;
use crate::leadership::LeadershipLost;

/// Why a manager has ended, other than because it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// A cache of a controller cannot be filled.
    #[error(transparent)]
    Controller(Box<NotSynced>),
    /// Caches of the factory cannot be filled.
    #[error(transparent)]
    Caches(#[from] FactorySyncError),
    /// The leadership is lost. Another process leads, or will soon.
    #[error(transparent)]
    LeadershipLost(#[from] LeadershipLost),
    /// A task has failed.
    #[error("the task {task} has failed: {cause}")]
    Task {
        /// The name of the task.
        task: Arc<str>,
        /// Its error.
        #[source]
        cause: BoxError,
    },
    /// A controller or a task has panicked.
    #[error("the task {task} has panicked: {message}")]
    Panicked {
        /// The name of the controller or task.
        task: Arc<str>,
        /// The text of the panic.
        message: String,
    },
    /// These controllers and tasks did not end in time and were cancelled.
    #[error("cancelled, because the shutdown took too long: {}", .0.join(", "))]
    Unfinished(Vec<String>),
    /// The signals of the process cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(#[source] io::Error),
}

impl From<NotSynced> for ManagerError {
    fn from(cause: NotSynced) -> Self {
        Self::Controller(Box::new(cause))
    }
}
