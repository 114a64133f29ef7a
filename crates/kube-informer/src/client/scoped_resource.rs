//! A resource to list and watch, and whether its objects are namespaced.

use kube::core::ApiResource;

use super::discovery::served::{ResourceScope, Served};
use crate::object::{Kind, is_built_in_cluster_scoped};

/// A resource to list and watch, and whether its objects are namespaced, if that is known.
///
/// What takes one also takes an `ApiResource` or a [`Served`]. A `Served`, from discovery, says
/// whether its objects are namespaced. With an `ApiResource` this is known of built-in kinds; other
/// kinds count as namespaced.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube::core::DynamicObject;
/// use kube_informer::Factory;
///
/// let factory = Factory::builder(client).defaults(|all| all.namespace("default")).build()?;
/// let served = factory.resources().await?;
/// let nodes = factory.informer_for::<DynamicObject>(served.named("no")?); // in no namespace
/// factory.start();
/// nodes.synced().await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopedResource {
    pub(crate) resource: ApiResource,
    pub(crate) scope: Option<ResourceScope>,
}

impl ScopedResource {
    pub(crate) fn of<K: Kind>() -> Self {
        let scope = if K::in_namespaces() { ResourceScope::Namespaced } else { ResourceScope::Cluster };
        Self { resource: K::resource(), scope: Some(scope) }
    }

    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.scope == Some(ResourceScope::Cluster)
    }
}

impl From<ApiResource> for ScopedResource {
    fn from(resource: ApiResource) -> Self {
        let scope = is_built_in_cluster_scoped(&resource).then_some(ResourceScope::Cluster);
        Self { resource, scope }
    }
}

impl From<&ApiResource> for ScopedResource {
    fn from(resource: &ApiResource) -> Self {
        resource.clone().into()
    }
}

impl From<&Served> for ScopedResource {
    fn from(served: &Served) -> Self {
        Self { resource: served.resource(), scope: Some(served.scope()) }
    }
}

impl From<Served> for ScopedResource {
    fn from(served: Served) -> Self {
        (&served).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::discovery::discover;

    #[tokio::test]
    async fn of_built_in_kinds_an_api_resource_is_as_good_as_discovery() {
        let server = kube_embedded::Server::builder().in_process().start().await.unwrap();
        let served = discover(&kube::Client::new(server.service(), "default")).await.unwrap();
        assert!(served.len() > 40);
        for served in served.into_iter().filter(Served::is_watchable) {
            let known = ScopedResource::from(served.resource()).is_cluster_scoped();
            assert_eq!(known, served.scope() == ResourceScope::Cluster, "{}", served.full_name());
        }
    }
}
