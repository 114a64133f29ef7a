//! The informer, as users hold it.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kube::Client;
use kube::core::{ApiResource, PartialObjectMeta};

pub use self::builder::InformerBuilder;
pub use self::error::{NamespacesShared, Stale, SyncError, WaitError};
pub use self::handler::HandlerBuilder;
pub use self::index::Index;
pub use self::lister::{Lister, NamespaceLister, ObjRef, Snapshot};
pub use self::settings::{InformerSettings, WhenRefused};
pub use self::subscription::{Registration, Subscription};

pub(crate) use self::core::{Core, SyncStatus};

use crate::body::Obj;
use crate::client::ListWatch;
use crate::object::FieldPath;
use crate::object::{Kind, Object};
use crate::store::Event;
use crate::store::WatchScope;

mod builder;
mod core;
mod error;
mod handler;
mod index;
#[cfg(feature = "kube-runtime")]
mod kube_runtime;
mod lister;
mod settings;
mod subscription;
mod wait;

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
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Informer;
    ///
    /// let pods = Informer::<Pod>::builder(client).namespace("kube-system").drop_managed_fields().start();
    /// pods.synced().await?;
    /// assert_eq!(pods.resource().plural, "pods");
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use kube_informer::Informer;
    ///
    /// // Say that this came from the command line.
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    /// let maps = Informer::<DynamicObject>::builder_for(client, resource).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().list()[0].get()?.metadata.name.as_deref(), Some("a"));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("NewFilteredDynamicInformer"))]
    pub fn builder_for(client: Client, resource: ApiResource) -> InformerBuilder<K> {
        InformerBuilder::of_client(client, resource)
    }

    /// An informer on a source of one's own. Namespaces and selectors are for the source to apply.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::reflector::{ReflectorSettings, Streaming};
    /// use kube_informer::{Body, Frame, Informer, Kind, ListQuery, ListWatch, ServerError, Version, WatchQuery};
    ///
    /// /// Has one object, which never changes.
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
    /// // Its watches do not begin with everything.
    /// let settings = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
    /// let maps = Informer::<ConfigMap>::builder_from(OneMap, ConfigMap::resource()).reflector(settings).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().list()[0].name(), "a");
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// maps.shutdown().await;
    /// assert!(server.watches().is_empty());
    /// assert_eq!(maps.lister().count(), 2, "as it last was");
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::must_use_candidate, reason = "stops whether or not somebody waits")]
    pub fn shutdown(&self) -> BoxFuture<'static, ()> {
        self.core.shutdown()
    }

    /// The same cache, read as another type: what it decodes, it decodes as that type, and there is still one watch.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"ip": "10.0.0.1"}});
    /// # server.create(&map)?;
    /// use std::net::IpAddr;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    ///
    /// /// All that this part of the program wants to know.
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
    /// # Ok(())
    /// # }
    /// ```
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

    /// An index by whatever a function finds in an object: nothing, a value, or several. See [`Index`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
    /// #     let metadata = serde_json::json!({"name": name, "labels": {"app": app}});
    /// #     server.create(&serde_json::json!({
    /// #         "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ip": ip},
    /// #     }))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_data = maps.index(|map| {
    ///     let data = map.get().ok().and_then(|map| map.data.clone());
    ///     data.unwrap_or_default().into_values().collect::<Vec<String>>()
    /// });
    /// maps.synced().await?;
    /// assert_eq!(by_data.get("10.0.0.2")[0].name(), "b");
    /// # Ok(())
    /// # }
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
        self.core.ring();
        index
    }

    /// An index by the value of a label. Objects without it are not in the index.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
    /// #     let metadata = serde_json::json!({"name": name, "labels": {"app": app}});
    /// #     server.create(&serde_json::json!({
    /// #         "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ip": ip},
    /// #     }))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_app = maps.index_by_label("app");
    /// maps.synced().await?;
    /// assert_eq!(by_app.get("web")[0].name(), "a");
    /// assert_eq!(by_app.count("cache"), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn index_by_label(&self, label: impl Into<String>) -> Index<K, String> {
        let index = Index::by_label(&self.core.reader(), label);
        self.core.ring();
        index
    }

    /// An index by the values at a path: `spec.nodeName`, or with `[*]` every one of several, `status.podIPs[*].ip`. See
    /// [`Obj::values_at`]. Nothing is decoded for it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
    /// #     let metadata = serde_json::json!({"name": name, "labels": {"app": app}});
    /// #     server.create(&serde_json::json!({
    /// #         "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ip": ip},
    /// #     }))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_ip = maps.index_by_path("data.ip".parse()?);
    /// maps.synced().await?;
    /// assert_eq!(by_ip.get("10.0.0.2")[0].name(), "b");
    /// # Ok(())
    /// # }
    /// ```
    pub fn index_by_path(&self, path: FieldPath) -> Index<K, String> {
        let index = Index::by_path(&self.core.reader(), path);
        self.core.ring();
        index
    }

    /// Calls a function with every event, for as long as the registration is held. See [`handler`](Self::handler) for more.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let teller = maps.on_event(move |event| tell.send(event.key().clone()).unwrap_or_default());
    /// teller.synced().await?; // it has heard all that was there
    /// assert_eq!(told.try_iter().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "AddEventHandler")]
    #[doc(alias("AddTypedEventHandler"))]
    pub fn on_event(&self, handle: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.handler().on_event(handle)
    }

    /// Calls an asynchronous function with every event, one after the other, for as long as the registration is held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a", "b", "c"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (tell, mut told) = tokio::sync::mpsc::channel(1);
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let teller = maps.on_event_async(move |event| {
    ///     let tell = tell.clone();
    ///     async move { tell.send(event.key().clone()).await.unwrap_or_default() } // waits for room; the watch does not
    /// });
    /// for _ in 0..3 {
    ///     assert!(told.recv().await.is_some());
    /// }
    /// # drop(teller);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_event_async<F>(&self, handle: impl FnMut(Event<K>) -> F + Send + 'static) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.handler().on_event_async(handle)
    }

    /// The events as a stream: the present state first, then every change. See [`Subscription`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Informer, Origin};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.subscribe();
    /// assert_eq!(events.next().await.map(|event| event.origin()), Some(Origin::Initial));
    /// server.objects("v1", "ConfigMap")?.delete("a")?;
    /// assert!(events.next().await.is_some_and(|event| event.is_deleted()));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("NewIndexerInformerWatcher", "NewIndexerInformerWatcherWithLogger"))]
    pub fn subscribe(&self) -> Subscription<K> {
        self.handler().subscribe()
    }

    /// A handler with a filter, a backlog or a resync period of its own.
    ///
    /// It may be added at any time. One that comes late is told the present state first, marked
    /// [`Initial`](crate::Origin::Initial), and then every change after it: nothing twice, nothing lost.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
    /// #     let metadata = serde_json::json!({"name": name, "labels": {"app": app}});
    /// #     server.create(&serde_json::json!({
    /// #         "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ip": ip},
    /// #     }))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Informer, Origin};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// let mut late = maps.handler().filter(|map| map.label("app") == Some("web")).subscribe();
    /// let first = late.next().await.unwrap();
    /// assert_eq!((first.key().name(), first.origin()), ("a", Origin::Initial));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("AddEventHandlerWithOptions", "AddEventHandlerWithResyncPeriod", "HandlerOptions"))]
    pub fn handler(&self) -> HandlerBuilder<K> {
        HandlerBuilder::new(Arc::clone(&self.core))
    }

    /// Lists and watches these namespaces from now on, instead of those before, or of everything.
    ///
    /// Objects of namespaces that are left are deleted from the cache, as [`Filtered`](crate::FinalState::Filtered). Those of a new
    /// one come with its first list; [`synced`](Self::synced) waits for it. Nothing happens to a source of one's own.
    ///
    /// Refused for an informer out of a [`Factory`](crate::Factory): others may hold it who count on its namespaces. The factory has
    /// one for [others](crate::Factory::within).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
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
    /// # Ok(())
    /// # }
    /// ```
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
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
    /// #     let metadata = serde_json::json!({"name": name, "labels": {"app": app}});
    /// #     server.create(&serde_json::json!({
    /// #         "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ip": ip},
    /// #     }))?;
    /// # }
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::core::PartialObjectMeta;
    /// use kube_informer::{Informer, Kind};
    ///
    /// let maps = Informer::<PartialObjectMeta>::metadata_for(client, ConfigMap::resource()).start();
    /// maps.synced().await?;
    /// for map in maps.lister().list() {
    ///     assert!(map.label("app").is_some());
    ///     assert_eq!(map.value_at(&"data.ip".parse()?), None);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn metadata_for(client: Client, resource: ApiResource) -> InformerBuilder<PartialObjectMeta<X>> {
        InformerBuilder::of_client(client, resource).metadata_only()
    }
}

/// Each namespace once.
fn scopes(namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Vec<WatchScope> {
    let mut scopes: Vec<WatchScope> = Vec::new();
    for namespace in namespaces {
        let scope = WatchScope::Namespace(namespace.into());
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
