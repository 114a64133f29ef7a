//! The outcome of processing an item.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The outcome of [processing](super::WorkQueue::work) an item: the methods that end an
/// [`Item`](super::Item), as a value.
///
/// Converts from common return types: `()` and `Ok(())` are [`Forget`](Self::Forget), `Ok(outcome)`
/// is that outcome, and an error is [`Failed`](Self::Failed), which workers log.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::Outcome;
///
/// fn of(result: Result<Outcome, &str>) -> Outcome {
///     result.into()
/// }
/// assert_eq!(of(Err("no connection")), Outcome::Failed("no connection".into()));
/// assert_eq!(of(Ok(Outcome::RevisitAfter(Duration::from_secs(60)))), Outcome::RevisitAfter(Duration::from_secs(60)));
/// assert_eq!(Outcome::from(()), Outcome::Forget);
/// assert_eq!(Outcome::from(Ok::<(), std::fmt::Error>(())), Outcome::Forget);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "Result")]
#[doc(alias = "Action")]
pub enum Outcome {
    /// Processed; keeps the failure count.
    Done,
    /// Processed; resets the failure count.
    Forget,
    /// Failed; requeued after the delay that the rate limit computes.
    Retry,
    /// Like [`Retry`](Self::Retry), with the text of the error. A [worker](super::WorkQueue::work)
    /// logs it at `WARN`, with the queue and the item.
    Failed(Arc<str>),
    /// Requeued after this delay. Neither counts as a failure nor resets the failure count.
    RetryAfter(Duration),
    /// Processed; resets the failure count and requeues the item after this delay.
    #[doc(alias = "RequeueAfter")]
    RevisitAfter(Duration),
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Forget
    }
}

impl<R: Into<Self>, E: fmt::Display> From<Result<R, E>> for Outcome {
    fn from(result: Result<R, E>) -> Self {
        match result {
            Ok(done) => done.into(),
            // The alternate form of `anyhow` and others includes the causes.
            Err(error) => Self::Failed(format!("{error:#}").into()),
        }
    }
}
