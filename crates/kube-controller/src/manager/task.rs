//! What a manager runs.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tower::BoxError;

use super::stop::Stop;
use crate::controller::Controller;
use crate::leadership::Leadership;

/// A controller or a task that does not run yet.
pub(super) struct Task {
    pub(super) name: Arc<str>,
    pub(super) work: Work,
}

type TaskFuture = BoxFuture<'static, Result<(), BoxError>>;

pub(super) enum Work {
    Controller(Controller),
    /// A task of the leader.
    Leading(Box<dyn FnOnce(Leadership, Stop) -> TaskFuture + Send>),
    /// A task of every process.
    Always(Box<dyn FnOnce(Stop) -> TaskFuture + Send>),
}

impl Work {
    /// Whether this runs also in processes that do not lead.
    pub(super) fn is_of_every_process(&self) -> bool {
        match self {
            Self::Controller(controller) => controller.group().is_some(),
            Self::Leading(_) => false,
            Self::Always(_) => true,
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
