//! Everything about a reflector that can be set.

use std::time::Duration;

/// How many objects to ask for at a time where nothing else was set.
pub(crate) const PAGE: u32 = 500;

/// How a reflector lists, watches, waits and doubts. All of it can be changed; the defaults suit an API server.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::reflector::ReflectorSettings;
///
/// let settings = ReflectorSettings { quiet_after: Duration::from_secs(20), ..ReflectorSettings::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[doc(alias("ReflectorOptions"))]
pub struct ReflectorSettings {
    /// Whether the first list is asked for as a watch that begins with everything.
    pub streaming: Streaming,
    /// After how long without a new object a streaming list that has not said it is complete is given up for a LIST.
    pub streaming_deadline: Duration,
    /// After how many streaming lists in a row that ended early LIST is used instead.
    pub streaming_tries: u32,
    /// How many objects to ask for at once. Without it, as client-go does: 500, but all at once where the server answers from
    /// its cache.
    #[doc(alias("WatchListPageSize", "DisableChunking"))]
    pub page_size: Option<u32>,
    /// The least time that a watch is asked to last; each lasts a random time between this and twice this.
    #[doc(alias("MinWatchTimeout"))]
    pub watch_timeout: Duration,
    /// How much longer than asked for a watch may last before we end it ourselves.
    pub watch_overtime: Duration,
    /// A watch that ends sooner than this and has brought nothing was too short: the next one waits.
    pub short_watch: Duration,
    /// How long to wait for the answer to a request to begin.
    pub answer_timeout: Duration,
    /// How long a list may stop in the middle.
    pub list_idle_timeout: Duration,
    /// After how long without a byte a watch is doubted, the first time.
    pub quiet_after: Duration,
    /// How long a second watch beside a doubted one is given to bring something.
    pub probe_window: Duration,
    /// How long the doubted watch is given to bring what the second one has brought.
    pub stall_grace: Duration,
    /// Waiting after failures.
    pub backoff: BackoffSettings,
    /// How often to ask for a resource that the server does not know, while its definition is known not to be there. See
    /// [`Factory`](crate::Factory#kinds-that-come-and-go).
    pub absent_retry: Duration,
    /// The longest that a server may make us wait by `Retry-After`.
    pub longest_retry_after: Duration,
    /// For how long after an internal error of the server, sent in a watch, the watch is opened again without a list. None by
    /// default: the server may have lost track of what it was to tell.
    #[doc(alias("MaxInternalErrorRetryDuration", "RetryWithDeadline", "NewRetryWithDeadline"))]
    pub internal_error_patience: Duration,
    /// An internal error that comes so long after the one before has nothing to do with it.
    pub internal_errors_apart: Duration,
    /// After how many watches in a row that were too short, or in which something came that cannot be read, the list is made anew. A
    /// [`RetryWatch`](crate::RetryWatch) then ends, if it was for the latter.
    pub relist_after_strikes: u32,
    /// After how many failures in a row to open a watch, where the failure says nothing of the version, the list is made anew.
    pub relist_after_failures: u32,
}

/// Whether to use streaming lists.
///
/// ```
/// use kube_informer::reflector::{ReflectorSettings, Streaming};
///
/// // LIST from the start, as against servers that are known not to stream.
/// let settings = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[doc(alias("ToListWatcherWithWatchListSemantics"))]
pub enum Streaming {
    /// Until the server turns out not to do it.
    #[default]
    Preferred,
    /// Never.
    Never,
}

/// How waits grow from failure to failure.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::reflector::{BackoffSettings, ReflectorSettings};
///
/// let backoff = BackoffSettings { cap: Duration::from_secs(5), ..BackoffSettings::default() };
/// let settings = ReflectorSettings { backoff, ..ReflectorSettings::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[doc(alias("Backoff"))]
pub struct BackoffSettings {
    /// The longest the first wait can be.
    pub first: Duration,
    /// How much longer each further one can be.
    pub factor: f64,
    /// The longest any wait can be.
    pub cap: Duration,
    /// How much of a wait is left to chance: 0 for none, 1 for all of it.
    pub jitter: f64,
    /// After how long a time without a failure the first wait comes first again.
    pub reset_after: Duration,
}

impl ReflectorSettings {
    /// How long a watch is to last: seconds, as that is all a server takes. `chance` is between 0 and 1.
    pub(crate) fn watch_lasts(&self, chance: f64) -> Duration {
        let least = self.watch_timeout;
        Duration::from_secs((least + least.mul_f64(chance)).as_secs().max(1))
    }
}

impl Default for ReflectorSettings {
    fn default() -> Self {
        Self {
            streaming: Streaming::default(),
            streaming_deadline: Duration::from_secs(30),
            streaming_tries: 2,
            page_size: None,
            watch_timeout: Duration::from_secs(300),
            watch_overtime: Duration::from_secs(30),
            short_watch: Duration::from_secs(1),
            answer_timeout: Duration::from_secs(60),
            list_idle_timeout: Duration::from_secs(30),
            quiet_after: Duration::from_secs(70),
            probe_window: Duration::from_secs(10),
            stall_grace: Duration::from_secs(5),
            backoff: BackoffSettings::default(),
            absent_retry: Duration::from_secs(300),
            longest_retry_after: Duration::from_secs(120),
            internal_error_patience: Duration::ZERO,
            internal_errors_apart: Duration::from_secs(60),
            relist_after_strikes: 3,
            relist_after_failures: 5,
        }
    }
}

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(800),
            factor: 2.0,
            cap: Duration::from_secs(30),
            jitter: 0.5,
            reset_after: Duration::from_secs(120),
        }
    }
}
