//! Waiting until every cache is full.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select_all;
use kube::core::ApiResource;
use tokio::sync::watch;
use tokio::time::timeout;

use super::registry::Live;
use super::scope::Scope;
use crate::client::ServerError;
use crate::informer::{Core, SyncStatus};
use crate::pipeline::health::Health;

/// How long a wait for informers that nobody has started goes without a word.
const PATIENCE: Duration = Duration::from_secs(10);

/// Caches of a factory are not full, and some will not be by waiting. Says which, and why.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
/// use kube_informer::{Factory, NotSynced};
///
/// let factory = Factory::new(client);
/// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
/// let widgets = factory.informer_for::<DynamicObject>(resource);
/// factory.start();
/// let error = factory.synced().await.unwrap_err();
/// assert!(matches!(&error.missing[0].cause, NotSynced::Refused(cause) if cause.is_not_found()));
/// assert!(error.to_string().starts_with("not every cache can be filled: widgets.example.com: listing"));
/// # drop(widgets);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FactorySyncError {
    /// The caches that are not full, by name.
    pub missing: Vec<Missing>,
}

/// A cache that is not full yet.
///
/// ```
/// use kube_informer::{FactorySyncError, Missing};
///
/// fn names(error: &FactorySyncError) -> Vec<&str> {
///     error.missing.iter().map(|missing: &Missing| missing.resource.plural.as_str()).collect()
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Missing {
    /// Of which resource.
    pub resource: ApiResource,
    /// Which objects of it.
    pub scope: Scope,
    /// Why.
    pub cause: NotSynced,
}

/// Why a cache is not full.
///
/// ```
/// use kube_informer::NotSynced;
///
/// // Whether somebody has to do something first.
/// fn needs_help(cause: &NotSynced) -> bool {
///     matches!(cause, NotSynced::Refused(_) | NotSynced::NotStarted)
/// }
/// assert!(needs_help(&NotSynced::NotStarted));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum NotSynced {
    /// Its informer has not been started.
    NotStarted,
    /// A list is on its way.
    Listing {
        /// How many objects have come.
        objects: u64,
        /// How many are still to come, if the server says.
        remaining: Option<u64>,
    },
    /// Something failed, and is tried again.
    Failing(ServerError),
    /// The server refuses: waiting cannot help, though it is tried again.
    Refused(ServerError),
    /// Its informer has stopped.
    Stopped,
}

/// The caches that a wait is for. Keeps none of them alive: what nobody uses any more need not be waited for.
pub(super) struct Awaited(Vec<One>);

struct One {
    core: Weak<Core>,
    resource: ApiResource,
    scope: Scope,
    health: watch::Receiver<Health>,
}

impl Awaited {
    pub(super) fn new(living: Vec<Live>) -> Self {
        let one = |live: Live| One {
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
            let hopeless = missing.iter().any(|one| matches!(one.cause, NotSynced::Refused(_) | NotSynced::Stopped));
            // While others come along the error could not say what becomes of them.
            let listing = missing.iter().any(|one| matches!(one.cause, NotSynced::Listing { .. }));
            if hopeless && !listing {
                return Err(FactorySyncError { missing });
            }
            self.changed(&missing).await;
        }
    }

    /// What is not full yet, by name.
    pub(super) fn missing(&mut self) -> Vec<Missing> {
        self.0.retain(|one| one.core.strong_count() > 0);
        let mut missing: Vec<Missing> = self.0.iter_mut().filter_map(One::missing).collect();
        missing.sort_by_key(ToString::to_string);
        missing
    }

    async fn changed(&mut self, missing: &[Missing]) {
        let mut any = select_all(self.0.iter_mut().map(|one| Box::pin(one.health.changed())));
        while timeout(PATIENCE, &mut any).await.is_err() {
            for one in missing.iter().filter(|one| matches!(one.cause, NotSynced::NotStarted)) {
                tracing::warn!(resource = %one.resource.plural, "waiting for an informer that nobody has started");
            }
        }
    }
}

impl One {
    fn missing(&mut self) -> Option<Missing> {
        // Before looking, so that what comes after is not missed.
        self.health.mark_unchanged();
        let cause = match self.core.upgrade()?.standing() {
            SyncStatus::Synced => return None,
            SyncStatus::NotStarted => NotSynced::NotStarted,
            SyncStatus::Listing { objects, remaining } => NotSynced::Listing { objects, remaining },
            SyncStatus::Failing(cause) => NotSynced::Failing(cause),
            SyncStatus::Refused(cause) => NotSynced::Refused(cause),
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
            Self::Failing(cause) => write!(f, "{cause}; trying again"),
            Self::Refused(cause) => write!(f, "{cause}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}
