//! Waiting for a condition.

use std::time::{Duration, Instant};

use crate::Error;

/// Timeout, sufficient for an overloaded machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Repeats a check until it succeeds. After a timeout, returns the last error.
pub(crate) async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Result<T, String>) -> Result<T, Error> {
    let began = Instant::now();
    loop {
        match check().await {
            Ok(found) => return Ok(found),
            Err(wrong) if began.elapsed() > TIMEOUT => {
                return Err(format!("{what}: not after {} s: {wrong}", TIMEOUT.as_secs()).into());
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Waits for a future with a timeout.
pub(super) async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, Error> {
    tokio::time::timeout(TIMEOUT, wait).await.map_err(|_| format!("{what}: not after {} s", TIMEOUT.as_secs()).into())
}
