//! Which objects of a kind a controller watches.

use std::fmt;

use kube_informer::client::ScopedResource;
use kube_informer::{Factory, Informer, Kind, Object, Scope};

use crate::filter::Filter;

/// Which objects of a kind a controller watches, and which of their changes concern it.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use kube_controller::{Filter, Watch};
/// use kube_informer::{MetadataOnly, Scope};
///
/// // Gold config maps of two namespaces, when their data or labels change.
/// let _ = Watch::<ConfigMap>::kind()
///     .within(Scope::everything().namespaces(["shop", "blog"]).labels("tier=gold"))
///     .filter(!Filter::annotations());
/// // Of secrets only metadata is transferred and cached.
/// let _ = Watch::<MetadataOnly<Secret>>::kind();
/// ```
#[must_use = "a watch does nothing until a controller is given it"]
pub struct Watch<K> {
    open: Open<K>,
    scope: Option<Scope>,
    filter: Option<Filter<K>>,
}

/// Takes the informer from a factory.
type Open<K> = Box<dyn FnOnce(&Factory) -> Informer<K> + Send>;

impl<K: Object> Watch<K> {
    /// Watches the objects of the kind `K` that the factory has in its scope.
    pub fn kind() -> Self
    where
        K: Kind,
    {
        Self::of(Factory::informer)
    }

    /// Watches the objects of a resource that is known only at run time, or that `K` does not name.
    pub fn resource(resource: impl Into<ScopedResource>) -> Self {
        let resource = resource.into();
        Self::of(move |factory| factory.informer_for(resource))
    }

    fn of(informer: impl FnOnce(&Factory) -> Informer<K> + Send + 'static) -> Self {
        Self { open: Box::new(informer), scope: None, filter: None }
    }

    /// Watches only some objects: by namespaces, labels or fields, instead of those that the
    /// factory has in its scope.
    #[doc(alias("watcher::Config", "ByObject"))]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Ignores changes that do not pass a filter; with several, those that do not pass all of them.
    #[doc(alias = "WithPredicates")]
    pub fn filter(mut self, filter: Filter<K>) -> Self {
        self.filter = Some(match self.filter {
            Some(first) => first.and(filter),
            None => filter,
        });
        self
    }

    pub(super) fn open(self, factory: &Factory) -> (Informer<K>, Option<Filter<K>>) {
        let informer = match self.scope {
            Some(scope) => (self.open)(&factory.within(scope)),
            None => (self.open)(factory),
        };
        (informer, self.filter)
    }
}

impl<K> fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Watch");
        debug.field("scope", &self.scope).field("filter", &self.filter.is_some()).finish_non_exhaustive()
    }
}
