//! The server's clock: wall time that advances with tokio's clock, so that tests can pause it.

use std::time::SystemTime;

use http::HeaderValue;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use tokio::time::Instant;

/// The server's source of wall time.
///
/// Wall time is read once, at start; from then on it advances with tokio's clock. On a paused clock
/// an hour of watching takes milliseconds, and timestamps still agree with the waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A clock that shows `wall` now; `None` is the current time.
    pub(crate) fn start(wall: Option<SystemTime>) -> Self {
        let wall = Timestamp::try_from(wall.unwrap_or_else(SystemTime::now)).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { started: Instant::now(), wall }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.wall.checked_add(self.started.elapsed()).unwrap_or(Timestamp::MAX)
    }

    /// The current time in the format of HTTP headers.
    pub(crate) fn http_date(&self) -> HeaderValue {
        let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&self.now()).ok();
        text.and_then(|text| text.parse().ok())
            .unwrap_or_else(|| HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"))
    }

    /// The current time in the format of `metadata.creationTimestamp`: whole seconds.
    pub(crate) fn seconds(&self) -> String {
        Self::in_seconds(self.now())
    }

    pub(crate) fn in_seconds(time: Timestamp) -> String {
        let whole = Timestamp::from_second(time.as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
        whole.to_string()
    }
}
