//! A point in the queue's time.

use std::time::Duration;

/// Nanoseconds since the queue was made: half of what an `Instant` takes, and enough for five centuries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Moment(u64);

impl Moment {
    pub(super) const START: Self = Self(0);

    #[inline]
    pub(super) fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How much later than `earlier` this is; nothing, if it is not.
    #[inline]
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The same in nanoseconds, for where it may turn out that nobody wants to know.
    #[inline]
    pub(super) fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    #[inline]
    pub(super) fn nanos(self) -> u64 {
        self.0
    }
}
