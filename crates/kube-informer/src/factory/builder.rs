//! Building a factory.

use std::any::type_name;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kube::Client;
use kube::core::{ApiResource, DynamicObject};

use super::Factory;
use super::registry::{Content, Registry, Sources};
use crate::client::ApiListWatch;
use crate::informer::InformerSettings;
use crate::object::{Kind, Object, is_partial};

/// A factory to be. See [`Factory::builder`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kube_informer::{Factory, Keep};
///
/// let only_web = "app=web".parse()?;
/// let factory = Factory::builder(client)
///     .defaults(|all| all.drop_managed_fields().resync(Duration::from_secs(600)))
///     .kind::<Pod>(|pods| pods.namespaces(["shop", "billing"]).labels(only_web))
///     .kind::<ConfigMap>(|maps| maps.keep(Keep::Plain))
///     .build()?;
/// # drop(factory);
/// # Ok(())
/// # }
/// ```
#[must_use = "a factory is made by build()"]
pub struct FactoryBuilder {
    client: Client,
    kinds: Kinds,
    sources: Option<Sources>,
    changes: Vec<Change>,
}

/// What is to be changed in the defaults for one kind.
struct Change {
    what: What,
    who: Box<str>,
    settings: Box<dyn FnOnce(InformerSettings<DynamicObject>) -> InformerSettings<DynamicObject> + Send>,
}

/// What is set for each kind.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    defaults: InformerSettings<DynamicObject>,
    by_kind: HashMap<What, Chosen>,
}

/// Which kind, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct What {
    group: String,
    plural: String,
    content: Content,
}

#[derive(Debug)]
struct Chosen {
    settings: InformerSettings<DynamicObject>,
    who: Box<str>,
}

/// One resource has been given settings that cannot both hold.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::{Factory, Kind, Keep};
///
/// #[derive(serde::Deserialize)]
/// struct PodIps {}
/// impl Kind for PodIps {
///     fn resource() -> kube::core::ApiResource { Pod::resource() }
/// }
///
/// let built = Factory::builder(client).kind::<Pod>(|pods| pods).kind::<PodIps>(|pods| pods.keep(Keep::Plain)).build();
/// let conflict = built.unwrap_err().to_string();
/// assert!(conflict.starts_with("pods is given two settings of keep: Compact for k8s_openapi"));
/// assert!(conflict.contains("and Plain for"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource} is given two settings of {setting}: {first} and {second}")]
#[non_exhaustive]
pub struct SettingsConflict {
    /// The resource, as in `deployments.apps`.
    pub resource: String,
    /// Which setting.
    pub setting: &'static str,
    /// The value that was given first, and for what.
    pub first: String,
    /// The other value, and for what.
    pub second: String,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self { client, kinds: Kinds::default(), sources: None, changes: Vec::new() }
    }

    /// What holds for every kind that has no settings of its own, and what those begin with.
    ///
    /// Namespaces are for kinds that are in some. A kind that is known only at run time and in none is to be given
    /// [`all_namespaces`](InformerSettings::all_namespaces).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for namespace in ["default", "kube-system"] {
    /// #     let metadata = serde_json::json!({"name": "a", "namespace": namespace});
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Node};
    /// # use kube_informer::Factory;
    /// let factory = Factory::builder(client).defaults(|all| all.namespace("kube-system")).build()?;
    /// let (maps, nodes) = (factory.informer::<ConfigMap>(), factory.informer::<Node>());
    /// factory.start();
    /// factory.synced().await?; // nodes are in no namespace, and not asked for by one
    /// assert_eq!(maps.lister().count(), 1);
    /// # drop(nodes);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "WithTransform")]
    #[doc(alias = "WithNamespace")]
    #[doc(alias = "SharedInformerOption")]
    pub fn defaults(
        mut self,
        settings: impl FnOnce(InformerSettings<DynamicObject>) -> InformerSettings<DynamicObject>,
    ) -> Self {
        self.kinds.defaults = settings(self.kinds.defaults);
        self
    }

    /// What holds for one kind, in whatever version and under whatever type it is viewed. Begins with the
    /// [defaults](Self::defaults), also with those that are given later.
    ///
    /// Metadata alone (`PartialObjectMeta`) has its own cache, and may have its own settings. Without, it has those of the kind, but
    /// for `transform` and `keep_if`, which may look into bodies.
    #[doc(alias = "ByObject")]
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn kind<K: Kind>(
        self,
        settings: impl FnOnce(InformerSettings<K>) -> InformerSettings<K> + Send + 'static,
    ) -> Self {
        let content = if K::metadata_only() { Content::Metadata } else { Content::Whole };
        self.change(&K::resource(), content, type_name::<K>().into(), settings)
    }

    /// The same for a kind that is known only at run time. If `K` is `PartialObjectMeta`, for its metadata alone.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use kube_informer::{Factory, Keep};
    ///
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let factory = Factory::builder(client).kind_for::<DynamicObject>(&widgets, |all| all.keep(Keep::Plain)).build()?;
    /// assert_eq!(factory.informer_for::<DynamicObject>(widgets).resource().plural, "widgets");
    /// # Ok(())
    /// # }
    /// ```
    pub fn kind_for<K: Object>(
        self,
        resource: &ApiResource,
        settings: impl FnOnce(InformerSettings<K>) -> InformerSettings<K> + Send + 'static,
    ) -> Self {
        let content = if is_partial::<K>() { Content::Metadata } else { Content::Whole };
        let who = format!("{} {}", resource.api_version, resource.kind);
        self.change(resource, content, who.into(), settings)
    }

    fn change<K>(
        mut self,
        resource: &ApiResource,
        content: Content,
        who: Box<str>,
        settings: impl FnOnce(InformerSettings<K>) -> InformerSettings<K> + Send + 'static,
    ) -> Self {
        let settings = Box::new(|defaults: InformerSettings<DynamicObject>| settings(defaults.cast()).cast());
        self.changes.push(Change { what: What::new(resource, content), who, settings });
        self
    }

    /// Changes where objects come from, of every kind: whether answers are compressed, parameters of one's own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Factory;
    /// let factory = Factory::builder(client)
    ///     .sources(|source| source.tweak(|parameters| parameters.set("timeoutSeconds", "60")))
    ///     .build()?;
    /// let maps = factory.informer::<ConfigMap>();
    /// factory.start();
    /// maps.synced().await?;
    /// assert!(server.requests()[0].query.contains("timeoutSeconds=60"));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "WithTweakListOptions")]
    #[doc(alias = "TweakListOptionsFunc")]
    pub fn sources(mut self, change: impl Fn(ApiListWatch) -> ApiListWatch + Send + Sync + 'static) -> Self {
        self.sources = Some(Box::new(change));
        self
    }

    /// The factory, of which no informer does anything until it is [started](Factory::start).
    ///
    /// Fails if one resource was given settings that cannot both hold, as when two types are views of it.
    pub fn build(self) -> Result<Factory, SettingsConflict> {
        let Self { client, mut kinds, sources, changes } = self;
        for change in changes {
            kinds.add(change)?;
        }
        Ok(Factory { registry: Arc::new(Registry::new(client, kinds, sources)), scope: None })
    }
}

impl Kinds {
    fn add(&mut self, change: Change) -> Result<(), SettingsConflict> {
        let Change { what, who, settings } = change;
        let chosen = Chosen { settings: settings(self.defaults.clone()), who };
        let Some(before) = self.by_kind.get(&what) else {
            self.by_kind.insert(what, chosen);
            return Ok(());
        };
        let Some((setting, first, second)) = before.settings.difference(&chosen.settings) else { return Ok(()) };
        Err(SettingsConflict {
            resource: what.to_string(),
            setting,
            first: format!("{first} for {}", before.who),
            second: format!("{second} for {}", chosen.who),
        })
    }

    pub(super) fn settings(&self, resource: &ApiResource, content: Content) -> InformerSettings<DynamicObject> {
        let chosen = |content| self.by_kind.get(&What::new(resource, content)).map(|chosen| chosen.settings.clone());
        let whole = || chosen(Content::Whole).unwrap_or_else(|| self.defaults.clone());
        match content {
            Content::Whole => whole(),
            Content::Metadata => chosen(content).unwrap_or_else(|| whole().for_metadata()),
        }
    }
}

impl What {
    fn new(resource: &ApiResource, content: Content) -> Self {
        Self { group: resource.group.clone(), plural: resource.plural.clone(), content }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.plural, self.group)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self.changes.iter().map(|change| change.what.to_string()).collect();
        f.debug_struct("FactoryBuilder")
            .field("defaults", &self.kinds.defaults)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}
