//! What a reflector is doing, and what it has done.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::ServerError;
use crate::object::Version;

/// A reflector, seen from outside.
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
    /// The version it has reached. Goes back only after the server did.
    #[doc(alias("LastSyncResourceVersion"))]
    pub version: Option<Version>,
    /// Whether a list has been completed.
    pub synced: Synced,
    /// When the server was last heard of.
    pub last_contact: Option<Instant>,
    /// What it has done so far.
    pub counters: Counters,
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
    /// A list is on its way.
    Listing {
        /// How many objects have come.
        objects: u64,
        /// How many are still to come, if the server says.
        remaining: Option<u64>,
    },
    /// A watch is being opened.
    Opening,
    /// A watch is open.
    Watching,
    /// Something failed; it waits before it tries again.
    Waiting {
        /// What failed.
        cause: ServerError,
        /// Until when it waits.
        until: Instant,
    },
    /// It has ended.
    Stopped,
}

impl ReflectorState {
    /// Whether this is the same to whoever waits for a change.
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
    /// At least once: what is in the store was true once.
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
    /// Requests for a list, each page counted.
    pub lists: u64,
    /// Requests for a streaming list.
    pub streaming_lists: u64,
    /// Requests for a watch.
    pub watches: u64,
    /// Objects that came in lists.
    pub listed: u64,
    /// Changes that came in watches.
    pub changes: u64,
    /// Bookmarks that came in watches.
    pub bookmarks: u64,
    /// Failures of any kind.
    pub errors: u64,
    /// Objects and frames that could not be read.
    pub decode_errors: u64,
    /// Times that a silent watch was doubted.
    pub probes: u64,
    /// Watches that were found to be stalled.
    pub stalls: u64,
    /// Lists made anew.
    pub relists: Relists,
}

/// How often the list was made anew, and why.
///
/// ```
/// use kube_informer::reflector::Relists;
///
/// assert_eq!(Relists::default().total(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Relists {
    /// The version was too old to go on from.
    pub expired: u64,
    /// The server had not reached the version.
    pub too_large: u64,
    /// The server went back in time.
    pub went_back: u64,
    /// The server sent a failure in a watch.
    pub server_error: u64,
    /// The server would not let us watch.
    pub refused: u64,
    /// Watches were closed at once, again and again.
    pub short_watches: u64,
    /// A frame could not be read, again and again.
    pub undecodable: u64,
}

/// Why a list is made anew.
///
/// ```
/// use kube_informer::reflector::RelistReason;
///
/// assert_eq!(format!("{:?}", RelistReason::WentBack), "WentBack");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RelistReason {
    /// The version was too old to go on from.
    Expired,
    /// The server had not reached the version.
    TooLarge,
    /// The server went back in time.
    WentBack,
    /// The server sent a failure in a watch.
    ServerError,
    /// The server would not let us watch.
    Refused,
    /// Watches were closed at once, again and again.
    ShortWatches,
    /// A frame could not be read, again and again.
    Undecodable,
}

impl Relists {
    /// How often in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        let Self { expired, too_large, went_back, server_error, refused, short_watches, undecodable } = self;
        expired + too_large + went_back + server_error + refused + short_watches + undecodable
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
        } += 1;
    }
}

impl ReflectorStatus {
    pub(super) fn new() -> Self {
        Self {
            state: ReflectorState::Idle,
            version: None,
            synced: Synced::No,
            last_contact: None,
            counters: Counters::default(),
        }
    }

    /// How long ago the server was last heard of.
    #[must_use]
    pub fn contact_age(&self) -> Option<Duration> {
        self.last_contact.map(|at| at.elapsed())
    }
}
