//! The times of an election.

use std::time::Duration;

/// How much longer than the retry period a candidate waits at most between two attempts, as a
/// fraction of the period.
pub(super) const JITTER: f64 = 1.2;

/// The times of an election: `lease_duration > renew_deadline > 1.2 × retry_period`.
///
/// The default is that of Kubernetes' own components: 15 s, 10 s, 2 s.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::leadership::LeaseTiming;
///
/// let seconds = Duration::from_secs;
/// let patient = LeaseTiming::new(seconds(60), seconds(40), seconds(5))?;
/// assert!(patient.renew_deadline() > LeaseTiming::default().renew_deadline());
/// let error = LeaseTiming::new(seconds(10), seconds(10), seconds(2)).unwrap_err();
/// assert_eq!(error.to_string(), "the lease duration (10s) must be longer than the renew deadline (10s)");
/// # Ok::<(), kube_controller::leadership::InvalidTiming>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTiming {
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
}

/// The times of an election do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTiming {
    /// A lease has its duration in seconds.
    #[error("the lease duration ({0:?}) must be a whole number of seconds, at least 1 and at most 2147483647")]
    NotInSeconds(Duration),
    /// A leader would write after its lease has expired.
    #[error("the lease duration ({lease_duration:?}) must be longer than the renew deadline ({renew_deadline:?})")]
    DeadlineTooLong {
        /// How long a lease is valid.
        lease_duration: Duration,
        /// How long a leader may write after a renewal.
        renew_deadline: Duration,
    },
    /// A leader would lose its lease without an attempt to renew it.
    #[error(
        "the renew deadline ({renew_deadline:?}) must be longer than 1.2 times the retry period ({retry_period:?})"
    )]
    DeadlineTooShort {
        /// How long a leader may write after a renewal.
        renew_deadline: Duration,
        /// The time between two renewals.
        retry_period: Duration,
    },
    /// Candidates would try without a pause.
    #[error("the retry period must be longer than zero")]
    NoRetryPeriod,
}

impl LeaseTiming {
    /// Checks the times.
    pub fn new(
        lease_duration: Duration,
        renew_deadline: Duration,
        retry_period: Duration,
    ) -> Result<Self, InvalidTiming> {
        let is_in_seconds = lease_duration.subsec_nanos() == 0 && i32::try_from(lease_duration.as_secs()).is_ok();
        if !is_in_seconds || lease_duration.is_zero() {
            return Err(InvalidTiming::NotInSeconds(lease_duration));
        }
        if lease_duration <= renew_deadline {
            return Err(InvalidTiming::DeadlineTooLong { lease_duration, renew_deadline });
        }
        if retry_period.is_zero() {
            return Err(InvalidTiming::NoRetryPeriod);
        }
        if renew_deadline.as_secs_f64() <= retry_period.as_secs_f64() * JITTER {
            return Err(InvalidTiming::DeadlineTooShort { renew_deadline, retry_period });
        }
        Ok(Self { lease_duration, renew_deadline, retry_period })
    }

    /// How long other candidates wait for a lease that does not change.
    #[must_use]
    pub fn lease_duration(&self) -> Duration {
        self.lease_duration
    }

    /// How long after the start of a successful renewal a leader may write.
    #[must_use]
    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    /// The time between two attempts. A candidate that is not the leader waits up to 2.2 times as
    /// long.
    #[must_use]
    pub fn retry_period(&self) -> Duration {
        self.retry_period
    }

    /// How long after the start of a successful renewal the response to a write is waited for:
    /// halfway between the last moment at which it may be sent and the end of the lease.
    pub(super) fn write_limit(&self) -> Duration {
        self.renew_deadline + (self.lease_duration - self.renew_deadline) / 2
    }

    /// How long one request of the election may take: so short that another one fits before the
    /// deadline.
    pub(super) fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    pub(super) fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }
}

impl Default for LeaseTiming {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { lease_duration: seconds(15), renew_deadline: seconds(10), retry_period: seconds(2) }
    }
}
