//! Waiting until all caches of a factory are full.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select_all;
use kube::core::ApiResource;
use tokio::time::timeout;

use super::registry::Live;
use super::scope::Scope;
use crate::client::ServerError;
use crate::informer::{Core, InvalidSetting, SyncStatus};
use crate::pipeline::health::Health;
use crate::pipeline::platform::watch;

/// Interval between warnings while waiting for informers that have not been started.
const WARN_INTERVAL: Duration = Duration::from_secs(10);

/// Some caches of a factory are not full, and waiting longer does not help. Lists the caches and
/// the causes.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
/// use kube_informer::Factory;
/// use kube_informer::factory::NotSynced;
///
/// let factory = Factory::new(client);
/// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
/// let widgets = factory.informer_for::<DynamicObject>(resource);
/// factory.start();
/// let error = factory.synced().await.unwrap_err();
/// assert!(matches!(&error.missing[0].cause, NotSynced::Refused(cause) if cause.is_not_found()));
/// assert!(error.to_string().starts_with("not every cache can be filled: widgets.example.com: listing"));
/// # drop(widgets);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FactorySyncError {
    /// The caches that are not full, sorted by name.
    pub missing: Vec<Missing>,
}

/// A cache that is not full yet.
///
/// ```
/// use kube_informer::factory::{FactorySyncError, Missing};
///
/// fn names(error: &FactorySyncError) -> Vec<&str> {
///     error.missing.iter().map(|missing: &Missing| missing.resource.plural.as_str()).collect()
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Missing {
    /// The resource of the cache.
    pub resource: ApiResource,
    /// The scope of the cache.
    pub scope: Scope,
    /// Why the cache is not full.
    pub cause: NotSynced,
}

/// Why a cache is not full.
///
/// ```
/// use kube_informer::factory::NotSynced;
///
/// // Whether the cause has to be fixed first.
/// fn needs_help(cause: &NotSynced) -> bool {
///     matches!(cause, NotSynced::Refused(_) | NotSynced::NotStarted)
/// }
/// assert!(needs_help(&NotSynced::NotStarted));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum NotSynced {
    /// The informer has not been started.
    NotStarted,
    /// A list is in progress.
    Listing {
        /// The number of objects received.
        objects: u64,
        /// The number of remaining objects, if the server reports it.
        remaining: Option<u64>,
    },
    /// The last request failed; it is retried.
    Failing(ServerError),
    /// The server refuses the request. It is retried, but waiting does not help.
    Refused(ServerError),
    /// The informer was built with a setting that is not valid, and has never run.
    Invalid(InvalidSetting),
    /// The informer has stopped.
    Stopped,
}

/// The caches that a wait is for, as weak references: dropped ones are not waited for.
pub(super) struct Awaited(Vec<AwaitedCache>);

struct AwaitedCache {
    core: Weak<Core>,
    resource: ApiResource,
    scope: Scope,
    health: watch::Receiver<Health>,
}

impl Awaited {
    pub(super) fn new(living: Vec<Live>) -> Self {
        let one = |live: Live| AwaitedCache {
            core: Arc::downgrade(&live.core),
            resource: live.core.resource().clone(),
            scope: live.scope,
            health: live.core.watch_health(),
        };
        Self(living.into_iter().map(one).collect())
    }

    pub(super) async fn synced(mut self) -> Result<(), FactorySyncError> {
        loop {
            let missing = self.missing();
            if missing.is_empty() {
                return Ok(());
            }
            let is_final =
                |cause: &NotSynced| matches!(cause, NotSynced::Refused(_) | NotSynced::Invalid(_) | NotSynced::Stopped);
            let failed = missing.iter().any(|one| is_final(&one.cause));
            // While other caches are still listing, their outcome is unknown and could not be in
            // the error.
            let listing = missing.iter().any(|one| matches!(one.cause, NotSynced::Listing { .. }));
            if failed && !listing {
                return Err(FactorySyncError { missing });
            }
            self.changed(&missing).await;
        }
    }

    /// Returns the caches that are not full, sorted by name.
    pub(super) fn missing(&mut self) -> Vec<Missing> {
        self.0.retain(|one| one.core.strong_count() > 0);
        let mut missing: Vec<Missing> = self.0.iter_mut().filter_map(AwaitedCache::missing).collect();
        missing.sort_by_key(ToString::to_string);
        missing
    }

    async fn changed(&mut self, missing: &[Missing]) {
        let mut any = select_all(self.0.iter_mut().map(|one| Box::pin(one.health.changed())));
        while timeout(WARN_INTERVAL, &mut any).await.is_err() {
            for one in missing.iter().filter(|one| matches!(one.cause, NotSynced::NotStarted)) {
                tracing::warn!(resource = %one.resource.plural, "waiting for an informer that has not been started");
            }
        }
    }
}

impl AwaitedCache {
    fn missing(&mut self) -> Option<Missing> {
        // Called before the status is read, so that a later change is not missed.
        self.health.mark_unchanged();
        let cause = match self.core.upgrade()?.sync_status() {
            SyncStatus::Synced => return None,
            SyncStatus::NotStarted => NotSynced::NotStarted,
            SyncStatus::Listing { objects, remaining } => NotSynced::Listing { objects, remaining },
            SyncStatus::Failing(cause) => NotSynced::Failing(cause),
            SyncStatus::Refused(cause) => NotSynced::Refused(cause),
            SyncStatus::Invalid(invalid) => NotSynced::Invalid(invalid),
            SyncStatus::Stopped => NotSynced::Stopped,
        };
        Some(Missing { resource: self.resource.clone(), scope: self.scope.clone(), cause })
    }
}

impl fmt::Display for FactorySyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not every cache can be filled")?;
        for (nth, missing) in self.missing.iter().enumerate() {
            write!(f, "{} {missing}", if nth == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::error::Error for FactorySyncError {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource.plural)?;
        if !self.resource.group.is_empty() {
            write!(f, ".{}", self.resource.group)?;
        }
        let scope = self.scope.to_string();
        if !scope.is_empty() {
            write!(f, " {scope}")?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started"),
            Self::Listing { objects, remaining: None } => write!(f, "{objects} objects listed so far"),
            Self::Listing { objects, remaining: Some(rest) } => write!(f, "{objects} objects listed, {rest} to come"),
            Self::Failing(cause) => write!(f, "{cause}; retrying"),
            Self::Refused(cause) => write!(f, "{cause}"),
            Self::Invalid(invalid) => write!(f, "{invalid}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}
