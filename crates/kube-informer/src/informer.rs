//! The informer: [`Informer`], its builder and settings, listers, indexes, handlers and waits.

// May use `object`, `codec`, `client`, `body`, `store`, `reflector` and `pipeline`. Must not use
// `factory`, `one_shot` or `workqueue`.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use kube::Client;
use kube::core::ApiResource;

pub use self::builder::InformerBuilder;
pub use self::error::{InvalidSetting, SetNamespacesError, Stale, SyncError, WaitError};
pub use self::handler::HandlerBuilder;
pub use self::index::{Index, WeakIndex};
pub use self::lister::{Lister, NamespaceLister, ObjRef, Snapshot, WeakLister};
pub use self::settings::{InformerSettings, WhenRefused};
pub use self::sharding::ShardError;
pub use self::subscription::{Registration, Subscription};

pub(crate) use self::core::{Core, InformerOwner, SyncStatus};
pub(crate) use self::settings::ScopeText;

use crate::body::Obj;
use crate::client::{ListWatch, ScopedResource};
use crate::object::{FieldPath, Kind, Object, OrText, check_namespace};
use crate::pipeline::InformerName;
use crate::store::{Event, WatchScope};

mod builder;
mod core;
mod error;
mod handler;
mod index;
#[cfg(feature = "kube-runtime")]
mod kube_runtime;
mod lister;
mod live;
mod settings;
mod sharding;
mod subscription;
mod wait;

/// A watched, indexed, local cache of the objects of one kind. Cheap to clone.
///
/// An informer lists a resource once, then watches it. Reads are served from the cache; handlers
/// are called with every change. The informer runs from [`start`](Self::start) until
/// [`shutdown`](Self::shutdown), or until its last handle is dropped. Handles are the informer
/// itself, a [`Lister`], an [`Index`], a [`Registration`] and a [`Subscription`]. A handle captured
/// by a handler counts until that handler is removed: let it capture a
/// [weak one](Lister::downgrade).
///
/// # Resync
///
/// With a [resync period](InformerBuilder::resync), handlers periodically receive every object in
/// the cache as [`Updated`](Event::Updated) with [`Origin::Resync`](crate::Origin::Resync), where
/// `old` and `new` are the same object. A resync sends no request to the server. The rules are
/// those of client-go:
///
/// - If the informer has no resync period, no handler is resynced.
/// - A handler uses the informer's period, or [its own](HandlerBuilder::resync), which is at least
///   one second.
/// - Once per check period the informer looks for handlers that are due. The check period is the
///   informer's period. A handler added before the start with a shorter period shortens it; a
///   handler added after the start with a shorter period gets the check period. Each handler is
///   resynced at the first check at or after its due time.
/// - Objects with a pending change are skipped. A handler is skipped while it has not finished an
///   earlier batch, such as the initial list or the previous resync.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
///
/// let maps = Informer::<ConfigMap>::builder(client).build();
/// let printer = maps.on_event(|event| println!("{}", event.key()));
/// maps.start();
/// printer.synced().await?; // the cache is full, and the printer has handled every object in it
/// assert_eq!(maps.lister().len(), 2);
/// maps.shutdown().await; // no task and no connection is left
/// # Ok(()) });
/// ```
#[doc(alias = "SharedInformer")]
#[doc(alias = "SharedIndexInformer")]
#[doc(alias("TypedSharedIndexInformer", "GenericInformer"))]
pub struct Informer<K> {
    core: Arc<Core>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Object> Informer<K> {
    /// Returns a builder for an informer of the resource that type `K` represents.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Informer;
    ///
    /// let pods = Informer::<Pod>::builder(client).namespace("kube-system").drop_managed_fields().start();
    /// pods.synced().await?;
    /// assert_eq!(pods.resource().plural, "pods");
    /// # Ok(()) });
    /// ```
    #[doc(alias(
        "NewSharedInformer",
        "NewSharedIndexInformer",
        "NewSharedIndexInformerWithOptions",
        "NewTypedSharedIndexInformer",
        "NewInformer",
        "NewIndexerInformer",
        "NewTransformingInformer",
        "NewTransformingIndexerInformer",
        "NewInformerWithOptions",
        "NewFilteredMetadataInformer"
    ))]
    pub fn builder(client: Client) -> InformerBuilder<K>
    where
        K: Kind,
    {
        Self::builder_for(client, ScopedResource::of::<K>())
    }

    /// Returns a builder for a resource that is known only at run time, or that `K` does not name:
    /// an `ApiResource` or a [`Served`](crate::client::Served).
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use kube_informer::Informer;
    ///
    /// // For example, from a command line argument.
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    /// let maps = Informer::<DynamicObject>::builder_for(client, resource).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().list()[0].get()?.metadata.name.as_deref(), Some("a"));
    /// # Ok(()) });
    /// ```
    #[doc(alias("NewFilteredDynamicInformer"))]
    pub fn builder_for(client: Client, resource: impl Into<ScopedResource>) -> InformerBuilder<K> {
        let builder = InformerBuilder::of_client(client, resource.into());
        if K::METADATA_ONLY { builder.metadata_only() } else { builder }
    }

    /// Returns a builder for an informer on a custom [`ListWatch`] source.
    ///
    /// The source itself has to apply namespaces and selectors.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::client::{Body, Frame, ListQuery, ListWatch, ServerError, WatchQuery};
    /// use kube_informer::reflector::{ReflectorSettings, Streaming};
    /// use kube_informer::{Informer, Kind, Version};
    ///
    /// /// A source with one object that never changes.
    /// struct OneMap;
    ///
    /// impl ListWatch for OneMap {
    ///     async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
    ///         let map = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
    ///         Ok(Body::from_list(&Version::from(1), [map]))
    ///     }
    ///
    ///     async fn watch(&self, _: WatchQuery) -> Result<Body, ServerError> {
    ///         Ok(Body::from_frames(futures_util::stream::pending::<Frame>()))
    ///     }
    /// }
    /// // The source does not support streaming lists.
    /// let settings = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
    /// let maps = Informer::<ConfigMap>::builder_from(OneMap, ConfigMap::resource()).reflector(settings).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().list()[0].name(), "a");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("ListerWatcher"))]
    pub fn builder_from(source: impl ListWatch, resource: impl Into<ScopedResource>) -> InformerBuilder<K> {
        InformerBuilder::of_source(source, resource.into())
    }

    pub(crate) fn of(core: Arc<Core>) -> Self {
        Self { core, kind: PhantomData }
    }

    /// Starts listing and watching on separate tasks.
    ///
    /// Does nothing if the informer has already been started or stopped.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    #[doc(alias("Run", "RunWithContext"))]
    pub fn start(&self) {
        self.core.start();
    }

    /// Stops the informer permanently, for all of its handles.
    ///
    /// When the returned future completes, no request, task or connection is left. Stopping begins
    /// with the call; awaiting the future is optional. To release a single handle, drop it instead.
    ///
    /// The future waits for running handlers to return. If they do not, it logs a warning with
    /// their objects every ten seconds; [`shutdown_grace`](InformerBuilder::shutdown_grace) cancels
    /// asynchronous ones. Awaited inside a handler of the same informer it logs an error and
    /// completes without waiting, because that would deadlock. Events that are still queued are not
    /// delivered. The cache can still be read.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// maps.shutdown().await;
    /// assert!(server.watches().is_empty());
    /// assert_eq!(maps.lister().len(), 2, "as it last was");
    /// # Ok(()) });
    /// ```
    pub fn shutdown(&self) -> impl Future<Output = ()> + Send + use<K> {
        self.core.shutdown()
    }

    /// Returns a handle to the same cache that decodes objects as type `V`.
    ///
    /// Both handles share one watch and one cache.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"ip": "10.0.0.1"}});
    /// # server.create(&map)?;
    /// use std::net::IpAddr;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    ///
    /// /// The only field that this part of the program reads.
    /// #[derive(serde::Deserialize)]
    /// struct Address { data: Data }
    /// #[derive(serde::Deserialize)]
    /// struct Data { ip: IpAddr }
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let addresses = maps.view::<Address>();
    /// addresses.synced().await?;
    /// assert_eq!(addresses.lister().list()[0].get()?.data.ip, IpAddr::from([10, 0, 0, 1]));
    /// assert_eq!(server.watches().len(), 1);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn view<V: Object>(&self) -> Informer<V> {
        Informer::of(Arc::clone(&self.core))
    }

    /// The resource that this informer watches.
    #[must_use]
    #[doc(alias("ObjectDescription", "ObjectType"))]
    pub fn resource(&self) -> &ApiResource {
        self.core.resource()
    }

    /// Whether the objects are in namespaces. Kinds of which that is not known count as namespaced.
    #[must_use]
    pub fn is_namespaced(&self) -> bool {
        self.core.is_namespaced()
    }

    /// The name of this informer in metrics and logs.
    #[must_use]
    pub fn name(&self) -> &InformerName {
        self.core.name()
    }

    /// Returns a lister, which reads the cache.
    #[must_use]
    #[doc(alias("GetStore", "GetIndexer", "GetTypedIndexer"))]
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.core.reader())
    }

    /// Adds an index whose values are computed by a function: none, one or several per object.
    ///
    /// See [`Index`].
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_data = maps.index(|map| {
    ///     let data = map.get().ok().and_then(|map| map.data.clone());
    ///     data.unwrap_or_default().into_values().collect::<Vec<String>>()
    /// });
    /// maps.synced().await?;
    /// assert_eq!(by_data.get("10.0.0.2")[0].name(), "b");
    /// # Ok(()) });
    /// ```
    #[doc(alias(
        "Indexers",
        "AddIndexers",
        "AddTypedIndexers",
        "IndexFunc",
        "TypedIndexFunc",
        "TypedIndexers",
        "Indices"
    ))]
    pub fn index<I, V>(&self, function: impl Fn(&Obj<K>) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        I: IntoIterator<Item = V>,
        V: Hash + Eq + Send + Sync + 'static,
    {
        let index = Index::new(&self.core.reader(), function);
        self.core.wake();
        index
    }

    /// Adds an index by the value of a label. Objects without the label are not in the index.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_app = maps.index_by_label("app");
    /// maps.synced().await?;
    /// assert_eq!(by_app.get("web")[0].name(), "a");
    /// assert_eq!(by_app.count("cache"), 0);
    /// # Ok(()) });
    /// ```
    pub fn index_by_label(&self, label: impl Into<String>) -> Index<K, String> {
        let index = Index::by_label(&self.core.reader(), label);
        self.core.wake();
        index
    }

    /// Adds an index by the values at a field path, such as `spec.nodeName`.
    ///
    /// `[*]` selects every element of an array: `status.podIPs[*].ip`. See [`Obj::values_at`].
    /// Indexing decodes no bodies. Text that is not a path is an error.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_ip = maps.index_by_path("data.ip")?;
    /// maps.synced().await?;
    /// assert_eq!(by_ip.get("10.0.0.2")[0].name(), "b");
    /// # Ok(()) });
    /// ```
    pub fn index_by_path<P: OrText<FieldPath>>(&self, path: P) -> P::Checked<Index<K, String>> {
        path.checked(|path| {
            let index = Index::by_path(&self.core.reader(), path.clone());
            self.core.wake();
            index
        })
    }

    /// Calls a function with every event, for as long as the registration is held.
    ///
    /// See [`handler`](Self::handler) for more options.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let teller = maps.on_event(move |event| sender.send(event.key().clone()).unwrap_or_default());
    /// teller.synced().await?; // every initial object has been handled
    /// assert_eq!(receiver.try_iter().count(), 2);
    /// # Ok(()) });
    /// ```
    #[doc(alias = "AddEventHandler")]
    #[doc(alias("AddTypedEventHandler"))]
    pub fn on_event(&self, handle: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.handler().on_event(handle)
    }

    /// Calls an asynchronous function with every event, for as long as the registration is held.
    ///
    /// Events are handled one after the other.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let teller = maps.on_event_async(move |event| {
    ///     let sender = sender.clone();
    ///     async move { sender.send(event.key().clone()).await.unwrap_or_default() } // waits for capacity without blocking the watch
    /// });
    /// for _ in 0..3 {
    ///     assert!(receiver.recv().await.is_some());
    /// }
    /// # drop(teller);
    /// # Ok(()) });
    /// ```
    pub fn on_event_async<F>(&self, handle: impl FnMut(Event<K>) -> F + Send + 'static) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.handler().on_event_async(handle)
    }

    /// Returns the events as a stream: the current state first, then every change.
    ///
    /// See [`Subscription`].
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Informer, Origin};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.subscribe();
    /// assert_eq!(events.next().await.map(|event| event.origin()), Some(Origin::Initial));
    /// server.objects("v1", "ConfigMap")?.delete("a")?;
    /// assert!(events.next().await.is_some_and(|event| event.is_deleted()));
    /// # Ok(()) });
    /// ```
    #[doc(alias("NewIndexerInformerWatcher", "NewIndexerInformerWatcherWithLogger"))]
    pub fn subscribe(&self) -> Subscription<K> {
        self.handler().subscribe()
    }

    /// Returns a builder for a handler with its own filter, backlog or resync period.
    ///
    /// A handler may be added at any time. A late handler first receives the current state, as
    /// events with [`Origin::Initial`](crate::Origin::Initial), and then every later change: no
    /// duplicates, no gaps.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Informer, Origin};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// let mut late = maps.handler().filter(|map| map.label("app") == Some("web")).subscribe();
    /// let first = late.next().await.unwrap();
    /// assert_eq!((first.key().name(), first.origin()), ("a", Origin::Initial));
    /// # Ok(()) });
    /// ```
    #[doc(alias("AddEventHandlerWithOptions", "AddEventHandlerWithResyncPeriod", "HandlerOptions"))]
    pub fn handler(&self) -> HandlerBuilder<K> {
        HandlerBuilder::new(Arc::clone(&self.core))
    }

    /// Replaces the set of namespaces that are listed and watched.
    ///
    /// Objects of removed namespaces are deleted from the cache, with the final state
    /// [`Filtered`](crate::FinalState::Filtered). Objects of added namespaces arrive with the first
    /// list of the namespace; [`synced`](Self::synced) waits for it. The namespaces have no effect
    /// on a custom source, and none on cluster-scoped kinds.
    ///
    /// As in [`namespaces`](InformerBuilder::namespaces), `""` stands for all of them. Fails for a
    /// name that is none, and for an informer of a [`Factory`](crate::Factory), because other
    /// handles may rely on its namespaces. Use [`Factory::within`](crate::Factory::within) to get
    /// an informer of other namespaces.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for (name, namespace) in [("a", "default"), ("b", "kube-system")] {
    /// #     let metadata = serde_json::json!({"name": name, "namespace": namespace});
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))?;
    /// # }
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Event, FinalState, Informer};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).namespace("default").start();
    /// let mut events = maps.subscribe();
    /// assert_eq!(events.next().await.unwrap().key().to_string(), "default/a");
    ///
    /// maps.set_namespaces(["kube-system"])?;
    /// assert!(matches!(events.next().await, Some(Event::Deleted { state: FinalState::Filtered, .. })));
    /// assert_eq!(events.next().await.unwrap().key().to_string(), "kube-system/b");
    /// # Ok(()) });
    /// ```
    pub fn set_namespaces(
        &self,
        namespaces: impl IntoIterator<Item: Into<Arc<str>>>,
    ) -> Result<(), SetNamespacesError> {
        self.core.set_scopes(scopes(namespaces))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

/// Converts namespaces to scopes, without duplicates. The empty name stands for all namespaces.
fn scopes(namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Vec<WatchScope> {
    let mut scopes: Vec<WatchScope> = Vec::new();
    for namespace in namespaces {
        let namespace = namespace.into();
        if namespace.is_empty() {
            return vec![WatchScope::Everything];
        }
        let scope = WatchScope::Namespace(namespace);
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

/// Checks the names of the namespaces among scopes.
fn check_scopes(scopes: &[WatchScope]) -> Result<(), InvalidSetting> {
    for scope in scopes {
        if let WatchScope::Namespace(namespace) = scope {
            check_namespace(namespace).map_err(|reason| InvalidSetting::new("namespace", reason))?;
        }
    }
    Ok(())
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").field("core", &self.core).finish()
    }
}
