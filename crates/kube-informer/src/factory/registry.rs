//! The registry of a factory's caches.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use kube::Client;
use kube::core::{ApiResource, DynamicObject};
use parking_lot::Mutex;
use tokio::runtime;

use super::builder::Kinds;
use super::definitions::Definitions;
use super::scope::Scope;
use crate::body::Raw;
use crate::client::{ApiListWatch, ScopedResource};
use crate::informer::{Core, InformerBuilder, InformerOwner, InformerSettings, WhenRefused};
use crate::pipeline::controller::{ControllerShared, DecodeBody};

/// The caches of a factory, as weak references: a cache lives as long as one of its handles.
pub(super) struct Registry {
    pub(super) client: Client,
    pub(super) kinds: Kinds,
    pub(super) sources: Option<Sources>,
    pub(super) definitions: Arc<Definitions>,
    state: Mutex<RegistryState>,
}

pub(super) type Sources = Box<dyn Fn(ApiListWatch) -> ApiListWatch + Send + Sync>;

#[derive(Debug, Default)]
struct RegistryState {
    life: Life,
    caches: HashMap<Identity, Cache>,
    /// Dropped informers that still have tasks.
    ending: Vec<Arc<ControllerShared>>,
    /// Informers with detached handlers, which the factory keeps running.
    kept: Vec<Arc<Core>>,
}

#[derive(Debug, Clone, Default)]
enum Life {
    #[default]
    Idle,
    Started(runtime::Handle),
    ShutDown,
}

/// The key by which informers are shared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    group: String,
    version: String,
    plural: String,
    content: Content,
    versioning: Versioning,
    scope: Scope,
}

/// Whether an informer keeps to the version of its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Versioning {
    Fixed,
    /// It follows the resource to the version that the server prefers.
    Followed,
}

/// Whether the server sends whole objects or only metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Content {
    Whole,
    Metadata,
}

#[derive(Debug)]
struct Cache {
    core: Weak<Core>,
    shared: Arc<ControllerShared>,
}

/// A cache that is in use.
pub(super) struct Live {
    pub(super) core: Arc<Core>,
    pub(super) scope: Scope,
}

impl Registry {
    pub(super) fn new(client: Client, kinds: Kinds, sources: Option<Sources>) -> Self {
        let definitions = Definitions::new(client.clone());
        Self { client, kinds, sources, definitions, state: Mutex::default() }
    }

    /// Returns the informer of this resource and scope; creates it if there is none.
    pub(super) fn informer(
        self: &Arc<Self>,
        resource: ScopedResource,
        content: Content,
        versioning: Versioning,
        scope: Option<&Scope>,
        decode_ahead: DecodeBody,
    ) -> Arc<Core> {
        self.let_go_of_stopped();
        let ApiResource { group, version, plural, .. } = resource.resource.clone();
        let mut settings = self.kinds.settings(&resource.resource, content);
        if versioning == Versioning::Followed {
            settings = settings.when_refused(WhenRefused::Wait);
        }
        let mut scope = scope.cloned().unwrap_or_else(|| Scope::of(&settings));
        if resource.is_cluster_scoped() {
            scope = scope.all_namespaces();
        }
        let identity = Identity { group, version, plural, content, versioning, scope };
        self.existing(&identity).unwrap_or_else(|| {
            let core = self.build(resource, content, versioning, identity.scope.applied_to(settings), decode_ahead);
            self.add(identity, &core)
        })
    }

    /// Returns the informer of a resource that may not be served yet, by its plural and group.
    pub(super) fn informer_when_served(self: &Arc<Self>, name: &str, scope: Option<&Scope>) -> Arc<Core> {
        let (plural, group) = name.split_once('.').unwrap_or((name, ""));
        let resource = ApiResource {
            group: group.to_owned(),
            version: String::new(),
            api_version: String::new(),
            kind: String::new(),
            plural: plural.to_owned(),
        };
        let decode = Raw::decode_ahead::<DynamicObject>;
        self.informer(resource.into(), Content::Whole, Versioning::Followed, scope, decode)
    }

    fn existing(&self, identity: &Identity) -> Option<Arc<Core>> {
        // Declared before the guard, and so dropped after the lock is released: dropping the last
        // handle may run user code that calls the factory.
        let core;
        let state = self.state.lock();
        core = state.existing(identity)?;
        state.is_usable(&core).then(|| Arc::clone(&core))
    }

    /// Adds an informer, unless another thread has added one meanwhile; returns the one in use.
    fn add(&self, identity: Identity, core: &Arc<Core>) -> Arc<Core> {
        // Declared before the guard: see `existing`.
        let other;
        let life = {
            let mut state = self.state.lock();
            other = state.existing(&identity);
            if let Some(other) = &other
                && state.is_usable(other)
            {
                return Arc::clone(other);
            }
            state.add(identity, core);
            state.life.clone()
        };
        // The lock is released: a runtime that has been shut down drops the tasks at once, and with
        // them what the functions of the user hold.
        match life {
            Life::Idle => {}
            Life::Started(runtime) => {
                let _inside = runtime.enter();
                core.start();
            }
            Life::ShutDown => core.stop(),
        }
        Arc::clone(core)
    }

    fn build(
        self: &Arc<Self>,
        resource: ScopedResource,
        content: Content,
        versioning: Versioning,
        settings: InformerSettings<DynamicObject>,
        decode_ahead: DecodeBody,
    ) -> Arc<Core> {
        let definition_watch = self.definitions.definition_watch(&resource.resource);
        let mut builder = InformerBuilder::of_client(self.client.clone(), resource).settings(settings);
        builder =
            builder.shared(Arc::downgrade(self) as _).definition_watch(definition_watch).decode_ahead(decode_ahead);
        if content == Content::Metadata {
            builder = builder.metadata_only();
        }
        if versioning == Versioning::Followed {
            builder = builder.source(ApiListWatch::followed);
        }
        if let Some(change) = &self.sources {
            builder = builder.source(change);
        }
        Arc::clone(builder.build().core())
    }

    pub(super) fn start(&self) {
        let cores = {
            let mut state = self.state.lock();
            if let Life::Idle = state.life {
                state.life = Life::Started(runtime::Handle::current());
            }
            match state.life {
                Life::ShutDown => Vec::new(),
                Life::Idle | Life::Started(_) => state.all_living(),
            }
        };
        for live in cores {
            live.core.start();
        }
    }

    pub(super) fn living(&self) -> Vec<Live> {
        self.state.lock().all_living()
    }

    /// Stops all informers permanently, and returns those whose tasks have to end.
    pub(super) fn stop(&self) -> Vec<Arc<ControllerShared>> {
        // `_kept` is dropped after the lock is released, and after the informers have been stopped.
        let (cores, mut ending, _kept) = {
            let mut state = self.state.lock();
            state.life = Life::ShutDown;
            (state.all_living(), state.ending.clone(), std::mem::take(&mut state.kept))
        };
        for live in cores {
            live.core.stop();
            ending.push(Arc::clone(live.core.shared()));
        }
        ending
    }
}

impl Registry {
    /// Lets go of informers with detached handlers that one of their handles has stopped.
    fn let_go_of_stopped(&self) {
        let stopped: Vec<Arc<Core>> = self.state.lock().kept.extract_if(.., |core| core.is_stopped()).collect();
        // The lock is released: dropping a cache may run user code that calls the factory.
        drop(stopped);
    }
}

impl InformerOwner for Registry {
    fn keep(&self, core: &Arc<Core>) {
        self.let_go_of_stopped();
        let mut state = self.state.lock();
        let is_shut_down = matches!(state.life, Life::ShutDown);
        if !is_shut_down && !state.kept.iter().any(|kept| Arc::ptr_eq(kept, core)) {
            state.kept.push(Arc::clone(core));
        }
    }
}

impl RegistryState {
    fn existing(&self, identity: &Identity) -> Option<Arc<Core>> {
        self.caches.get(identity)?.core.upgrade()
    }

    /// Whether an informer can still be handed out. A stopped one cannot, unless the factory itself
    /// is shut down.
    fn is_usable(&self, core: &Core) -> bool {
        !core.is_stopped() || matches!(self.life, Life::ShutDown)
    }

    fn all_living(&mut self) -> Vec<Live> {
        self.remove_dropped();
        let live = |(identity, cache): (&Identity, &Cache)| {
            Some(Live { core: cache.core.upgrade()?, scope: identity.scope.clone() })
        };
        self.caches.iter().filter_map(live).collect()
    }

    fn add(&mut self, identity: Identity, core: &Arc<Core>) {
        self.remove_dropped();
        let cache = Cache { core: Arc::downgrade(core), shared: Arc::clone(core.shared()) };
        let before = self.caches.insert(identity, cache);
        self.ending.extend(before.map(|cache| cache.shared));
    }

    /// Removes dropped informers, and keeps them in `ending` only while they have tasks.
    fn remove_dropped(&mut self) {
        let dropped = self.caches.extract_if(|_, cache| cache.core.strong_count() == 0);
        self.ending.extend(dropped.map(|(_, cache)| cache.shared));
        self.ending.retain(|shared| !shared.has_ended());
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caches: Vec<String> =
            self.living().iter().map(|live| format!("{} {}", live.core.resource().plural, live.scope)).collect();
        f.debug_struct("Registry").field("caches", &caches).finish_non_exhaustive()
    }
}
