//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use crate::clock::Clock;
use crate::controllers::namespaces;
use crate::http::status::Status;
use crate::kinds::custom_tables::CustomTables;
use crate::kinds::{Kind, Registry};
use crate::rng::Rng;
use crate::storage::{Storage, Window};

/// What can be set about the server's behaviour in time and size. The defaults are those of the real server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) window: Window,
    /// How often a watch is told how far the server is.
    pub(crate) bookmark_interval: Duration,
    /// How long a request waits for a version that the server has not reached.
    pub(crate) version_patience: Duration,
    /// The shortest life of a watch that names no time-out itself; at most it lives twice as long.
    pub(crate) min_watch_timeout: Duration,
    /// How many changes a watch may lag before it is closed.
    pub(crate) watch_backlog: usize,
    /// The largest body of a request.
    pub(crate) max_request_bytes: usize,
    /// Whether a custom kind refuses its very first reader, as the real server does while it makes the kind's cache.
    pub(crate) first_access: FirstAccess,
    pub(crate) garbage_collection: Chore,
    pub(crate) namespace_deletion: Chore,
    /// Where uids and generated names come from; none is a new one each time.
    pub(crate) seed: Option<u64>,
}

/// Whether the server does what on a real cluster is the controller manager's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Chore {
    #[default]
    Left,
    Done,
}

/// What the first reader of a new custom kind gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstAccess {
    /// 429 "storage is (re)initializing", as from the real server: clients must come again.
    Refused,
    /// An answer at once.
    Served,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: Window { changes: 20_000, age: Duration::from_secs(300) },
            bookmark_interval: Duration::from_secs(60),
            version_patience: Duration::from_secs(3),
            min_watch_timeout: Duration::from_secs(1800),
            watch_backlog: 10_000,
            max_request_bytes: 3 * 1024 * 1024,
            first_access: FirstAccess::Refused,
            garbage_collection: Chore::Left,
            namespace_deletion: Chore::Left,
            seed: None,
        }
    }
}

/// Everything a request needs.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) storage: Storage,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) rng: Rng,
    pub(crate) custom_tables: CustomTables,
    registry: RwLock<Arc<Registry>>,
}

impl Cluster {
    pub(crate) fn new(settings: Settings) -> Self {
        let cluster = Self {
            storage: Storage::new(settings.window),
            clock: Clock::start(),
            rng: Rng::new(settings.seed),
            custom_tables: CustomTables::default(),
            settings,
            registry: RwLock::new(Arc::new(Registry::new())),
        };
        namespaces::create_initial(&cluster);
        cluster.begin();
        cluster
    }

    /// Lets history begin now: what was there at the start cannot be watched from before it.
    fn begin(&self) {
        for kind in self.registry().kinds() {
            self.storage.progress(&kind.storage);
        }
        self.storage.compact();
    }

    /// The kinds served now. A request reads it once and keeps to it.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().clone()
    }

    /// Serves other kinds from now on: `change` gets the present ones and gives the new ones.
    pub(crate) fn change_registry<E>(&self, change: impl FnOnce(&Registry) -> Result<Registry, E>) -> Result<(), E> {
        let mut registry = self.registry.write();
        *registry = Arc::new(change(&registry)?);
        Ok(())
    }

    /// Waits until the store has reached a revision, for as long as the real server would.
    ///
    /// `within` is the time the client gives the whole request.
    pub(crate) async fn reach(&self, kind: &Kind, revision: u64, within: Option<Duration>) -> Result<(), Status> {
        let mut revisions = self.storage.revisions();
        let current = self.storage.revision();
        if current >= revision {
            return Ok(());
        }
        if kind.is_uncached() {
            return Err(Status::too_large_version(revision, current, 0));
        }
        let patience = self.settings.version_patience;
        let (wait, failure) = match within {
            Some(within) if within < patience => (within, Status::request_timeout()),
            _ => (patience, Status::too_large_version(revision, current, 1)),
        };
        match tokio::time::timeout(wait, revisions.wait_for(|reached| *reached >= revision)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(failure),
        }
    }
}
