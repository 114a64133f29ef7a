//! The health of an informer.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::{Failure, ServerError};
use crate::codec::Wire;
use crate::object::Version;
use crate::reflector::{Degradation, ReflectorState, ReflectorStatus, Synced};
use crate::shard::ShardSupport;

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
    /// Received bytes do not mean that the cache is current: see [`caught_up`](Self::caught_up).
    pub last_contact: Option<Instant>,
    /// When the cache was last known to have everything that the server had. With several
    /// namespaces, the oldest of their times.
    ///
    /// Known are the time at which a completed list was requested, each change and bookmark of a
    /// watch that has delivered what was missed before it was opened, and probes that found nothing
    /// missed. The watch of a kind without changes may be silent for a minute or more.
    pub caught_up: Option<Instant>,
    /// Since when it has not been verified that the server still has the history that the cache has
    /// followed. With several namespaces, the oldest of their times.
    ///
    /// After a lost connection the next server may be one that was restored from a backup. If its
    /// version is older than that of the cache, everything is listed again. If it is newer, because
    /// the backup has been written to, the informer requests the object that changed last. `None`
    /// means that the server has that object as it was delivered, or that a list has replaced the
    /// cache. Otherwise the object was deleted, has changed again, or could not be requested, or
    /// there is none, because the cache was empty at the last list and nothing has changed since:
    /// then this time remains until the next list, and until then the cache may lack objects of the
    /// backup, or contain what the backup does not have, though its
    /// [`condition`](Self::condition) is [`Condition::Synced`].
    pub unverified_since: Option<Instant>,
    /// The wire format in which the server sends the objects; `None` before its first response.
    /// With several namespaces, JSON if it is for any of them.
    pub wire: Option<Wire>,
    /// Whether the server sends only the objects of the [shard](crate::InformerBuilder::shard), as
    /// of the last list; `None` without a shard. With several namespaces, the worst of them.
    pub shard: Option<ShardSupport>,
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
///         Condition::Listing { objects, remaining: Some(left) } => format!("{objects} of {}", objects.saturating_add(*left)),
///         Condition::Degraded { cause, since, .. } => format!("stale for {:?}: {cause}", since.elapsed()),
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
    /// A list is in progress: the first one, or a relist, during which the cache remains readable.
    Listing {
        /// How many objects have been received.
        objects: u64,
        /// How many objects remain, if the server reports it.
        remaining: Option<u64>,
    },
    /// The cache is complete and follows the server, and nothing indicates otherwise.
    Synced,
    /// Something failed, and it is not known what has been missed since. The cache remains readable
    /// but may be stale.
    ///
    /// It ends when the watch delivers something, when a list makes progress, or when a probe shows
    /// that nothing was missed. A request that is merely repeated does not end it.
    Degraded {
        /// What failed last.
        cause: ServerError,
        /// When the first failure occurred.
        since: Instant,
        /// When it retries; `None` while the retry is in progress.
        next_try: Option<Instant>,
    },
    /// The server does not serve the resource, in any version. Only of an informer that
    /// [waits for its resource to be served](crate::Factory::informer_when_served).
    Absent {
        /// When it looks again, unless the resource is defined before.
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

    /// How long ago the cache was last known to have everything that the server had; `None` if it
    /// never was.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::Informer;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// server.faults().inject(Rule::new(Fault::Disconnect));
    /// server.cut();
    /// tokio::time::sleep(Duration::from_secs(60)).await;
    /// assert!(maps.health().caught_up_age() >= Some(Duration::from_secs(60)));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn caught_up_age(&self) -> Option<Duration> {
        self.caught_up.map(|at| at.elapsed())
    }

    pub(crate) fn idle() -> Self {
        Self {
            condition: Condition::Idle,
            version: None,
            last_contact: None,
            caught_up: None,
            unverified_since: None,
            wire: None,
            shard: None,
            synced: false,
            refused: None,
        }
    }

    pub(crate) fn stopped(self) -> Self {
        Self { condition: Condition::Stopped, refused: None, ..self }
    }

    /// Combines the statuses of all reflectors.
    pub(crate) fn of(statuses: &[ReflectorStatus], synced: bool, version: Option<Version>) -> Self {
        let mut condition = if synced { Condition::Synced } else { Condition::Listing { objects: 0, remaining: None } };
        for status in statuses {
            condition = worse(condition, status);
        }
        let unsynced = statuses.iter().filter(|status| status.synced == Synced::No);
        let mut refused = unsynced.filter_map(|status| match &status.state {
            ReflectorState::Waiting { cause, .. } if cause.is_refusal() => Some(cause.clone()),
            _ => None,
        });
        Self {
            refused: refused.next(),
            last_contact: statuses.iter().map(|status| status.last_contact).min().flatten(),
            caught_up: statuses.iter().map(|status| status.caught_up).min().flatten(),
            unverified_since: statuses.iter().filter_map(|status| status.unverified_since).min(),
            wire: statuses
                .iter()
                .filter_map(|status| status.wire)
                .reduce(|one, other| if one == other { one } else { Wire::Json }),
            shard: statuses.iter().filter_map(|status| status.shard).reduce(ShardSupport::and),
            condition,
            version,
            synced,
        }
    }
}

/// Combines `condition` with the status of another reflector.
fn worse(condition: Condition, status: &ReflectorStatus) -> Condition {
    match (condition, degraded(status), &status.state) {
        (condition, _, ReflectorState::Waiting { cause, until }) if *cause.failure() == Failure::NotServed => {
            match condition {
                condition @ (Condition::Degraded { .. } | Condition::Absent { .. }) => condition,
                _ => Condition::Absent { next_try: *until },
            }
        }
        (Condition::Degraded { since, .. }, Some(other @ Condition::Degraded { since: earlier, .. }), _)
            if earlier < since =>
        {
            other
        }
        (condition @ Condition::Degraded { .. }, _, _) => condition,
        (_, Some(degraded), _) => degraded,
        (absent @ Condition::Absent { .. }, _, _) => absent,
        (
            Condition::Listing { objects, remaining },
            None,
            ReflectorState::Listing { objects: more, remaining: left },
        ) => {
            let remaining = match (remaining, left) {
                (Some(a), Some(b)) => Some(a.saturating_add(*b)),
                (one, other) => one.or(*other),
            };
            Condition::Listing { objects: objects.saturating_add(*more), remaining }
        }
        (_, None, ReflectorState::Listing { objects, remaining }) => {
            Condition::Listing { objects: *objects, remaining: *remaining }
        }
        (condition, None, _) => condition,
    }
}

/// The condition of a reflector that has failed, unless a list makes progress.
fn degraded(status: &ReflectorStatus) -> Option<Condition> {
    let Degradation { cause, since } = status.degraded.clone()?;
    let next_try = match &status.state {
        ReflectorState::Listing { objects: 1.., .. } => return None,
        ReflectorState::Waiting { until, .. } => Some(*until),
        _ => None,
    };
    Some(Condition::Degraded { cause, since, next_try })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_remains_never_overflows() {
        let listing = |remaining| ReflectorStatus {
            state: ReflectorState::Listing { objects: 1, remaining: Some(remaining) },
            ..ReflectorStatus::idle()
        };
        let health = Health::of(&[listing(u64::MAX), listing(7)], false, None);
        assert!(matches!(health.condition, Condition::Listing { objects: 2, remaining: Some(u64::MAX) }));
    }
}
