//! The factory builder, and the settings per kind.

use std::any::type_name;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kube::Client;
use kube::core::{ApiResource, DynamicObject};

use super::Factory;
use super::registry::{Content, Registry, Sources};
use crate::client::{ApiListWatch, ScopedResource};
use crate::informer::{InformerSettings, InvalidSetting};
use crate::object::{Kind, Object};

/// Builds a [`Factory`]. See [`Factory::builder`].
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kube_informer::{Factory, Keep};
///
/// let factory = Factory::builder(client)
///     .defaults(|all| all.drop_managed_fields().resync(Duration::from_secs(600)))
///     .kind::<Pod>(|pods| pods.namespaces(["shop", "billing"]).labels("app=web"))
///     .kind::<ConfigMap>(|maps| maps.keep(Keep::Plain))
///     .build()?;
/// # drop(factory);
/// # Ok(()) });
/// ```
#[must_use = "a factory is made by build()"]
pub struct FactoryBuilder {
    client: Client,
    kinds: Kinds,
    sources: Option<Sources>,
    changes: Vec<Change>,
}

/// The settings of one kind, as a change of the defaults.
struct Change {
    key: KindKey,
    given_for: Box<str>,
    settings: Box<dyn FnOnce(InformerSettings<DynamicObject>) -> InformerSettings<DynamicObject> + Send>,
}

/// The defaults, and the settings per kind.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    defaults: InformerSettings<DynamicObject>,
    by_kind: HashMap<KindKey, KindSettings>,
}

/// Identifies a kind regardless of its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct KindKey {
    group: String,
    plural: String,
    content: Content,
}

#[derive(Debug)]
struct KindSettings {
    settings: InformerSettings<DynamicObject>,
    given_for: Box<str>,
}

/// A factory cannot be built with its settings.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::Factory;
///
/// let built = Factory::builder(client).kind::<Pod>(|pods| pods.namespace("My Namespace")).build();
/// assert!(built.unwrap_err().to_string().starts_with("pods: namespace: \"My Namespace\" is no name of a namespace"));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryBuildError {
    /// One resource was given conflicting settings.
    #[error(transparent)]
    Conflict(#[from] SettingsConflict),
    /// A setting is not valid.
    #[error("{of}: {invalid}")]
    Invalid {
        /// The resource, for example `deployments.apps`, or `defaults`.
        of: String,
        /// The setting.
        invalid: InvalidSetting,
    },
}

/// One resource was given conflicting settings.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
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
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource} is given two settings of {setting}: {first} and {second}")]
#[non_exhaustive]
pub struct SettingsConflict {
    /// The resource, for example `deployments.apps`.
    pub resource: String,
    /// The name of the setting.
    pub setting: &'static str,
    /// The first value, and what it was given for.
    pub first: String,
    /// The second value, and what it was given for.
    pub second: String,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self { client, kinds: Kinds::default(), sources: None, changes: Vec::new() }
    }

    /// Sets the defaults: the settings of kinds without their own, and the base of those that have.
    ///
    /// Namespaces apply only to namespaced kinds. A cluster-scoped custom kind that is known only
    /// at run time has to be given as a [`Served`](crate::client::Served), or set to
    /// [`all_namespaces`](InformerSettings::all_namespaces).
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
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
    /// factory.synced().await?; // nodes are cluster-scoped, so the namespace does not apply
    /// assert_eq!(maps.lister().len(), 1);
    /// # drop(nodes);
    /// # Ok(()) });
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

    /// Sets the settings of one kind, for all of its versions and types. They are based on the
    /// [defaults](Self::defaults), even if those are set later.
    ///
    /// Metadata-only objects ([`MetadataOnly`](crate::MetadataOnly)) have a separate cache and may
    /// have their own settings. By default they have those of the kind, except for `transform` and
    /// `keep_if`, which may read bodies.
    #[doc(alias = "ByObject")]
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn kind<K: Kind>(
        self,
        settings: impl FnOnce(InformerSettings<K>) -> InformerSettings<K> + Send + 'static,
    ) -> Self {
        let content = if K::METADATA_ONLY { Content::Metadata } else { Content::Whole };
        self.change(&K::resource(), content, type_name::<K>().into(), settings)
    }

    /// Sets the settings of a kind that is known only at run time. If `K` is `MetadataOnly`,
    /// they apply only to its metadata.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    /// use kube_informer::{Factory, Keep};
    ///
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let factory = Factory::builder(client).kind_for::<DynamicObject>(&widgets, |all| all.keep(Keep::Plain)).build()?;
    /// assert_eq!(factory.informer_for::<DynamicObject>(widgets).resource().plural, "widgets");
    /// # Ok(()) });
    /// ```
    pub fn kind_for<K: Object>(
        self,
        resource: impl Into<ScopedResource>,
        settings: impl FnOnce(InformerSettings<K>) -> InformerSettings<K> + Send + 'static,
    ) -> Self {
        let content = if K::METADATA_ONLY { Content::Metadata } else { Content::Whole };
        let ScopedResource { resource, .. } = resource.into();
        let given_for = format!("{} {}", resource.api_version, resource.kind);
        self.change(&resource, content, given_for.into(), settings)
    }

    fn change<K>(
        mut self,
        resource: &ApiResource,
        content: Content,
        given_for: Box<str>,
        settings: impl FnOnce(InformerSettings<K>) -> InformerSettings<K> + Send + 'static,
    ) -> Self {
        let settings = Box::new(|defaults: InformerSettings<DynamicObject>| settings(defaults.cast()).cast());
        self.changes.push(Change { key: KindKey::new(resource, content), given_for, settings });
        self
    }

    /// Customizes the list and watch requests of all kinds, for example compression or additional
    /// query parameters.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
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
    /// # Ok(()) });
    /// ```
    #[doc(alias = "WithTweakListOptions")]
    #[doc(alias = "TweakListOptionsFunc")]
    pub fn sources(mut self, change: impl Fn(ApiListWatch) -> ApiListWatch + Send + Sync + 'static) -> Self {
        self.sources = Some(Box::new(change));
        self
    }

    /// Builds the factory. No informer does anything until it is [started](Factory::start).
    ///
    /// Fails if a setting is not valid, or if one resource was given conflicting settings, for
    /// example through two types of it.
    pub fn build(self) -> Result<Factory, FactoryBuildError> {
        let Self { client, mut kinds, sources, changes } = self;
        kinds.defaults.check().map_err(|invalid| FactoryBuildError::Invalid { of: "defaults".to_owned(), invalid })?;
        for change in changes {
            kinds.add(change)?;
        }
        Ok(Factory { registry: Arc::new(Registry::new(client, kinds, sources)), scope: None })
    }
}

impl Kinds {
    fn add(&mut self, change: Change) -> Result<(), FactoryBuildError> {
        let Change { key, given_for, settings } = change;
        let chosen = KindSettings { settings: settings(self.defaults.clone()), given_for };
        chosen.settings.check().map_err(|invalid| FactoryBuildError::Invalid { of: key.to_string(), invalid })?;
        let Some(before) = self.by_kind.get(&key) else {
            self.by_kind.insert(key, chosen);
            return Ok(());
        };
        let Some((setting, first, second)) = before.settings.difference(&chosen.settings) else { return Ok(()) };
        Err(FactoryBuildError::Conflict(SettingsConflict {
            resource: key.to_string(),
            setting,
            first: format!("{first} for {}", before.given_for),
            second: format!("{second} for {}", chosen.given_for),
        }))
    }

    pub(super) fn settings(&self, resource: &ApiResource, content: Content) -> InformerSettings<DynamicObject> {
        let chosen = |content| self.by_kind.get(&KindKey::new(resource, content)).map(|chosen| chosen.settings.clone());
        let whole = || chosen(Content::Whole).unwrap_or_else(|| self.defaults.clone());
        match content {
            Content::Whole => whole(),
            Content::Metadata => chosen(content).unwrap_or_else(|| whole().for_metadata()),
        }
    }
}

impl KindKey {
    fn new(resource: &ApiResource, content: Content) -> Self {
        Self { group: resource.group.clone(), plural: resource.plural.clone(), content }
    }
}

impl fmt::Display for KindKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{}", self.plural, self.group)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = self.changes.iter().map(|change| change.key.to_string()).collect();
        f.debug_struct("FactoryBuilder")
            .field("defaults", &self.kinds.defaults)
            .field("kinds", &kinds)
            .finish_non_exhaustive()
    }
}
