//! The name of an informer in metrics and logs.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kube::core::ApiResource;
use parking_lot::Mutex;

/// What identifies an informer in metrics.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_informer::Informer;
///
/// let builder = || Informer::<Deployment>::builder(client.clone()).namespace("default").labels("app=web");
/// let (web, named) = (builder().build(), builder().name("web-deployments").build());
/// assert_eq!(web.name().to_string(), "deployments.apps");
/// assert_eq!((web.name().resource(), web.name().scope()), ("deployments", "in default where app=web"));
/// assert_eq!(named.name().to_string(), "web-deployments");
/// assert_eq!(builder().build().name().to_string(), "deployments.apps-2", "the first is still there");
/// # Ok(()) });
/// ```
#[doc(alias("NewInformerName"))]
pub struct InformerName {
    name: Arc<str>,
    group: Box<str>,
    version: Box<str>,
    resource: Box<str>,
    scope: Box<str>,
}

/// The names of all informers of the process.
static NAMES: Mutex<BTreeSet<Arc<str>>> = Mutex::new(BTreeSet::new());

impl InformerName {
    /// Reserves a name until it is dropped: `wanted`, or with a number behind it if another
    /// informer has that name.
    pub(crate) fn reserve(wanted: &str, resource: &ApiResource, scope: &str) -> Self {
        let mut names = NAMES.lock();
        let mut name: Arc<str> = wanted.into();
        let mut nth = 1_u64;
        while names.contains(&name) {
            nth += 1;
            name = format!("{wanted}-{nth}").into();
        }
        names.insert(Arc::clone(&name));
        Self {
            name,
            group: resource.group.as_str().into(),
            version: resource.version.as_str().into(),
            resource: resource.plural.as_str().into(),
            scope: scope.into(),
        }
    }

    /// The name: that of the [builder](crate::InformerBuilder::name) or else the resource and its
    /// group, `deployments.apps`. At any time it is unique in the process: if another informer has
    /// the name, a number follows.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API group of the resource; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The API version of the resource.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The plural of the resource.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The namespaces and selectors with which the informer was built, as a
    /// [`Scope`](crate::Scope) prints them; empty for all objects.
    #[must_use]
    pub fn scope(&self) -> &str {
        &self.scope
    }
}

impl Drop for InformerName {
    fn drop(&mut self) {
        NAMES.lock().remove(&self.name);
    }
}

impl fmt::Display for InformerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl fmt::Debug for InformerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InformerName({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_while_they_are_held_and_free_afterwards() {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&());
        let reserve = || InformerName::reserve("names-test", &resource, "");
        let (first, second) = (reserve(), reserve());
        let third = reserve();
        assert_eq!([first.name(), second.name(), third.name()], ["names-test", "names-test-2", "names-test-3"]);
        drop(second);
        assert_eq!(reserve().name(), "names-test-2");
        drop((first, third));
        assert_eq!(reserve().name(), "names-test");
    }
}
