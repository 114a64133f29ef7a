//! One watch and one cache for each resource, however many ask.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use kube::Client;
use kube::core::{ApiResource, DynamicObject};

pub use self::builder::{FactoryBuilder, SettingsConflict};
pub use self::scope::Scope;
pub use self::sync::{FactorySyncError, Missing, NotSynced};
use crate::client::{LookupError, Placing, Resources, Served, discovery};

use self::builder::Kinds;
use self::registry::{Content, Registry};
use self::sync::Awaited;
use crate::client::ServerError;
use crate::informer::Informer;
use crate::object::{Kind, Object, is_partial};

mod builder;
mod definitions;
mod registry;
mod scope;
mod sync;

/// One watch and one cache for each resource and [scope](Scope), however many parts of a program ask for it and under whatever type
/// they view it. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::Pod;
/// use kube::core::{ApiResource, DynamicObject};
/// use kube_informer::{Factory, Kind};
///
/// /// All that this program needs of a pod.
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
/// # Ok(())
/// # }
/// ```
///
/// The factory holds its informers weakly. Each lives as long as anybody holds it, or something that came out of it: a lister, an
/// index, a registration, a subscription. The last one to go stops the watch and frees the cache; asking again begins anew.
///
/// # Kinds that come and go
///
/// An informer of a kind that does not exist asks again and again, up to every 30 seconds. Meanwhile a wait for it [fails], or
/// [goes on](crate::WhenRefused::Wait), as set. Sooner than by asking again it learns of the kind where the definitions of custom
/// resources may be watched: they are, metadata only and once for all informers, as long as any of them waits for its kind. While
/// there is no definition the informer rests, and asks only every [five minutes](crate::reflector::ReflectorSettings::absent_retry). When a
/// definition goes, its objects are told to be deleted, and the informer rests until it comes back.
///
/// [fails]: Self::synced
///
/// # Metadata alone
///
/// With `PartialObjectMeta<K>` the server is asked for metadata alone, which has its own watch and its own cache: a whole object
/// cannot be made of it.
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
    /// A factory whose informers are of everything, with the usual settings.
    #[must_use]
    #[doc(alias = "NewSharedInformerFactory")]
    #[doc(alias = "NewDynamicSharedInformerFactory")]
    pub fn new(client: Client) -> Self {
        Self { registry: Arc::new(Registry::new(client, Kinds::default(), None)), scope: None }
    }

    /// A factory with settings: for every kind, and for single ones.
    #[doc(alias = "NewSharedInformerFactoryWithOptions")]
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    /// The same factory, asked for other objects: of other namespaces, with other labels or fields than were set. All else is as it
    /// was set, and so it is the same [`start`](Self::start), [`synced`](Self::synced) and [`shutdown`](Self::shutdown).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube_informer::{Factory, Scope};
    ///
    /// let factory = Factory::new(client);
    /// let certificates = Scope::everything().fields("type=kubernetes.io/tls".parse()?);
    /// let certificates = factory.within(certificates).informer::<Secret>();
    /// factory.start();
    /// certificates.synced().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "NewFilteredSharedInformerFactory")]
    #[doc(alias = "NewFilteredDynamicSharedInformerFactory")]
    pub fn within(&self, scope: Scope) -> Self {
        Self { registry: Arc::clone(&self.registry), scope: Some(scope) }
    }

    /// The informer of the resource that the type `K` is of.
    ///
    /// Once the factory has been started, it runs from when it is asked for.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
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
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "an informer that nobody holds does not run"]
    #[doc(alias = "InformerFor")]
    #[doc(alias = "GetInformer")]
    pub fn informer<K: Kind>(&self) -> Informer<K> {
        let content = if K::metadata_only() { Content::Metadata } else { Content::Whole };
        let placing = if K::in_namespaces() { Placing::Namespaced } else { Placing::Cluster };
        self.shared(K::resource(), content, placing)
    }

    /// The informer of a resource that is known only at run time, or that `K` does not name.
    ///
    /// For a group, a version and a kind there is `ApiResource::from_gvk`, which guesses the plural; [`resource_named`] asks the server
    /// instead. If `K` is `PartialObjectMeta`, the server is asked for metadata alone.
    ///
    /// [`resource_named`]: Self::resource_named
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
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
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "an informer that nobody holds does not run"]
    #[doc(alias = "ForResource")]
    pub fn informer_for<K: Object>(&self, resource: ApiResource) -> Informer<K> {
        let content = if is_partial::<K>() { Content::Metadata } else { Content::Whole };
        self.shared(resource, content, Placing::Namespaced)
    }

    /// The informer of a resource, by the name that a person types: `deploy`, `deployments.apps`, `Deployment`,
    /// `deployments.v1.apps`. See [`resource_named`](Self::resource_named).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// factory.start();
    /// let deployments = factory.informer_named("deploy").await?;
    /// assert_eq!(deployments.resource().api_version, "apps/v1");
    /// let unknown = factory.informer_named("deplyoments").await.unwrap_err();
    /// assert_eq!(unknown.to_string(), "the server has no resource named \"deplyoments\"; did you mean deployments.apps?");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn informer_named(&self, name: &str) -> BoxFuture<'static, Result<Informer<DynamicObject>, LookupError>> {
        let (factory, name) = (self.clone(), name.to_owned());
        Box::pin(async move {
            let served = factory.look_up(&name).await?;
            Ok(factory.shared(served.resource(), Content::Whole, served.placing))
        })
    }

    /// The resource that a person means by a name: its plural, singular, kind or a short name, with a group (`deployments.apps`), the
    /// beginning of one (`ingresses.networking`), a version (`deployments.v1.apps`), or nothing at all. As with kubectl, full names win over
    /// short ones, and of several groups and versions the one that the server names first.
    ///
    /// Asks the server what it serves, each time anew: two requests.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// let resource = factory.resource_named("ing").await?;
    /// assert_eq!((resource.api_version.as_str(), resource.plural.as_str()), ("networking.k8s.io/v1", "ingresses"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "RESTMapper")]
    pub fn resource_named(&self, name: &str) -> BoxFuture<'static, Result<ApiResource, LookupError>> {
        let (factory, name) = (self.clone(), name.to_owned());
        Box::pin(async move { Ok(factory.look_up(&name).await?.resource()) })
    }

    /// Everything that the server serves, to be asked for by name any number of times: two requests.
    #[must_use]
    #[doc(alias = "ServerPreferredResources")]
    #[doc(alias = "ServerGroupsAndResources")]
    pub fn resources(&self) -> BoxFuture<'static, Result<Resources, ServerError>> {
        let client = self.registry.client.clone();
        Box::pin(async move { discovery::discover(&client).await.map(Resources) })
    }

    async fn look_up(&self, name: &str) -> Result<Served, LookupError> {
        self.resources().await?.named(name).cloned()
    }

    fn shared<K: Object>(&self, resource: ApiResource, content: Content, placing: Placing) -> Informer<K> {
        Informer::of(self.registry.informer(resource, content, placing, self.scope.as_ref()))
    }

    /// Starts every informer that has been asked for; those that are asked for later start at once. May be called any number of
    /// times. Does nothing after [`shutdown`](Self::shutdown).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kube_informer::Factory;
    /// let factory = Factory::new(client);
    /// let maps = factory.informer::<ConfigMap>();
    /// factory.start();
    /// let secrets = factory.informer::<Secret>(); // started, too
    /// maps.synced().await?;
    /// secrets.synced().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    #[doc(alias = "StartWithContext")]
    pub fn start(&self) {
        self.registry.start();
    }

    /// Completes when the cache of every informer is full that is held now. Waits for [`start`](Self::start) too.
    ///
    /// Fails where waiting cannot help: when an informer has stopped, or the server refuses it what it asks for, as for missing
    /// permissions or kinds that do not exist, unless it is [set](crate::InformerSettings::when_refused) to wait for those. The error names
    /// every cache that is not full, and why. Informers keep trying, and a later wait can succeed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
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
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias = "WaitForCacheSyncWithContext")]
    pub fn synced(&self) -> BoxFuture<'static, Result<(), FactorySyncError>> {
        Box::pin(Awaited::new(self.registry.living()).synced())
    }

    /// Which caches are not full now, and why: for whoever has waited long enough.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Factory;
    ///
    /// let factory = Factory::new(client);
    /// let pods = factory.informer::<Pod>();
    /// assert_eq!(factory.missing()[0].to_string(), "pods: not started");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn missing(&self) -> Vec<Missing> {
        Awaited::new(self.registry.living()).missing()
    }

    /// Stops every informer for good, also those that somebody holds. No request, no task and no connection of any is left when this
    /// completes.
    ///
    /// Stopping begins with the call; waiting is for those who want to know. Handlers return from what they are doing, so do not wait
    /// in one of them. Caches can still be read. Informers that are asked for later are stopped from the start.
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
    /// # use kube_informer::Factory;
    /// let factory = Factory::new(client);
    /// let maps = factory.informer::<ConfigMap>();
    /// factory.start();
    /// factory.synced().await?;
    /// factory.shutdown().await;
    /// assert!(server.watches().is_empty());
    /// assert_eq!(maps.lister().count(), 1, "as it last was");
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::must_use_candidate, reason = "stops whether or not somebody waits")]
    pub fn shutdown(&self) -> BoxFuture<'static, ()> {
        let (registry, ending) = (Arc::clone(&self.registry), self.registry.stop());
        Box::pin(async move {
            join_all(ending.iter().map(|shared| shared.all_ended())).await;
            // Nobody waits for a definition any more.
            let ending = registry.definitions.ending();
            join_all(ending.iter().map(|shared| shared.all_ended())).await;
        })
    }
}
