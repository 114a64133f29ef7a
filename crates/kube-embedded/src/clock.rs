//! The server's clock: wall time that follows tokio's, so that paused tests stay paused.

use std::time::SystemTime;

use http::HeaderValue;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::time::Instant;

/// Where the server's time comes from.
///
/// Wall time is read once, at start; from then on it moves with tokio's clock. On a paused clock an hour of watching
/// takes milliseconds, and time stamps still agree with the waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    wall: Timestamp,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let wall = Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { started: Instant::now(), wall }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.wall.checked_add(self.started.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// The present time as HTTP's headers have it.
    pub(crate) fn http_date(&self) -> HeaderValue {
        let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&self.now()).ok();
        text.and_then(|text| text.parse().ok())
            .unwrap_or_else(|| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
    }

    /// The present time as `metadata.creationTimestamp` has it: whole seconds.
    pub(crate) fn seconds(&self) -> String {
        Self::in_seconds(self.now())
    }

    pub(crate) fn in_seconds(time: Timestamp) -> String {
        let whole = Timestamp::from_second(time.as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
        whole.to_string()
    }
}
