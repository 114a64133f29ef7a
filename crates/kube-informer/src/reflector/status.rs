//! What a reflector is doing, and what it has done.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::ServerError;
use crate::codec::Wire;
use crate::object::Version;
use crate::shard::ShardSupport;

/// The observable status of a reflector.
///
/// ```
/// use kube_informer::reflector::{ReflectorState, ReflectorStatus, Synced};
///
/// fn is_current(status: &ReflectorStatus) -> bool {
///     status.synced == Synced::Yes && matches!(status.state, ReflectorState::Watching)
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// What it is doing.
    pub state: ReflectorState,
    /// The last processed resource version. Decreases only after the server went back in time.
    #[doc(alias("LastSyncResourceVersion"))]
    pub version: Option<Version>,
    /// Whether a list has been completed.
    pub synced: Synced,
    /// When the reflector last received anything from the server.
    pub last_contact: Option<Instant>,
    /// When everything that the server had was last known to have been received.
    pub caught_up: Option<Instant>,
    /// The failure after which it is not known what was missed.
    pub degraded: Option<Degradation>,
    /// Since when it has not been verified that the server still has the history that it delivered.
    /// See [`Health::unverified_since`](crate::Health::unverified_since).
    pub unverified_since: Option<Instant>,
    /// The wire format of the last response.
    pub wire: Option<Wire>,
    /// Whether the server obeys the selector of the shard, as of the last list; none without a
    /// shard.
    pub shard: Option<ShardSupport>,
    /// What it has done so far.
    pub counters: Counters,
}

/// A failure after which it is not known what was missed.
///
/// It ends when the watch delivers something, when a list is complete, or when a probe shows that
/// nothing was missed; not when a request is merely repeated.
///
/// ```
/// use kube_informer::reflector::Degradation;
///
/// fn line(degraded: &Degradation) -> String {
///     format!("{} for {:?}", degraded.cause, degraded.since.elapsed())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Degradation {
    /// The last failure.
    pub cause: ServerError,
    /// When the first failure occurred.
    pub since: Instant,
}

impl Degradation {
    /// Whether a receiver that waits for a change can treat both as equal.
    pub(super) fn resembles(&self, other: &Self) -> bool {
        self.since == other.since
            && self.cause.operation() == other.cause.operation()
            && self.cause.failure() == other.cause.failure()
    }
}

/// What a reflector is doing.
///
/// ```
/// use kube_informer::reflector::ReflectorState;
///
/// fn line(state: &ReflectorState) -> String {
///     match state {
///         ReflectorState::Waiting { cause, .. } => format!("waiting: {cause}"),
///         ReflectorState::Listing { objects, .. } => format!("{objects} objects so far"),
///         other => format!("{other:?}"),
///     }
/// }
/// assert_eq!(line(&ReflectorState::Listing { objects: 3, remaining: None }), "3 objects so far");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReflectorState {
    /// It has not been started.
    Idle,
    /// A list is in progress.
    Listing {
        /// How many objects have been received.
        objects: u64,
        /// How many objects remain, if the server reports it.
        remaining: Option<u64>,
    },
    /// A watch is being opened.
    Opening,
    /// A watch is open.
    Watching,
    /// Something failed; the reflector backs off before it retries.
    Waiting {
        /// What failed.
        cause: ServerError,
        /// When it retries.
        until: Instant,
    },
    /// It has ended.
    Stopped,
}

impl ReflectorState {
    /// Whether a receiver that waits for a change can treat both as equal.
    pub(super) fn resembles(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Listing { objects, remaining }, Self::Listing { objects: others, remaining: remained }) => {
                (objects, remaining) == (others, remained)
            }
            (Self::Waiting { until, .. }, Self::Waiting { until: other, .. }) => until == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// Whether a list has ever been completed.
///
/// ```
/// use kube_informer::reflector::Synced;
///
/// assert_eq!(Synced::default(), Synced::No);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Synced {
    /// Not yet.
    #[default]
    No,
    /// At least once: the store holds a state that the server once had.
    Yes,
}

/// What a reflector has done so far.
///
/// ```
/// use kube_informer::reflector::Counters;
///
/// fn requests(done: &Counters) -> u64 {
///     done.lists + done.streaming_lists + done.watches + done.probes
/// }
/// assert_eq!(requests(&Counters::default()), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
#[doc(alias("SetReflectorMetricsProvider"))]
pub struct Counters {
    /// LIST requests, counting each page.
    pub lists: u64,
    /// Requests for a streaming list.
    pub streaming_lists: u64,
    /// Requests for a watch.
    pub watches: u64,
    /// Objects received in lists.
    pub listed: u64,
    /// Changes received in watches.
    pub changes: u64,
    /// Bookmarks received in watches.
    pub bookmarks: u64,
    /// Objects received that do not belong to the shard: only of servers that do not obey its
    /// selector.
    pub outside: u64,
    /// Failures of any kind.
    pub errors: u64,
    /// Objects and frames that could not be decoded.
    pub decode_errors: u64,
    /// How often the server's version was probed, such as because of a silent watch.
    pub probes: u64,
    /// Watches that were found to be stalled.
    pub stalls: u64,
    /// Relists, by reason.
    pub relists: Relists,
}

/// Relists, by reason.
///
/// ```
/// use kube_informer::reflector::Relists;
///
/// assert_eq!(Relists::default().total(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Relists {
    /// The resource version was too old to continue from (expired).
    pub expired: u64,
    /// The server had not reached the resource version yet.
    pub too_large: u64,
    /// The server went back in time, such as after a restore from a backup.
    pub went_back: u64,
    /// The server sent an error in a watch.
    pub server_error: u64,
    /// The server refused the watch.
    pub refused: u64,
    /// Consecutive watches were closed immediately.
    pub short_watches: u64,
    /// Frames of consecutive watches could not be decoded.
    pub undecodable: u64,
    /// Watches have added more than
    /// [`max_watch_bytes`](super::ReflectorSettings::max_watch_bytes) to the cache.
    pub grown: u64,
}

/// Why a relist happens.
///
/// ```
/// use kube_informer::reflector::RelistReason;
///
/// assert_eq!(format!("{:?}", RelistReason::WentBack), "WentBack");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RelistReason {
    /// The resource version was too old to continue from (expired).
    Expired,
    /// The server had not reached the resource version yet.
    TooLarge,
    /// The server went back in time, such as after a restore from a backup.
    WentBack,
    /// The server sent an error in a watch.
    ServerError,
    /// The server refused the watch.
    Refused,
    /// Consecutive watches were closed immediately.
    ShortWatches,
    /// Frames of consecutive watches could not be decoded.
    Undecodable,
    /// Watches have added more than
    /// [`max_watch_bytes`](super::ReflectorSettings::max_watch_bytes) to the cache.
    Grown,
}

impl Relists {
    /// The total number of relists.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { expired, too_large, went_back, server_error, refused, short_watches, undecodable, grown } = self;
        expired + too_large + went_back + server_error + refused + short_watches + undecodable + grown
    }

    pub(super) fn count(&mut self, reason: RelistReason) {
        *match reason {
            RelistReason::Expired => &mut self.expired,
            RelistReason::TooLarge => &mut self.too_large,
            RelistReason::WentBack => &mut self.went_back,
            RelistReason::ServerError => &mut self.server_error,
            RelistReason::Refused => &mut self.refused,
            RelistReason::ShortWatches => &mut self.short_watches,
            RelistReason::Undecodable => &mut self.undecodable,
            RelistReason::Grown => &mut self.grown,
        } += 1;
    }
}

impl ReflectorStatus {
    pub(crate) fn idle() -> Self {
        Self {
            state: ReflectorState::Idle,
            version: None,
            synced: Synced::No,
            last_contact: None,
            caught_up: None,
            degraded: None,
            unverified_since: None,
            wire: None,
            shard: None,
            counters: Counters::default(),
        }
    }

    /// How long ago the reflector last received anything from the server.
    #[must_use]
    pub fn contact_age(&self) -> Option<Duration> {
        self.last_contact.map(|at| at.elapsed())
    }
}
