//! The informer factory: one watch and one cache per resource and scope, however many parts of a
//! program use it.

// Uses `informer` to build informers, `client` for discovery, and `object`, `store`, `pipeline` and
// `reflector` for shared types; must not use `one_shot` or `workqueue`.

use std::sync::Arc;

use futures_util::future::join_all;
use kube::Client;
use kube::core::DynamicObject;

pub use self::builder::{FactoryBuildError, FactoryBuilder, SettingsConflict};
pub use self::scope::Scope;
pub use self::sync::{FactorySyncError, Missing, NotSynced};
use crate::body::Raw;
use crate::client::{LookupError, Resources, ScopedResource, Served, discovery};

use self::builder::Kinds;
use self::registry::{Content, Registry, Versioning};
use self::sync::Awaited;
use crate::client::ServerError;
use crate::informer::Informer;
use crate::object::{Kind, Object};

mod builder;
mod definitions;
mod registry;
mod scope;
mod sync;

/// Creates informers that share one watch and one cache per resource and [scope](Scope). Cheap to
/// clone.
///
/// Informers are shared regardless of which part of a program requests them, and of the type that
/// they decode objects as.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::core::{ApiResource, DynamicObject};
/// use kube_informer::{Factory, Kind};
///
/// /// The only field that this program reads.
/// #[derive(serde::Deserialize)]
/// struct PodNode { spec: Spec }
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Spec { node_name: Option<String> }
/// impl Kind for PodNode {
///     fn resource() -> ApiResource { Pod::resource() }
/// }
///
/// let factory = Factory::builder(client)
///     .defaults(|all| all.drop_managed_fields().resync(Duration::from_secs(600)))
///     .kind::<Pod>(|pods| pods.namespace("kube-system"))
///     .build()?;
/// let (deployments, pods, same_pods) =
///     (factory.informer::<Deployment>(), factory.informer::<Pod>(), factory.informer::<PodNode>());
/// factory.start();
/// factory.synced().await?;
/// # let _ = (&deployments, &pods, &same_pods);
/// assert_eq!(server.watches().len(), 2);
/// factory.shutdown().await;
/// assert_eq!(server.watches().len(), 0);
/// # Ok(()) });
/// ```
///
/// The factory holds weak references to its informers. An informer lives as long as one of its
/// handles: the informer itself, a lister, an index, a registration or a subscription. Dropping the
/// last handle stops the watch and frees the cache; a later request creates a new informer.
///
/// An informer with a [detached](crate::Registration::detach) handler is held by the factory, with
/// its cache, until the factory is [shut down](Self::shutdown) or its last clone is dropped, or
/// until the informer itself is [shut down](crate::Informer::shutdown). A detached handler that
/// captures the factory keeps both until one of them is shut down.
///
/// ```
/// # kube_embedded::doctest(["a"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Factory;
///
/// let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
/// let factory = Factory::new(client);
/// factory.informer::<ConfigMap>().on_event(move |event| sender.send(event.key().clone()).unwrap_or_default()).detach();
/// factory.start();
/// assert!(receiver.recv().await.is_some());
/// drop(factory);
/// assert!(receiver.recv().await.is_none(), "the informer has stopped, and the handler is dropped");
/// # Ok(()) });
/// ```
///
/// # Kinds that come and go
///
/// An informer of a kind that does not exist retries with backoff, at most 30 seconds apart.
/// Meanwhile, a wait for it [fails] or [continues](crate::informer::WhenRefused::Wait), depending
/// on the settings.
///
/// If the server permits it, the factory also watches custom resource definitions while any
/// informer waits for its kind: one metadata-only watch for all informers. An informer then detects
/// its kind as soon as it is defined. While there is no definition, it retries only every [five
/// minutes](crate::reflector::ReflectorSettings::absent_retry). When a definition is deleted, its
/// objects are reported as deleted, and the informer pauses until the definition is created again.
///
/// [fails]: Self::synced
///
/// # Metadata only
///
/// With [`MetadataOnly<K>`](crate::MetadataOnly) only metadata is requested from the server. It has
/// a separate watch and a separate cache, because it cannot be converted to whole objects.
#[derive(Debug, Clone)]
#[doc(alias = "SharedInformerFactory")]
#[doc(alias = "DynamicSharedInformerFactory")]
#[doc(alias = "MetadataSharedInformerFactory")]
#[doc(alias = "Cache")]
pub struct Factory {
    registry: Arc<Registry>,
    scope: Option<Scope>,
}

impl Factory {
    /// Creates a factory with default settings, whose informers contain all objects of their kind.
    #[must_use]
    #[doc(alias = "NewSharedInformerFactory")]
    #[doc(alias = "NewDynamicSharedInformerFactory")]
    pub fn new(client: Client) -> Self {
        Self { registry: Arc::new(Registry::new(client, Kinds::default(), None)), scope: None }
    }

    /// Returns a builder for a factory with settings for all kinds and for single kinds.
    #[doc(alias = "NewSharedInformerFactoryWithOptions")]
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    /// Returns a handle to the same factory whose informers have another scope: other namespaces,
    /// labels or fields than the settings.
    ///
    /// All other settings stay the same. [`start`](Self::start), [`synced`](Self::synced) and
    /// [`shutdown`](Self::shutdown) affect the whole factory.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube_informer::{Factory, Scope};
    ///
    /// let factory = Factory::new(client);
    /// let certificates = Scope::everything().fields("type=kubernetes.io/tls");
    /// let certificates = factory.within(certificates).informer::<Secret>();
    /// factory.start();
    /// certificates.synced().await?;
    /// # Ok(()) });
    /// ```
    #[must_use]
    #[doc(alias = "NewFilteredSharedInformerFactory")]
    #[doc(alias = "NewFilteredDynamicSharedInformerFactory")]
    pub fn within(&self, scope: Scope) -> Self {
        Self { registry: Arc::clone(&self.registry), scope: Some(scope) }
    }

    /// Returns the client of the factory, for requests that a cache does not serve.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.registry.client
    }

    /// Returns the informer of the resource that type `K` represents.
    ///
    /// If the factory has been started, the informer is started immediately.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// factory.start();
    /// let (maps, same) = (factory.informer::<ConfigMap>(), factory.informer::<ConfigMap>());
    /// maps.synced().await?;
    /// same.synced().await?;
    /// assert_eq!(server.watches().len(), 1);
    /// # Ok(()) });
    /// ```
    #[must_use = "an informer without handles does not run"]
    #[doc(alias = "InformerFor")]
    #[doc(alias = "GetInformer")]
    pub fn informer<K: Kind>(&self) -> Informer<K> {
        let content = if K::METADATA_ONLY { Content::Metadata } else { Content::Whole };
        self.shared(ScopedResource::of::<K>(), content)
    }

    /// Returns the informer of a resource that is known only at run time, or that `K` does not
    /// name: an `ApiResource` or a [`Served`].
    ///
    /// A `Served`, from discovery, says whether the namespaces of the factory apply. Of an
    /// `ApiResource` this is known for built-in kinds; other kinds count as namespaced.
    ///
    /// `ApiResource::from_gvk` builds a resource from group, version and kind, and guesses the
    /// plural; [`resource_named`] uses discovery instead. If `K` is `MetadataOnly`, only
    /// metadata is requested from the server.
    ///
    /// [`resource_named`]: Self::resource_named
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// factory.start();
    /// let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    /// let deployments = factory.informer_for::<DynamicObject>(resource);
    /// deployments.synced().await?;
    /// assert_eq!(deployments.resource().plural, "deployments");
    /// # Ok(()) });
    /// ```
    #[must_use = "an informer without handles does not run"]
    #[doc(alias = "ForResource")]
    pub fn informer_for<K: Object>(&self, resource: impl Into<ScopedResource>) -> Informer<K> {
        let content = if K::METADATA_ONLY { Content::Metadata } else { Content::Whole };
        self.shared(resource.into(), content)
    }

    /// Returns the informer of a resource by a name as used with kubectl.
    ///
    /// For example `deploy`, `deployments.apps`, `Deployment` or `deployments.v1.apps`. See
    /// [`resource_named`](Self::resource_named).
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// factory.start();
    /// let deployments = factory.informer_named("deploy").await?;
    /// assert_eq!(deployments.resource().api_version, "apps/v1");
    /// let unknown = factory.informer_named("deplyoments").await.unwrap_err();
    /// assert_eq!(unknown.to_string(), "the server has no resource named \"deplyoments\"; did you mean deployments.apps?");
    /// # Ok(()) });
    /// ```
    pub fn informer_named(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Informer<DynamicObject>, LookupError>> + Send + use<> {
        let (factory, name) = (self.clone(), name.to_owned());
        async move {
            let served = factory.look_up(&name).await?;
            Ok(factory.shared(served.into(), Content::Whole))
        }
    }

    /// Returns the informer of a resource that may not be served yet, by its plural and group:
    /// `certificates.cert-manager.io`.
    ///
    /// The informer begins when the server serves the resource, in the version that the server
    /// prefers. If that version is no longer served, the informer follows the resource to another
    /// one: every object whose body differs there is reported as [updated](crate::Event::Updated),
    /// and pending [waits for a version](Informer::wait_for) fail. While the resource is not
    /// served, the health of the informer is [`Absent`](crate::Condition::Absent), and waits for
    /// the cache continue. The version and the kind of [`Informer::resource`] are empty.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # let definition = serde_json::json!({
    /// #     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    /// #     "metadata": {"name": "widgets.example.com"},
    /// #     "spec": {
    /// #         "group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
    /// #         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
    /// #     },
    /// # });
    /// use kube_informer::{Condition, Factory};
    ///
    /// let factory = Factory::new(client);
    /// let widgets = factory.informer_when_served("widgets.example.com");
    /// factory.start();
    /// widgets.watch_health().wait_for(|health| matches!(health.condition, Condition::Absent { .. })).await?;
    ///
    /// server.create(&definition)?;
    /// widgets.synced().await?;
    /// # Ok(()) });
    /// ```
    #[must_use = "an informer without handles does not run"]
    pub fn informer_when_served(&self, name: &str) -> Informer<DynamicObject> {
        Informer::of(self.registry.informer_when_served(name, self.scope.as_ref()))
    }

    /// Looks up a resource by name: its plural, singular, kind or a short name.
    ///
    /// The name may be qualified with a group (`deployments.apps`), the beginning of a group
    /// (`ingresses.networking`), or a version and a group (`deployments.v1.apps`). As in kubectl,
    /// full names take precedence over short names; among several groups and versions, the one that
    /// the server lists first is chosen.
    ///
    /// Every call runs discovery again: two requests. The result can be given to
    /// [`informer_for`](Self::informer_for).
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// let resource = factory.resource_named("ing").await?;
    /// assert_eq!((resource.full_name().as_str(), resource.version()), ("ingresses.networking.k8s.io", "v1"));
    /// # Ok(()) });
    /// ```
    #[doc(alias = "RESTMapper")]
    pub fn resource_named(&self, name: &str) -> impl Future<Output = Result<Served, LookupError>> + Send + use<> {
        let (factory, name) = (self.clone(), name.to_owned());
        async move { factory.look_up(&name).await }
    }

    /// Discovers all resources that the server serves, for any number of lookups by name: two
    /// requests.
    #[doc(alias = "ServerPreferredResources")]
    #[doc(alias = "ServerGroupsAndResources")]
    pub fn resources(&self) -> impl Future<Output = Result<Resources, ServerError>> + Send + use<> {
        let client = self.registry.client.clone();
        async move { discovery::discover(&client).await.map(Resources) }
    }

    async fn look_up(&self, name: &str) -> Result<Served, LookupError> {
        self.resources().await?.named(name).cloned()
    }

    fn shared<K: Object>(&self, resource: ScopedResource, content: Content) -> Informer<K> {
        let decode = Raw::decode_ahead::<K>;
        Informer::of(self.registry.informer(resource, content, Versioning::Fixed, self.scope.as_ref(), decode))
    }

    /// Starts all informers of the factory; informers that are created later start immediately.
    ///
    /// May be called any number of times. Does nothing after [`shutdown`](Self::shutdown).
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kube_informer::Factory;
    /// let factory = Factory::new(client);
    /// let maps = factory.informer::<ConfigMap>();
    /// factory.start();
    /// let secrets = factory.informer::<Secret>(); // started immediately
    /// maps.synced().await?;
    /// secrets.synced().await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    #[doc(alias = "StartWithContext")]
    pub fn start(&self) {
        self.registry.start();
    }

    /// Completes when the cache of every informer that currently exists is full. May be called
    /// before [`start`](Self::start).
    ///
    /// Fails if waiting does not help: an informer has stopped, or the server refuses its requests,
    /// for example because of missing permissions or a kind that does not exist, unless the
    /// informer is [configured](crate::informer::InformerSettings::when_refused) to wait. The error
    /// names every cache that is not full, and the cause. Informers keep retrying, and a later wait
    /// can succeed.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::Factory;
    ///
    /// server.faults().inject(Rule::new(Fault::status(403)).resource("", "secrets"));
    /// let factory = Factory::new(client);
    /// let (maps, secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    /// factory.start();
    /// let refused = factory.synced().await.unwrap_err();
    /// assert!(refused.to_string().contains("secrets"));
    /// maps.synced().await?;
    /// # drop(secrets);
    /// # Ok(()) });
    /// ```
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias = "WaitForCacheSyncWithContext")]
    pub fn synced(&self) -> impl Future<Output = Result<(), FactorySyncError>> + Send + use<> {
        Awaited::new(self.registry.living()).synced()
    }

    /// Returns the caches that are not full, with the causes. For example to report after a
    /// timeout.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// let pods = factory.informer::<Pod>();
    /// assert_eq!(factory.missing()[0].to_string(), "pods: not started");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn missing(&self) -> Vec<Missing> {
        Awaited::new(self.registry.living()).missing()
    }

    /// Stops all informers permanently, including those that still have handles.
    ///
    /// When the returned future completes, no request, task or connection is left.
    ///
    /// Stopping begins with the call; awaiting the future is optional. The future waits for running
    /// handlers to return. Awaited inside a handler, it logs an error and does not wait for the
    /// informer of that handler, because that would deadlock. Caches can still be read. Informers
    /// that are requested later are stopped from the start.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Factory;
    /// let factory = Factory::new(client);
    /// let maps = factory.informer::<ConfigMap>();
    /// factory.start();
    /// factory.synced().await?;
    /// factory.shutdown().await;
    /// assert!(server.watches().is_empty());
    /// assert_eq!(maps.lister().len(), 1, "as it last was");
    /// # Ok(()) });
    /// ```
    pub fn shutdown(&self) -> impl Future<Output = ()> + Send + use<> {
        let (registry, ending) = (Arc::clone(&self.registry), self.registry.stop());
        async move {
            join_all(ending.iter().map(|shared| shared.all_ended())).await;
            // All informers have ended, so the definition watch has no user any more and ends too.
            let ending = registry.definitions.ending();
            join_all(ending.iter().map(|shared| shared.all_ended())).await;
        }
    }
}
