//! How work went.

use std::time::Duration;

/// What is to become of an item that has been [worked](super::WorkQueue::work) on: the verdicts of an [`Item`](super::Item), as a value.
///
/// Made of what functions usually return: nothing, or `Ok`, is [`Forget`](Self::Forget), unless it says more itself; any error is
/// [`Retry`](Self::Retry). The error itself goes nowhere: to tell it is for the function.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::Outcome;
///
/// fn of(result: Result<Outcome, std::fmt::Error>) -> Outcome {
///     result.into()
/// }
/// assert_eq!(of(Err(std::fmt::Error)), Outcome::Retry);
/// assert_eq!(of(Ok(Outcome::RevisitAfter(Duration::from_secs(60)))), Outcome::RevisitAfter(Duration::from_secs(60)));
/// assert_eq!(Outcome::from(()), Outcome::Forget);
/// assert_eq!(Outcome::from(Ok::<(), std::fmt::Error>(())), Outcome::Forget);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "Result")]
#[doc(alias = "Action")]
pub enum Outcome {
    /// It is done; its failures are still counted.
    Done,
    /// It is done, and its failures are forgotten.
    Forget,
    /// It has failed and comes back when the rate limit lets it.
    Retry,
    /// It is to come back after this time. This is no failure, and forgets none.
    RetryAfter(Duration),
    /// It is done and its failures are forgotten; it is to come back after this time to be looked at again.
    #[doc(alias = "RequeueAfter")]
    RevisitAfter(Duration),
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Forget
    }
}

impl<R: Into<Self>, E> From<Result<R, E>> for Outcome {
    fn from(result: Result<R, E>) -> Self {
        result.map_or(Self::Retry, Into::into)
    }
}
