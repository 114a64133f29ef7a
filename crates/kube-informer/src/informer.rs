//! The informer, as users hold it.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube::Client;
use kube::core::{ApiResource, PartialObjectMeta};
use tokio::sync::watch;

pub use self::builder::InformerBuilder;
pub use self::settings::{Settings, WhenRefused};

pub(crate) use self::core::{Core, Standing};

use crate::delta::Scope;
use crate::error::{NamespacesShared, SyncError, WaitError};
use crate::event::Event;
use crate::handler::HandlerBuilder;
use crate::health::Health;
use crate::index::Index;
use crate::key::ObjectKey;
use crate::list_watch::ListWatch;
use crate::lister::Lister;
use crate::object::{Kind, Obj, Object};
use crate::path::FieldPath;
use crate::subscription::{Registration, Subscription};
use crate::version::Version;

mod builder;
mod core;
mod settings;

/// A watched, indexed, local cache of the objects of one kind. Cheap to clone.
///
/// It lists a resource once, then watches it. Every read is answered from the cache; handlers hear of every change. It runs from
/// [`start`](Self::start) until the last handle is gone, be it the informer itself, a [`Lister`], an [`Index`], a [`Registration`]
/// or a [`Subscription`], or until [`shutdown`](Self::shutdown). What is captured by a handler counts as a handle as long as that
/// handler is not removed.
///
/// # Resync
///
/// With a [resync period](InformerBuilder::resync) handlers are told everything in the cache again, as
/// [`Updated`](Event::Updated) with [`Origin::Resync`](crate::Origin::Resync) and twice the same object. The server is not asked.
/// The rules are client-go's:
///
/// - Without a period of the informer there is no resync for anybody.
/// - A handler gets the informer's period, or [its own](HandlerBuilder::resync), at least a second.
/// - The informer looks every period which handlers are due. A handler that asks for a shorter period before the start shortens this;
///   one that asks after the start gets the informer's. So each is told at the first look at or after its own time.
/// - Objects with a change under way are left out, and so is a handler that has not yet heard what it was told together before.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
/// #     server.create(&serde_json::json!({
/// #         "apiVersion": "v1", "kind": "ConfigMap",
/// #         "metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "data": {"ip": ip},
/// #     }))?;
/// # }
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
///
/// let maps = Informer::<ConfigMap>::builder(client).build();
/// let printer = maps.on_event(|event| println!("{}", event.key()));
/// maps.start();
/// printer.synced().await?; // the cache is full, and the printer has heard all of it
/// assert_eq!(maps.lister().count(), 2);
/// maps.shutdown().await; // no task and no connection is left
/// # Ok(())
/// # }
/// ```
#[doc(alias = "SharedInformer")]
#[doc(alias = "SharedIndexInformer")]
#[doc(alias("TypedSharedIndexInformer", "GenericInformer"))]
pub struct Informer<K> {
    core: Arc<Core>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Object> Informer<K> {
    /// An informer of the resource that the type `K` is of.
    ///
    /// ```no_run
    /// # async fn run(client: kube::Client) -> Result<(), kube_informer::SyncError> {
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Informer;
    ///
    /// let pods = Informer::<Pod>::builder(client).namespace("kube-system").drop_managed_fields().start();
    /// pods.synced().await?;
    /// # Ok(())
    /// # }
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
        let builder = InformerBuilder::of_client(client, K::resource());
        if K::metadata_only() { builder.metadata_only() } else { builder }
    }

    /// An informer of a resource that is known only at run time, or that `K` does not name.
    #[doc(alias("NewFilteredDynamicInformer"))]
    pub fn builder_for(client: Client, resource: ApiResource) -> InformerBuilder<K> {
        InformerBuilder::of_client(client, resource)
    }

    /// An informer on a source of one's own. Namespaces and selectors are for the source to apply.
    #[doc(alias("ListerWatcher"))]
    pub fn builder_from(source: impl ListWatch, resource: ApiResource) -> InformerBuilder<K> {
        InformerBuilder::of_source(source, resource)
    }

    pub(crate) fn of(core: Arc<Core>) -> Self {
        Self { core, kind: PhantomData }
    }

    /// Starts to list and watch, on tasks of its own. Does nothing if it has been started or stopped before.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[doc(alias("Run", "RunWithContext"))]
    pub fn start(&self) {
        self.core.start();
    }

    /// Stops for good: no request, no task and no connection is left when this completes. Stops for everybody who holds it: to be rid of
    /// one's own interest only, dropping is enough.
    ///
    /// Stopping begins with the call; waiting is for those who want to know. Handlers return from what they are doing, so do not wait
    /// in one of them. What waited to be told is not told any more. The cache can still be read.
    #[expect(clippy::must_use_candidate, reason = "stops whether or not somebody waits")]
    pub fn shutdown(&self) -> BoxFuture<'static, ()> {
        self.core.shutdown()
    }

    /// The same cache, read as another type.
    #[must_use]
    pub fn view<V: Object>(&self) -> Informer<V> {
        Informer::of(Arc::clone(&self.core))
    }

    /// The resource.
    #[must_use]
    #[doc(alias("ObjectDescription", "ObjectType"))]
    pub fn resource(&self) -> &ApiResource {
        self.core.resource()
    }

    /// Reads the cache.
    #[must_use]
    #[doc(alias("GetStore", "GetIndexer", "GetTypedIndexer"))]
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.core.reader())
    }

    /// An index by whatever a function finds in an object. See [`Index`].
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
        self.core.ring();
        index
    }

    /// An index by the value of a label.
    pub fn index_by_label(&self, label: impl Into<String>) -> Index<K, String> {
        let index = Index::by_label(&self.core.reader(), label);
        self.core.ring();
        index
    }

    /// An index by the values at a path: `spec.nodeName`, or with `[*]` every one of several, `status.podIPs[*].ip`. See
    /// [`Obj::values_at`]. Nothing is decoded for it.
    pub fn index_by_path(&self, path: FieldPath) -> Index<K, String> {
        let index = Index::by_path(&self.core.reader(), path);
        self.core.ring();
        index
    }

    /// Calls a function with every event, for as long as the registration is held. See [`handler`](Self::handler) for more.
    #[doc(alias = "AddEventHandler")]
    #[doc(alias("AddTypedEventHandler"))]
    pub fn on_event(&self, handle: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.handler().on_event(handle)
    }

    /// Calls an asynchronous function with every event, one after the other, for as long as the registration is held.
    pub fn on_event_async<F>(&self, handle: impl FnMut(Event<K>) -> F + Send + 'static) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.handler().on_event_async(handle)
    }

    /// The events as a stream.
    #[doc(alias("NewIndexerInformerWatcher", "NewIndexerInformerWatcherWithLogger"))]
    pub fn subscribe(&self) -> Subscription<K> {
        self.handler().subscribe()
    }

    /// A handler with a filter, a backlog or a resync period of its own.
    ///
    /// It may be added at any time. One that comes late is told the present state first, marked
    /// [`Initial`](crate::Origin::Initial), and then every change after it: nothing twice, nothing lost.
    #[doc(alias("AddEventHandlerWithOptions", "AddEventHandlerWithResyncPeriod", "HandlerOptions"))]
    pub fn handler(&self) -> HandlerBuilder<K> {
        HandlerBuilder::new(Arc::clone(&self.core))
    }

    /// Completes when the cache is full. Any number may wait. Waits for [`start`](Self::start) too.
    ///
    /// Fails if the informer stops, and where waiting cannot help: see [`SyncError`].
    #[must_use]
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias(
        "HasSyncedChecker",
        "DoneChecker",
        "IsDone",
        "WaitForNamedCacheSync",
        "WaitForNamedCacheSyncWithContext"
    ))]
    pub fn synced(&self) -> BoxFuture<'static, Result<(), SyncError>> {
        self.core.synced()
    }

    /// Whether the cache is full: everything that is wanted has been listed. Says nothing of handlers, and stays so whatever happens to
    /// the server; namespaces that are [added](Self::set_namespaces) make it wait for them.
    #[must_use]
    #[doc(alias = "HasSynced")]
    #[doc(alias("InformerSynced"))]
    pub fn is_synced(&self) -> bool {
        self.core.is_synced()
    }

    /// Completes when the cache has reached a version, such as that of an object just written: whoever reads after that reads their
    /// own write.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::json;
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, PostParams};
    /// use kube_informer::{Informer, ObjectKey, Version};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client.clone()).start();
    /// let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
    /// let written = Api::default_namespaced(client).create(&PostParams::default(), &map).await?;
    /// maps.wait_for(Version::of(&written).unwrap()).await?;
    /// assert!(maps.lister().get(&ObjectKey::of(&written).unwrap()).is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Versions of other resources are reached only when the server says so, which may take a minute, or for ever if nothing at all
    /// happens to this resource. Fails if the server goes back in time meanwhile.
    #[must_use]
    pub fn wait_for(&self, version: Version) -> BoxFuture<'static, Result<(), WaitError>> {
        self.core.wait_for(version)
    }

    /// Completes when an object, or its absence, passes a test, with the object. Begins when the cache is full.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::json;
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"done": "yes"}});
    /// # server.create(&map)?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{Informer, ObjectKey};
    /// # let maps = Informer::<ConfigMap>::builder(client).start();
    /// let done = maps.wait_until(ObjectKey::namespaced("default", "a"), |map| {
    ///     let data = map.and_then(|map| map.get().ok()?.data.as_ref());
    ///     data.is_some_and(|data| data.contains_key("done"))
    /// });
    /// let map = tokio::time::timeout(std::time::Duration::from_secs(10), done).await??;
    /// assert!(map.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The test is asked about each state that the cache was in when it was looked at; several changes in one batch are one state. To give
    /// up when the object goes, let the test pass for `None` too. Without a cache: [`until()`](crate::until()).
    #[must_use]
    #[doc(alias("UntilWithSync", "PreconditionFunc"))]
    pub fn wait_until(
        &self,
        key: ObjectKey,
        mut test: impl FnMut(Option<&Obj<K>>) -> bool + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<Obj<K>>, WaitError>> {
        let found = self.core.wait_until(key, move |object| test(object.map(Obj::view).as_ref()));
        found.map(|found| found.map(|object| object.map(Obj::cast))).boxed()
    }

    /// How it fares, now.
    #[must_use]
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// How it fares, whenever that changes. The time of the last contact is only as new as the change.
    #[must_use]
    pub fn watch_health(&self) -> watch::Receiver<Health> {
        self.core.watch_health()
    }

    /// Lists and watches these namespaces from now on, instead of those before, or of everything.
    ///
    /// Objects of namespaces that are left are deleted from the cache, as [`Filtered`](crate::FinalState::Filtered). Those of a new
    /// one come with its first list; [`synced`](Self::synced) waits for it. Nothing happens to a source of one's own.
    ///
    /// Refused for an informer out of a [`Factory`](crate::Factory): others may hold it who count on its namespaces. The factory has
    /// one for [others](crate::Factory::within).
    pub fn set_namespaces(&self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Result<(), NamespacesShared> {
        self.core.want(scopes(namespaces))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl<X> Informer<PartialObjectMeta<X>>
where
    PartialObjectMeta<X>: Object,
{
    /// An informer of the metadata of a resource that is known only at run time. The server sends nothing else.
    pub fn metadata_for(client: Client, resource: ApiResource) -> InformerBuilder<PartialObjectMeta<X>> {
        InformerBuilder::of_client(client, resource).metadata_only()
    }
}

/// Each namespace once.
fn scopes(namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Vec<Scope> {
    let mut scopes: Vec<Scope> = Vec::new();
    for namespace in namespaces {
        let scope = Scope::Namespace(namespace.into());
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
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
