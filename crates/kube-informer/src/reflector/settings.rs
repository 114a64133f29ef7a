//! Settings of a reflector.

use std::time::Duration;

/// The default page size of lists.
pub(crate) const PAGE: u32 = 500;

/// How a reflector lists, watches, backs off and detects stalled watches.
///
/// The defaults suit an API server.
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
    /// Whether the first list is requested as a streaming list (a watch that begins with all
    /// objects).
    pub streaming: Streaming,
    /// After how long without a new object a streaming list that is still incomplete is abandoned
    /// for a LIST.
    pub streaming_deadline: Duration,
    /// After how many consecutive streaming lists that ended early LIST is used instead.
    pub streaming_tries: u32,
    /// The page size of lists. `None` is what client-go does: 500, but no pagination where the
    /// server answers from its watch cache.
    #[doc(alias("WatchListPageSize", "DisableChunking"))]
    pub page_size: Option<u32>,
    /// The minimum duration requested for a watch; each gets a random duration between this and
    /// twice this.
    #[doc(alias("MinWatchTimeout"))]
    pub watch_timeout: Duration,
    /// How much longer than requested a watch may last before the reflector closes it.
    pub watch_overtime: Duration,
    /// A watch that ends sooner than this without any progress counts as too short, and backoff
    /// applies before the next one.
    pub short_watch: Duration,
    /// How long to wait for the response to a request to begin.
    pub answer_timeout: Duration,
    /// How long a list response may stall without a byte.
    pub list_idle_timeout: Duration,
    /// How long one response of a list may take to become complete, however steadily it arrives: a
    /// page, with the empty ones after it, or a streaming list up to the end of its initial events.
    /// Time in which the informer itself reads nothing does not count.
    pub list_timeout: Duration,
    /// How many bytes of objects one list may contain over all its pages, as the cache keeps them.
    /// A larger list fails and is requested again after backoff. The default is the size that etcd
    /// recommends as the largest for a whole cluster.
    pub max_list_bytes: u64,
    /// How many bytes of objects watches may add to the cache, as it keeps them, beyond those of
    /// the last complete list. A watch that adds more ends with an error, and everything is listed
    /// again after backoff, so that `max_list_bytes` applies to what there is. Measured each time
    /// that half of this was delivered, so that at most one and a half times as much is added.
    ///
    /// Objects that have changed and wait to be compressed count as they are: with
    /// [`Keep::Compact`](crate::Keep::Compact), a limit below 256 MB should not be below the size of
    /// all objects as received.
    pub max_watch_bytes: u64,
    /// After how long without a byte a watch is probed for the first time.
    pub quiet_after: Duration,
    /// How long the second watch, opened to probe a silent one, may take to deliver a change.
    pub probe_window: Duration,
    /// How long the silent watch may take to deliver a change that the second one has delivered.
    pub stall_grace: Duration,
    /// How long a request for a watch, or the probe of a silent one, may be unanswered before the
    /// informer counts as degraded. The request itself continues until `answer_timeout`.
    pub degraded_after: Duration,
    /// Backoff after failures.
    pub backoff: BackoffSettings,
    /// The upper bound of waits after a refusal that no retry can change, such as a field selector
    /// that the server does not support.
    pub rejected_retry: Duration,
    /// How often to request a resource that the server does not know, while its definition is known
    /// to be absent. See [`Factory`](crate::Factory#kinds-that-come-and-go).
    pub absent_retry: Duration,
    /// The longest `Retry-After` of a server that is honoured.
    pub longest_retry_after: Duration,
    /// For how long after an internal error, sent by the server in a watch, the watch is reopened
    /// without a relist. Zero by default: the server may have lost events.
    #[doc(alias("MaxInternalErrorRetryDuration", "RetryWithDeadline", "NewRetryWithDeadline"))]
    pub internal_error_tolerance: Duration,
    /// An internal error that occurs this long after the previous one counts as unrelated to it.
    pub internal_errors_apart: Duration,
    /// After how many consecutive watches that were too short, or that contained an undecodable
    /// frame, to relist. A [`RetryWatch`](crate::one_shot::RetryWatch) ends instead, if the reason
    /// is the latter.
    pub relist_after_bad_frames: u32,
    /// After how many consecutive failures to open a watch to relist, where the failure does not
    /// concern the version.
    pub relist_after_failures: u32,
}

/// Whether to use streaming lists.
///
/// ```
/// use kube_informer::reflector::{ReflectorSettings, Streaming};
///
/// // Uses LIST from the start, for servers known not to support streaming lists.
/// let settings = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[doc(alias("ToListWatcherWithWatchListSemantics"))]
pub enum Streaming {
    /// Streaming lists are used until the server turns out not to support them.
    #[default]
    Preferred,
    /// Streaming lists are never used.
    Never,
}

/// Exponential backoff: how waits grow from failure to failure.
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
    /// The upper bound of the first wait.
    pub first: Duration,
    /// The factor by which each further wait grows.
    pub factor: f64,
    /// The upper bound of any wait.
    pub cap: Duration,
    /// The fraction of a wait that is random: 0 for none, 1 for all of it.
    pub jitter: f64,
    /// After how long without a failure the backoff resets to the first wait.
    pub reset_after: Duration,
}

impl ReflectorSettings {
    /// The duration to request for a watch, in whole seconds, the only unit that a server accepts.
    /// `chance` is between 0 and 1.
    pub(crate) fn watch_duration(&self, chance: f64) -> Duration {
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
            list_timeout: Duration::from_secs(600),
            max_list_bytes: 8 << 30,
            max_watch_bytes: 1 << 30,
            quiet_after: Duration::from_secs(70),
            probe_window: Duration::from_secs(10),
            stall_grace: Duration::from_secs(5),
            degraded_after: Duration::from_secs(10),
            backoff: BackoffSettings::default(),
            rejected_retry: Duration::from_secs(300),
            absent_retry: Duration::from_secs(300),
            longest_retry_after: Duration::from_secs(120),
            internal_error_tolerance: Duration::ZERO,
            internal_errors_apart: Duration::from_secs(60),
            relist_after_bad_frames: 3,
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
