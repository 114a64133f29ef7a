//! Reconciling one object: [`Outcome`], attempts and their history.
//!
//! `attempt` runs user code once: with a timeout, in a span, and safe from panics. Uses `error` and
//! `figures`.

use std::time::Duration;

pub(crate) use self::attempt::attempt;
pub(crate) use self::history::History;
pub use self::history::{Attempt, AttemptResult};

mod attempt;
mod history;

/// What a reconciler returns for an object when it has not failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[doc(alias("Action", "Result"))]
pub enum Outcome {
    /// Nothing is left to do until something changes.
    #[default]
    #[doc(alias = "await_change")]
    Done,
    /// To be called again after this time, or earlier if something changes.
    #[doc(alias = "RequeueAfter")]
    After(Duration),
    /// Not finished: to be called again, with the backoff of failures, but not as a failure.
    Requeue,
}
