//! The health of an informer.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::ServerError;
use crate::object::Version;
use crate::reflector::{self, ReflectorStatus};

/// The health of an informer at one point in time.
///
/// ```
/// # use kube_informer::{Condition, Health};
/// fn ready(health: &Health) -> Result<(), String> {
///     match &health.condition {
///         Condition::Degraded { cause, .. } => Err(cause.to_string()),
///         _ if health.is_synced() => Ok(()),
///         _ => Err("still listing".to_owned()),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Health {
    /// What it is doing.
    pub condition: Condition,
    /// The resource version that the cache has reached.
    #[doc(alias("LastSyncResourceVersion"))]
    pub version: Option<Version>,
    /// When the informer last received anything from the server. With several namespaces, the
    /// oldest of their times.
    ///
    /// A watch of a kind without changes may be silent for minutes: see
    /// [`Lister::fresh_within`](crate::Lister::fresh_within).
    pub last_contact: Option<Instant>,
    pub(crate) synced: bool,
    /// The error for which waiting for a first list cannot help.
    pub(crate) refused: Option<ServerError>,
}

/// What an informer is doing.
///
/// ```
/// use kube_informer::Condition;
///
/// fn line(condition: &Condition) -> String {
///     match condition {
///         Condition::Listing { objects, remaining: Some(remaining) } => format!("{objects} of {}", objects + remaining),
///         Condition::Degraded { cause, .. } => format!("retrying: {cause}"),
///         other => format!("{other:?}"),
///     }
/// }
/// assert_eq!(line(&Condition::Listing { objects: 500, remaining: Some(1500) }), "500 of 2000");
/// assert_eq!(line(&Condition::Synced), "Synced");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Condition {
    /// It has not been started.
    Idle,
    /// A list is in progress: the first one, or a relist.
    Listing {
        /// How many objects have been received.
        objects: u64,
        /// How many objects remain, if the server reports it.
        remaining: Option<u64>,
    },
    /// The cache is complete and follows the server.
    Synced,
    /// Something failed. The cache remains readable but becomes stale.
    Degraded {
        /// What failed.
        cause: ServerError,
        /// When it retries.
        next_try: Instant,
    },
    /// It has stopped permanently.
    #[doc(alias("IsStopped"))]
    Stopped,
}

impl Health {
    /// Whether the cache has been filled once, regardless of later failures.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::{Condition, Informer};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// server.faults().inject(Rule::new(Fault::status(500)));
    /// server.cut();
    /// maps.watch_health().wait_for(|health| matches!(health.condition, Condition::Degraded { .. })).await?;
    /// assert!(maps.health().is_synced());
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced
    }

    /// How long ago the informer last received anything from the server; `None` if it never has.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).build();
    /// assert_eq!(maps.health().contact_age(), None);
    /// maps.start();
    /// maps.synced().await?;
    /// tokio::time::sleep(Duration::from_secs(30)).await; // nothing changes, and nothing is sent
    /// assert!(maps.health().contact_age() >= Some(Duration::from_secs(29)));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn contact_age(&self) -> Option<Duration> {
        self.last_contact.map(|at| at.elapsed())
    }

    pub(crate) fn idle() -> Self {
        Self { condition: Condition::Idle, version: None, last_contact: None, synced: false, refused: None }
    }

    pub(crate) fn stopped(self) -> Self {
        Self { condition: Condition::Stopped, refused: None, ..self }
    }

    /// Combines the statuses of all reflectors.
    pub(crate) fn of(statuses: &[ReflectorStatus], synced: bool, version: Option<Version>) -> Self {
        let mut condition = if synced { Condition::Synced } else { Condition::Listing { objects: 0, remaining: None } };
        for status in statuses {
            condition = worse(condition, &status.state);
        }
        let unsynced = statuses.iter().filter(|status| status.synced == reflector::Synced::No);
        let mut refused = unsynced.filter_map(|status| match &status.state {
            reflector::ReflectorState::Waiting { cause, .. } if is_refusal(cause) => Some(cause.clone()),
            _ => None,
        });
        Self {
            refused: refused.next(),
            last_contact: statuses.iter().map(|status| status.last_contact).min().flatten(),
            condition,
            version,
            synced,
        }
    }
}

/// Combines `condition` with the state of another reflector.
fn worse(condition: Condition, state: &reflector::ReflectorState) -> Condition {
    match (condition, state) {
        (degraded @ Condition::Degraded { .. }, _) => degraded,
        (_, reflector::ReflectorState::Waiting { cause, until }) => {
            Condition::Degraded { cause: cause.clone(), next_try: *until }
        }
        (
            Condition::Listing { objects, remaining },
            reflector::ReflectorState::Listing { objects: more, remaining: left },
        ) => {
            let remaining = match (remaining, left) {
                (Some(a), Some(b)) => Some(a + b),
                (one, other) => one.or(*other),
            };
            Condition::Listing { objects: objects + more, remaining }
        }
        (_, reflector::ReflectorState::Listing { objects, remaining }) => {
            Condition::Listing { objects: *objects, remaining: *remaining }
        }
        (condition, _) => condition,
    }
}

/// Whether retrying cannot help until permissions, credentials or the resource definition change.
fn is_refusal(error: &ServerError) -> bool {
    error.is_unauthorized() || error.is_forbidden() || error.is_not_found()
}
