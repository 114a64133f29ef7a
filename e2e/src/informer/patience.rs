//! Waiting for what is to come about.

use std::time::{Duration, Instant};

use crate::Error;

/// Longer than anything takes on a machine with too much to do.
const PATIENCE: Duration = Duration::from_secs(120);

/// Tries until it is so. What was still wrong at last is the error.
pub(super) async fn eventually<T>(what: &str, mut check: impl AsyncFnMut() -> Result<T, String>) -> Result<T, Error> {
    let began = Instant::now();
    loop {
        match check().await {
            Ok(found) => return Ok(found),
            Err(wrong) if began.elapsed() > PATIENCE => {
                return Err(format!("{what}: not after {} s: {wrong}", PATIENCE.as_secs()).into());
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Waits for something that may never come.
pub(super) async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> Result<T, Error> {
    tokio::time::timeout(PATIENCE, wait).await.map_err(|_| format!("{what}: not after {} s", PATIENCE.as_secs()).into())
}
