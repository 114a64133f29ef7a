//! Runs user code once.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::timeout;

use super::{AttemptResult, Outcome};
use crate::error::Error;
use crate::panic_text::panic_text;

/// Runs an attempt. A panic and a timeout are failures.
///
/// `start` is called inside, because it may panic too.
pub(crate) async fn attempt<F>(limit: Duration, start: impl FnOnce() -> F) -> AttemptResult
where
    F: Future<Output = Result<Outcome, Error>>,
{
    let attempt = AssertUnwindSafe(async { start().await }).catch_unwind();
    match timeout(limit, attempt).await {
        Ok(Ok(Ok(outcome))) => AttemptResult::Ok(outcome),
        Ok(Ok(Err(error))) if error.is_terminal() => AttemptResult::Terminal(error.to_string().into()),
        Ok(Ok(Err(error))) => AttemptResult::Failed(error.to_string().into()),
        Ok(Err(panic)) => AttemptResult::Panicked(panic_text(&*panic).into()),
        Err(_) => AttemptResult::TimedOut,
    }
}
