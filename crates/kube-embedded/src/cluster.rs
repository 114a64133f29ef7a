//! The state that all requests share.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};

use crate::api::tokens::TokenIssuer;
use crate::clock::Clock;
use crate::controllers::bootstrap;
use crate::http::status::Status;
use crate::kinds::custom_tables::CustomTables;
use crate::kinds::{Kind, Registry};
use crate::rng::Rng;
use crate::storage::{Storage, Window};

/// Time and size limits, and optional behaviour of the server. The defaults are those of the real
/// server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClusterSettings {
    pub(crate) window: Window,
    /// The interval between bookmarks of a watch.
    pub(crate) bookmark_interval: Duration,
    /// How long a request waits for a resource version that the server has not reached.
    pub(crate) version_wait_timeout: Duration,
    /// The minimum timeout of a watch that requests none itself; the maximum is twice that.
    pub(crate) min_watch_timeout: Duration,
    /// How many changes a watch may lag before it is closed.
    pub(crate) watch_backlog: usize,
    /// The maximum size of a request body.
    pub(crate) max_request_bytes: usize,
    /// The maximum number of connections at a time; further ones wait.
    pub(crate) max_connections: usize,
    /// How long a request body may take to arrive.
    pub(crate) body_timeout: Duration,
    /// Whether the first read of a custom kind gets 429, as on the real server while it creates the
    /// kind's watch cache.
    pub(crate) first_access: FirstAccess,
    pub(crate) garbage_collection: Controller,
    pub(crate) namespace_deletion: Controller,
    /// Whether further objects of a new real server are created at start.
    pub(crate) has_bootstrap_objects: bool,
    /// Whether lists and watches obey `shardSelector`, as with the feature gate
    /// `ShardedListAndWatch`.
    pub(crate) has_shards: bool,
    /// The seed of uids and generated names; `None` draws a random seed at start.
    pub(crate) seed: Option<u64>,
    /// The wall time at start; `None` is the current time.
    pub(crate) start_time: Option<SystemTime>,
}

/// Whether the server runs a controller that belongs to the controller manager in a real cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Controller {
    #[default]
    Disabled,
    Enabled,
}

/// The response to the first read of a new custom kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstAccess {
    /// 429 "storage is (re)initializing", as from the real server: clients must retry.
    Refused,
    /// The first read succeeds.
    Served,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            window: Window { changes: 20_000, age: Duration::from_secs(300) },
            bookmark_interval: Duration::from_secs(60),
            version_wait_timeout: Duration::from_secs(3),
            min_watch_timeout: Duration::from_secs(1800),
            watch_backlog: 10_000,
            max_request_bytes: 3 * 1024 * 1024,
            max_connections: 4096,
            body_timeout: Duration::from_secs(60),
            first_access: FirstAccess::Refused,
            garbage_collection: Controller::Disabled,
            namespace_deletion: Controller::Disabled,
            has_bootstrap_objects: false,
            has_shards: false,
            seed: None,
            start_time: None,
        }
    }
}

/// The state that every request uses.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) storage: Storage,
    pub(crate) clock: Clock,
    pub(crate) settings: ClusterSettings,
    pub(crate) rng: Rng,
    pub(crate) custom_tables: CustomTables,
    /// Held while addresses and ports of services are allocated.
    pub(crate) allocation: Mutex<()>,
    pub(crate) tokens: TokenIssuer,
    registry: RwLock<Arc<Registry>>,
}

impl Cluster {
    pub(crate) fn new(settings: ClusterSettings) -> Self {
        let cluster = Self {
            storage: Storage::new(settings.window),
            clock: Clock::start(settings.start_time),
            rng: Rng::new(settings.seed),
            custom_tables: CustomTables::default(),
            allocation: Mutex::default(),
            tokens: TokenIssuer::default(),
            settings,
            registry: RwLock::new(Arc::new(Registry::new())),
        };
        bootstrap::create_initial(&cluster);
        if settings.has_bootstrap_objects {
            bootstrap::create_more(&cluster);
        }
        cluster.begin();
        cluster
    }

    /// Starts the history at the current revision: no watch can start before the initial objects.
    fn begin(&self) {
        for kind in self.registry().kinds() {
            self.storage.progress(&kind.storage);
        }
        self.storage.compact();
    }

    /// The registry of kinds served now. A request reads it once and uses the same registry
    /// throughout.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().clone()
    }

    /// Replaces the registry of kinds with the result of `change`, which receives the current one.
    pub(crate) fn change_registry<E>(&self, change: impl FnOnce(&Registry) -> Result<Registry, E>) -> Result<(), E> {
        let mut registry = self.registry.write();
        *registry = Arc::new(change(&registry)?);
        Ok(())
    }

    /// Waits until the storage has reached a revision, for as long as the real server would.
    ///
    /// `within` is the client's timeout for the whole request.
    pub(crate) async fn reach(&self, kind: &Kind, revision: u64, within: Option<Duration>) -> Result<(), Status> {
        let mut revisions = self.storage.revisions();
        let current = self.storage.revision();
        if current >= revision {
            return Ok(());
        }
        if kind.is_uncached() {
            return Err(Status::too_large_version(revision, current, 0));
        }
        let timeout = self.settings.version_wait_timeout;
        let (wait, failure) = match within {
            Some(within) if within < timeout => (within, Status::request_timeout()),
            _ => (timeout, Status::too_large_version(revision, current, 1)),
        };
        match tokio::time::timeout(wait, revisions.wait_for(|reached| *reached >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(failure),
        }
    }
}
