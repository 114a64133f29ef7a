//! The delays of failed items.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::moment::Moment;

/// Computes how long a failed item is delayed before its next try. Plain data, passed to a queue.
///
/// The default is that of client-go's controllers: 5 ms, doubled with each failure of the item up
/// to 1000 s, combined with a token bucket for all items: ten retries per second after a burst of
/// one hundred.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::WorkQueue;
/// use kube_informer::workqueue::RateLimit;
///
/// let limit = RateLimit::exponential(Duration::from_millis(5), Duration::from_secs(1000))
///     .and(RateLimit::bucket(Duration::from_millis(100), 100));
/// assert_eq!(format!("{limit:?}"), format!("{:?}", RateLimit::default()));
///
/// let patient = WorkQueue::<String>::new(limit.max_wait(Duration::from_secs(60)));
/// # assert!(patient.is_empty());
/// ```
#[derive(Debug, Clone)]
#[doc(alias = "RateLimiter")]
#[doc(alias = "TypedRateLimiter")]
#[doc(alias = "DefaultControllerRateLimiter")]
#[doc(alias = "DefaultTypedControllerRateLimiter")]
pub struct RateLimit {
    rule: Rule,
}

#[derive(Debug, Clone)]
enum Rule {
    None,
    Exponential { first: Duration, max: Duration },
    FastSlow { fast: Duration, slow: Duration, fast_tries: u32 },
    Bucket { every: Duration, burst: u32 },
    Custom(Custom),
    And(Box<Rule>, Box<Rule>),
    MaxWait(Box<Rule>, Duration),
}

#[derive(Clone)]
struct Custom(Arc<dyn Fn(u32) -> Duration + Send + Sync>);

impl RateLimit {
    /// Retries failed items immediately.
    #[must_use]
    pub fn none() -> Self {
        Self { rule: Rule::None }
    }

    /// Exponential backoff per item: `first` after the first failure, doubled after each further
    /// one, at most `max`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// let limit = RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(5));
    /// // The delays of an item that fails repeatedly: 1, 2, 4, 5, 5 s.
    /// ```
    #[must_use]
    #[doc(alias = "ItemExponentialFailureRateLimiter")]
    #[doc(alias = "TypedItemExponentialFailureRateLimiter")]
    #[doc(alias = "DefaultTypedItemBasedRateLimiter")]
    #[doc(alias(
        "NewItemExponentialFailureRateLimiter",
        "NewTypedItemExponentialFailureRateLimiter",
        "DefaultItemBasedRateLimiter"
    ))]
    pub fn exponential(first: Duration, max: Duration) -> Self {
        Self { rule: Rule::Exponential { first, max } }
    }

    /// `fast` after each of the first `fast_tries` failures of an item, `slow` after every further
    /// one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// let limit = RateLimit::fast_slow(Duration::from_secs(1), Duration::from_secs(60), 2);
    /// // The delays of an item that fails repeatedly: 1, 1, 60, 60 s.
    /// ```
    #[must_use]
    #[doc(alias = "ItemFastSlowRateLimiter")]
    #[doc(alias = "TypedItemFastSlowRateLimiter")]
    #[doc(alias("NewItemFastSlowRateLimiter", "NewTypedItemFastSlowRateLimiter"))]
    pub fn fast_slow(fast: Duration, slow: Duration, fast_tries: u32) -> Self {
        Self { rule: Rule::FastSlow { fast, slow, fast_tries } }
    }

    /// A token bucket shared by all items: one retry per `every`, with bursts of up to `burst`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// let limit = RateLimit::bucket(Duration::from_secs(10), 2);
    /// // The delays of an item that fails repeatedly: 0, 0, 10, 10 s.
    /// ```
    #[must_use]
    #[doc(alias = "BucketRateLimiter")]
    #[doc(alias = "TypedBucketRateLimiter")]
    pub fn bucket(every: Duration, burst: u32) -> Self {
        Self { rule: Rule::Bucket { every, burst } }
    }

    /// Calls `wait` with the number of previous failures of the item: 0 when it fails first.
    ///
    /// `wait` may use the queue: it is called before the queue is locked. If it panics, the delay
    /// is that of client-go's controllers for a single item.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// let linear = RateLimit::custom(|failures| Duration::from_secs(10) * (failures + 1)).max_wait(Duration::from_secs(30));
    /// // The delays of an item that fails repeatedly: 10, 20, 30, 30 s.
    /// ```
    #[must_use]
    pub fn custom(wait: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self { rule: Rule::Custom(Custom(Arc::new(wait))) }
    }

    /// The longer of the two delays; both limits are evaluated for each failure.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// let limit = RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(60));
    /// let floor = RateLimit::custom(|_| Duration::from_secs(3));
    /// let limit = limit.and(floor);
    /// // The delays of an item that fails repeatedly: 3, 3, 4, 8 s.
    /// ```
    #[must_use]
    #[doc(alias = "MaxOfRateLimiter")]
    #[doc(alias = "TypedMaxOfRateLimiter")]
    #[doc(alias("NewMaxOfRateLimiter", "NewTypedMaxOfRateLimiter"))]
    pub fn and(self, other: Self) -> Self {
        Self { rule: Rule::And(Box::new(self.rule), Box::new(other.rule)) }
    }

    /// Caps all delays at `max`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kube_informer::workqueue::RateLimit;
    ///
    /// let limit = RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(1000));
    /// let limit = limit.max_wait(Duration::from_secs(3));
    /// // The delays of an item that fails repeatedly: 1, 2, 3, 3 s.
    /// ```
    #[must_use]
    #[doc(alias = "WithMaxWaitRateLimiter")]
    #[doc(alias = "TypedWithMaxWaitRateLimiter")]
    #[doc(alias("NewWithMaxWaitRateLimiter", "NewTypedWithMaxWaitRateLimiter"))]
    pub fn max_wait(self, max: Duration) -> Self {
        Self { rule: Rule::MaxWait(Box::new(self.rule), max) }
    }

    pub(super) fn is_custom(&self) -> bool {
        self.rule.is_custom()
    }

    /// Calls the user's functions.
    pub(super) fn custom_waits(&self, failures: u32) -> CustomWaits {
        let mut waits = CustomWaits::default();
        self.rule.call_custom(failures, &mut waits);
        waits
    }
}

impl Default for RateLimit {
    fn default() -> Self {
        Self::exponential(FIRST, MAX).and(Self::bucket(Duration::from_millis(100), 100))
    }
}

const FIRST: Duration = Duration::from_millis(5);
const MAX: Duration = Duration::from_secs(1000);

impl Custom {
    /// Catches panics: a panic here would leave an item without an outcome, or abort the process
    /// if the item is being dropped by another panic.
    fn wait(&self, failures: u32) -> Duration {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.0)(failures))).unwrap_or_else(|_| {
            tracing::error!(failures, "the custom rate limit of a work queue panicked");
            exponential(FIRST, MAX, failures)
        })
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

fn exponential(first: Duration, max: Duration, failures: u32) -> Duration {
    let nanos = 1_u128.checked_shl(failures).and_then(|factor| first.as_nanos().checked_mul(factor));
    match nanos.filter(|nanos| *nanos < max.as_nanos()) {
        Some(nanos) => Duration::new((nanos / 1_000_000_000) as u64, (nanos % 1_000_000_000) as u32),
        None => max,
    }
}

impl Rule {
    fn is_custom(&self) -> bool {
        match self {
            Self::None | Self::Exponential { .. } | Self::FastSlow { .. } | Self::Bucket { .. } => false,
            Self::Custom(_) => true,
            Self::And(one, other) => one.is_custom() || other.is_custom(),
            Self::MaxWait(rule, _) => rule.is_custom(),
        }
    }

    fn call_custom(&self, failures: u32, waits: &mut CustomWaits) {
        match self {
            Self::None | Self::Exponential { .. } | Self::FastSlow { .. } | Self::Bucket { .. } => {}
            Self::Custom(custom) => waits.0.push(custom.wait(failures)),
            Self::And(one, other) => {
                one.call_custom(failures, waits);
                other.call_custom(failures, waits);
            }
            Self::MaxWait(rule, _) => rule.call_custom(failures, waits),
        }
    }
}

/// What the user's functions in a rule have returned, in the order of the rule. They are called
/// before the queue is locked.
#[derive(Debug, Default)]
pub(super) struct CustomWaits(Vec<Duration>);

/// The evaluation state of a rate limit: its rule and its token buckets.
#[derive(Debug)]
pub(super) struct Limiter {
    rule: Rule,
    /// For each bucket, in the order of the rule: when it will be full again.
    full_at: Vec<Moment>,
}

impl Limiter {
    pub(super) fn new(limit: RateLimit) -> Self {
        Self { full_at: vec![Moment::START; buckets(&limit.rule)], rule: limit.rule }
    }

    /// Returns the delay of an item that fails now and has failed `failures` times before.
    pub(super) fn wait(&mut self, failures: u32, custom: &CustomWaits, now: Moment) -> Duration {
        wait(&self.rule, &mut self.full_at.iter_mut(), &mut custom.0.iter(), failures, now)
    }
}

fn buckets(rule: &Rule) -> usize {
    match rule {
        Rule::Bucket { .. } => 1,
        Rule::And(one, other) => buckets(one) + buckets(other),
        Rule::MaxWait(rule, _) => buckets(rule),
        Rule::None | Rule::Exponential { .. } | Rule::FastSlow { .. } | Rule::Custom(_) => 0,
    }
}

fn wait<'a>(
    rule: &Rule,
    full_at: &mut impl Iterator<Item = &'a mut Moment>,
    custom: &mut impl Iterator<Item = &'a Duration>,
    failures: u32,
    now: Moment,
) -> Duration {
    match rule {
        Rule::None => Duration::ZERO,
        Rule::Exponential { first, max } => exponential(*first, *max, failures),
        Rule::FastSlow { fast, slow, fast_tries } => *if failures < *fast_tries { fast } else { slow },
        Rule::Bucket { every, burst } => {
            let full_at = full_at.next().expect("every bucket was counted");
            *full_at = (*full_at).max(now).after(*every);
            full_at.since(now.after(every.saturating_mul(*burst)))
        }
        Rule::Custom(_) => *custom.next().expect("every function was called"),
        Rule::And(one, other) => {
            wait(one, full_at, custom, failures, now).max(wait(other, full_at, custom, failures, now))
        }
        Rule::MaxWait(rule, max) => wait(rule, full_at, custom, failures, now).min(*max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn waits(limit: RateLimit, failures: impl IntoIterator<Item = u32>) -> Vec<Duration> {
        let functions = limit.clone();
        let custom = |failures| functions.custom_waits(failures);
        let mut limiter = Limiter::new(limit);
        failures.into_iter().map(|failures| limiter.wait(failures, &custom(failures), Moment::START)).collect()
    }

    #[test]
    fn an_exponential_wait_doubles_up_to_its_maximum() {
        let limit = RateLimit::exponential(MS, 10 * MS);
        assert_eq!(waits(limit, 0..6), [MS, 2 * MS, 4 * MS, 8 * MS, 10 * MS, 10 * MS]);
    }

    #[test]
    fn an_exponential_wait_never_overflows() {
        let limit = RateLimit::exponential(MS, MAX);
        assert_eq!(waits(limit, [5, 1000, u32::MAX]), [32 * MS, MAX, MAX]);
        assert_eq!(waits(RateLimit::exponential(Duration::MAX, Duration::MAX), [0, 40]), [Duration::MAX; 2]);
    }

    #[test]
    fn the_first_tries_are_fast_and_the_rest_slow() {
        let limit = RateLimit::fast_slow(5 * MS, 10 * Duration::from_secs(1), 3);
        let slow = Duration::from_secs(10);
        assert_eq!(waits(limit, 0..5), [5 * MS, 5 * MS, 5 * MS, slow, slow]);
    }

    #[test]
    fn the_longer_of_two_limits_holds() {
        let limit = RateLimit::fast_slow(5 * MS, 3000 * MS, 3).and(RateLimit::exponential(MS, 1000 * MS));
        assert_eq!(waits(limit, 0..5), [5 * MS, 5 * MS, 5 * MS, 3000 * MS, 3000 * MS]);
    }

    #[test]
    fn no_wait_exceeds_the_maximum() {
        let limit = RateLimit::fast_slow(5 * MS, 3000 * MS, 3).max_wait(1000 * MS);
        assert_eq!(waits(limit, 0..5), [5 * MS, 5 * MS, 5 * MS, 1000 * MS, 1000 * MS]);
    }

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_one_at_a_time() {
        let mut limiter = Limiter::new(RateLimit::bucket(100 * MS, 3));
        let mut take = |at: Duration| limiter.wait(7, &CustomWaits::default(), Moment::START.after(at));
        let begin = Duration::from_secs(1);
        assert_eq!([take(begin), take(begin), take(begin)], [Duration::ZERO; 3]);
        assert_eq!([take(begin), take(begin)], [100 * MS, 200 * MS]);
        assert_eq!(take(begin + 150 * MS), 150 * MS);
        assert_eq!(take(begin + 600 * MS), Duration::ZERO);
    }

    #[test]
    fn limits_that_are_combined_keep_buckets_of_their_own() {
        let mut limiter =
            Limiter::new(RateLimit::bucket(100 * MS, 1).and(RateLimit::bucket(10 * MS, 2).max_wait(5 * MS)));
        let waits: Vec<_> = (0..3).map(|_| limiter.wait(0, &CustomWaits::default(), Moment::START)).collect();
        assert_eq!(waits, [Duration::ZERO, 100 * MS, 200 * MS]);
    }

    #[test]
    fn a_bucket_without_a_burst_delays_every_item_and_one_without_an_interval_none() {
        assert_eq!(waits(RateLimit::bucket(MS, 0), 0..2), [MS, 2 * MS]);
        assert_eq!(waits(RateLimit::bucket(Duration::ZERO, 1), 0..2), [Duration::ZERO; 2]);
        assert_eq!(waits(RateLimit::bucket(Duration::MAX, 1), 0..1), [Duration::ZERO]);
    }

    #[test]
    fn the_default_is_that_of_client_gos_controllers() {
        let mut limiter = Limiter::new(RateLimit::default());
        let first: Vec<_> = (0..100).map(|_| limiter.wait(0, &CustomWaits::default(), Moment::START)).collect();
        assert_eq!(first, [5 * MS; 100]);
        assert_eq!(limiter.wait(0, &CustomWaits::default(), Moment::START), 100 * MS);
        assert_eq!(limiter.wait(60, &CustomWaits::default(), Moment::START), MAX);
    }

    #[test]
    fn a_custom_limit_that_panics_is_replaced_by_the_default_of_an_item() {
        let limit = RateLimit::custom(|failures| if failures == 1 { panic!("on purpose") } else { MS });
        assert_eq!(waits(limit, 0..3), [MS, 10 * MS, MS]);
    }
}
