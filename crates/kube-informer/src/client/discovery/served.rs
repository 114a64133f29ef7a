//! The resources that a server serves.

use std::collections::HashSet;

use kube::core::ApiResource;

use super::lookup::{self, LookupError};

/// Whether the objects of a resource are namespaced.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube_informer::Factory;
/// use kube_informer::client::ResourceScope;
///
/// let served = Factory::new(client).resources().await?;
/// assert_eq!(served.named("pods")?.scope(), ResourceScope::Namespaced);
/// assert_eq!(served.named("nodes")?.scope(), ResourceScope::Cluster);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceScope {
    /// Each object is in a namespace.
    Namespaced,
    /// The objects are cluster-scoped.
    Cluster,
}

/// A resource that a server serves, in one version.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube_informer::Factory;
///
/// let served = Factory::new(client).resources().await?;
/// let deployments = served.named("deploy")?;
/// assert_eq!((deployments.kind(), deployments.plural(), deployments.singular()), ("Deployment", "deployments", "deployment"));
/// assert_eq!((deployments.full_name().as_str(), deployments.short_names()), ("deployments.apps", ["deploy".to_owned()].as_slice()));
/// assert_eq!(deployments.resource().api_version, "apps/v1");
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "APIResource")]
pub struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) scope: ResourceScope,
    pub(crate) watching: Watching,
}

/// Whether a resource can be listed and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watching {
    Possible,
    Impossible,
}

impl Served {
    /// The `ApiResource` of it, such as for an informer.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        let Self { group, version, kind, plural, .. } = self;
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        ApiResource {
            group: group.clone(),
            version: version.clone(),
            api_version,
            kind: kind.clone(),
            plural: plural.clone(),
        }
    }

    /// Its plural name with its group, as in RBAC rules and kubectl: `pods`, `deployments.apps`.
    #[must_use]
    pub fn full_name(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.plural, self.group)
    }

    /// Its group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The kind of its objects.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its plural name, in lowercase.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Its singular name, in lowercase.
    #[must_use]
    pub fn singular(&self) -> &str {
        &self.singular
    }

    /// Its short names, such as `po`.
    #[must_use]
    pub fn short_names(&self) -> &[String] {
        &self.short_names
    }

    /// The categories it belongs to, such as `all`.
    #[must_use]
    pub fn categories(&self) -> &[String] {
        &self.categories
    }

    /// Whether its objects are namespaced.
    #[must_use]
    pub fn scope(&self) -> ResourceScope {
        self.scope
    }

    /// Whether it can be listed and watched, as an informer requires.
    #[must_use]
    pub fn is_watchable(&self) -> bool {
        self.watching == Watching::Possible
    }
}

/// All resources that a server serves, at the time of
/// [`Factory::resources`](crate::Factory::resources).
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube_informer::Factory;
///
/// let served = Factory::new(client).resources().await?;
/// assert_eq!(served.named("cm")?.full_name(), "configmaps");
/// assert!(served.matching("all")?.iter().any(|resource| resource.kind() == "ReplicaSet"));
/// let unknown = served.named("configmsap").unwrap_err();
/// assert_eq!(unknown.to_string(), "the server has no resource named \"configmsap\"; did you mean configmaps?");
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "RESTMapper")]
pub struct Resources(pub(crate) Vec<Served>);

impl Resources {
    /// Finds a resource by a name as typed by a user. See
    /// [`Factory::resource_named`](crate::Factory::resource_named).
    ///
    /// # Errors
    ///
    /// If there is no resource of that name, or it cannot be watched.
    pub fn named(&self, name: &str) -> Result<&Served, LookupError> {
        lookup::find(&self.0, name)
    }

    /// Finds resources by a word as typed by a user: the resource of that name, or else all
    /// resources of that category, in the versions that the server prefers.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be watched.
    pub fn matching(&self, word: &str) -> Result<Vec<&Served>, LookupError> {
        let error = match self.named(word) {
            Ok(found) => return Ok(vec![found]),
            Err(error) => error,
        };
        let is_in =
            |served: &&Served| served.categories.iter().any(|category| category.eq_ignore_ascii_case(word.trim()));
        let all: Vec<&Served> = self.preferred().filter(is_in).filter(|served| served.is_watchable()).collect();
        if all.is_empty() { Err(error) } else { Ok(all) }
    }

    /// Every resource once, in the version that the server prefers, in the server's order.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use kube_informer::{Factory, MetadataOnly};
    ///
    /// // The metadata of all objects of the cluster.
    /// let factory = Factory::new(client);
    /// let served = factory.resources().await?;
    /// let watchable = served.preferred().filter(|resource| resource.is_watchable());
    /// let informers: Vec<_> = watchable.map(|resource| factory.informer_for::<MetadataOnly>(resource)).collect();
    /// factory.start();
    /// factory.synced().await?;
    /// # assert!(informers.len() > 30);
    /// # Ok(()) });
    /// ```
    #[doc(alias = "ServerPreferredResources")]
    pub fn preferred(&self) -> impl Iterator<Item = &Served> {
        let mut known = HashSet::new();
        self.0.iter().filter(move |served| known.insert((served.group(), served.plural())))
    }

    /// Every resource in every version, in the server's order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &Served> {
        self.0.iter()
    }
}
