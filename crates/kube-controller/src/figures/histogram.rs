//! A histogram of durations with fixed buckets.

use std::time::Duration;

/// A histogram of durations, as Prometheus has them.
///
/// ```
/// use std::time::Duration;
/// use kube_controller::figures::Histogram;
///
/// let mut histogram = Histogram::new(&[0.1, 1.0]);
/// histogram.record(Duration::from_millis(100));
/// histogram.record(Duration::from_secs(5));
/// assert!(histogram.cumulative().eq([(0.1, 1), (1.0, 1), (f64::INFINITY, 2)]));
/// assert_eq!((histogram.count(), histogram.sum()), (2, Duration::from_millis(5_100)));
/// ```
#[derive(Debug, Clone)]
pub struct Histogram {
    /// Upper bounds in seconds, ascending.
    bounds: &'static [f64],
    /// One count for each bound, and one for what is above all of them.
    counts: Box<[u64]>,
    sum: Duration,
}

impl Histogram {
    /// Creates a histogram with these upper bounds in seconds, in ascending order.
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1].into(), sum: Duration::ZERO }
    }

    /// Counts a duration.
    pub fn record(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = self.bounds.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum = self.sum.saturating_add(duration);
    }

    /// Returns each upper bound in seconds with the number of durations up to it; infinity last.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }))
    }

    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        self.sum
    }
}
