//! A compact timestamp.

use std::time::Duration;

/// Nanoseconds since the queue was created: half the size of an `Instant`; overflows after more
/// than five centuries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Moment(u64);

impl Moment {
    pub(super) const START: Self = Self(0);

    #[inline]
    pub(super) fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Time elapsed since `earlier`; zero if `earlier` is later.
    #[inline]
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Like `since`, in nanoseconds: avoids building a `Duration` that may not be used.
    #[inline]
    pub(super) fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    #[inline]
    pub(super) fn nanos(self) -> u64 {
        self.0
    }
}
