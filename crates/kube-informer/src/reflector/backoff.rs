//! Exponential backoff with jitter.

use std::time::Duration;

use super::settings::BackoffSettings;
use crate::client::ServerError;

/// Exponential backoff: each failure of any kind lengthens the wait. It resets only after a
/// failure-free time.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    settings: BackoffSettings,
    failures: u32,
    /// Since when there has been no failure.
    healthy_since: Option<Duration>,
}

impl Backoff {
    pub(crate) fn new(settings: BackoffSettings) -> Self {
        Self { settings, failures: 0, healthy_since: None }
    }

    /// Starts the failure-free time, if it has not already started.
    pub(crate) fn healthy(&mut self, now: Duration) {
        self.healthy_since.get_or_insert(now);
    }

    /// Resets to the first wait, because earlier failures do not predict the next one.
    pub(super) fn forget(&mut self) {
        self.failures = 0;
    }

    /// Whether the failure-free time has been long enough to reset the backoff.
    pub(crate) fn is_at_rest(&self, now: Duration) -> bool {
        self.healthy_since.is_some_and(|since| now.saturating_sub(since) >= self.settings.reset_after)
    }

    /// Records a failure and returns how long to wait: at least the server's `Retry-After`, which
    /// is capped at `longest`.
    pub(crate) fn after(&mut self, cause: &ServerError, now: Duration, chance: f64, longest: Duration) -> Duration {
        let retry_after = cause.retry_after().unwrap_or_default().min(longest);
        self.failed(now, chance).max(retry_after)
    }

    /// Records a failure and returns how long to wait. `chance`, between 0 and 1, selects the
    /// jitter.
    pub(crate) fn failed(&mut self, now: Duration, chance: f64) -> Duration {
        self.failed_up_to(self.settings.cap, now, chance)
    }

    /// Like [`failed`](Self::failed), with another cap.
    pub(super) fn failed_up_to(&mut self, cap: Duration, now: Duration, chance: f64) -> Duration {
        if self.is_at_rest(now) {
            self.failures = 0;
        }
        self.healthy_since = None;
        let BackoffSettings { first, factor, jitter, .. } = self.settings;
        let exponent = i32::try_from(self.failures).unwrap_or(i32::MAX);
        let longest = (first.as_secs_f64() * factor.powi(exponent)).min(cap.as_secs_f64());
        self.failures = self.failures.saturating_add(1);
        let wait = longest * (1.0 - jitter.clamp(0.0, 1.0) * chance.clamp(0.0, 1.0));
        Duration::try_from_secs_f64(wait).unwrap_or(cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn longest(backoff: &mut Backoff, now: f64) -> f64 {
        backoff.failed(seconds(now), 0.0).as_secs_f64()
    }

    #[test]
    fn waits_double_up_to_the_cap_and_stay_there() {
        let mut backoff = Backoff::new(BackoffSettings::default());
        let waits: Vec<f64> = (0..9).map(|nth| longest(&mut backoff, f64::from(nth))).collect();
        assert_eq!(waits, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0]);
        assert_eq!((0..10_000).map(|_| longest(&mut backoff, 0.0)).fold(0.0, f64::max), 30.0);
    }

    #[test]
    fn chance_only_ever_shortens_a_wait_and_never_below_half() {
        for chance in [0.0, 0.3, 0.999] {
            let mut backoff = Backoff::new(BackoffSettings::default());
            for nth in 0..20 {
                let wait = backoff.failed(Duration::ZERO, chance).as_secs_f64();
                let most = (0.8 * f64::powi(2.0, nth)).min(30.0);
                assert!(wait <= most && wait >= most / 2.0, "{wait} of {most}");
            }
        }
    }

    #[test]
    fn an_outage_of_hours_does_not_make_the_waits_short_again() {
        let mut backoff = Backoff::new(BackoffSettings::default());
        let mut now = 0.0;
        for nth in 0..1_000 {
            let wait = longest(&mut backoff, now);
            assert!(nth < 6 || (wait - 30.0).abs() < 1e-9);
            now += wait;
        }
    }

    #[test]
    fn only_two_healthy_minutes_make_the_waits_short_again() {
        let mut backoff = Backoff::new(BackoffSettings::default());
        longest(&mut backoff, 0.0);
        backoff.healthy(seconds(1.0));
        backoff.healthy(seconds(100.0));
        assert!((longest(&mut backoff, 120.9) - 1.6).abs() < 1e-9);
        assert!((longest(&mut backoff, 400.0) - 3.2).abs() < 1e-9, "time alone heals nothing");
        backoff.healthy(seconds(500.0));
        assert!((longest(&mut backoff, 620.0) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn waits_are_as_set() {
        let settings = BackoffSettings {
            first: Duration::from_millis(10),
            cap: Duration::from_millis(100),
            jitter: 0.0,
            ..BackoffSettings::default()
        };
        let mut backoff = Backoff::new(settings);
        let waits: Vec<u128> = (0..5).map(|_| backoff.failed(Duration::ZERO, 0.7).as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 100]);
    }
}
