//! The registry of all served kinds.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::builtin::BuiltIns;
use super::{Definition, GroupResource, Kind};
use crate::http::status::Cause;

/// The built-in kinds and the kinds of all `CustomResourceDefinition`s. Immutable: changes return a
/// new registry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    /// By name, `plural.group`.
    definitions: BTreeMap<String, Arc<Definition>>,
}

/// A group version and its kinds, in discovery order.
#[derive(Debug)]
pub(crate) struct GroupVersion<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kinds: Vec<&'a Arc<Kind>>,
}

impl Registry {
    /// Only the built-in kinds.
    pub(crate) fn new() -> Registry {
        Registry::default()
    }

    /// A copy of this registry in which the kinds of a `CustomResourceDefinition` are added or
    /// replaced.
    ///
    /// # Errors
    ///
    /// All validation errors of the definition, with the server's messages.
    pub(crate) fn with_crd(&self, crd: &Value) -> Result<Registry, Vec<Cause>> {
        let definition = Definition::parse(crd)?;
        let mut definitions = self.definitions.clone();
        definitions.insert(definition.name.clone(), Arc::new(definition));
        Ok(Registry { definitions })
    }

    /// A copy of this registry without the kinds of a `CustomResourceDefinition`.
    pub(crate) fn without_crd(&self, name: &str) -> Registry {
        let mut definitions = self.definitions.clone();
        definitions.remove(name);
        Registry { definitions }
    }

    /// Finds a kind by group, version and plural name.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let built_in = BuiltIns::get().find(group, version, plural);
        built_in.or_else(|| self.custom(group, plural)?.served.iter().find(|kind| kind.version == version).cloned())
    }

    /// Finds a kind by group, version and kind name.
    pub(crate) fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.kinds().find(|each| each.kind == kind && each.version == version && each.group == group).cloned()
    }

    /// The kind of a resource's storage version.
    pub(crate) fn stored(&self, storage: &GroupResource) -> Option<Arc<Kind>> {
        // The first version in discovery is the preferred one, which is also the storage version.
        let built_in = BuiltIns::get()
            .iter()
            .find(|kind| kind.storage == *storage && kind.group == storage.group && kind.plural == storage.resource);
        built_in.or_else(|| Some(&self.custom(&storage.group, &storage.resource)?.stored)).cloned()
    }

    /// All served kinds; the built-in ones in discovery order, then custom ones.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        BuiltIns::get().iter().chain(self.definitions.values().flat_map(|definition| &definition.served))
    }

    /// All parsed `CustomResourceDefinition`s.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// The definition of that name.
    pub(crate) fn definition(&self, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(name)
    }

    /// Whether a group has built-in kinds. For unknown resources of such a group the server's
    /// response differs.
    pub(crate) fn is_built_in_group(&self, group: &str) -> bool {
        BuiltIns::get().iter().any(|kind| kind.group == group)
    }

    /// All group versions in discovery order: the built-in ones, then custom groups by name with
    /// the preferred version first.
    pub(crate) fn group_versions(&self) -> Vec<GroupVersion<'_>> {
        let mut all: Vec<GroupVersion<'_>> = Vec::new();
        for kind in BuiltIns::get().iter() {
            match all.iter_mut().find(|each| each.group == kind.group && each.version == kind.version) {
                Some(known) => known.kinds.push(kind),
                None => all.push(GroupVersion { group: &kind.group, version: &kind.version, kinds: vec![kind] }),
            }
        }
        let mut custom: BTreeMap<(&str, Reverse<Version<'_>>), Vec<&Arc<Kind>>> = BTreeMap::new();
        for kind in self.definitions.values().flat_map(|definition| &definition.served) {
            custom.entry((&kind.group, Reverse(Version(&kind.version)))).or_default().push(kind);
        }
        all.extend(custom.into_iter().map(|((group, version), mut kinds)| {
            kinds.sort_by(|a, b| a.plural.cmp(&b.plural));
            GroupVersion { group, version: version.0.0, kinds }
        }));
        all
    }

    fn custom(&self, group: &str, plural: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(&format!("{plural}.{group}"))
    }
}

/// A version name with the Kubernetes version order: `v2` > `v1` > `v1beta2` > `v1alpha1` > any
/// other name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version<'a>(&'a str);

impl Version<'_> {
    /// Stability, major and minor version. `None` for names in another format.
    fn parts(&self) -> Option<(u8, u64, u64)> {
        let rest = self.0.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = number(&rest[..end])?;
        let (stability, minor) = match &rest[end..] {
            "" => (2, 0),
            beta if beta.starts_with("beta") => (1, number(&beta[4..])?),
            alpha if alpha.starts_with("alpha") => (0, number(&alpha[5..])?),
            _ => return None,
        };
        Some((stability, major, minor))
    }
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Names in other formats are ordered alphabetically, the first one being preferred.
        self.parts().cmp(&other.parts()).then_with(|| other.0.cmp(self.0))
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cache, DeleteReply, Lifecycle, Propagation, PutMissing, UpdateVersion};
    use super::*;

    fn kind(group: &str, version: &str, plural: &str) -> Arc<Kind> {
        Registry::new().find(group, version, plural).unwrap()
    }

    #[test]
    fn sixty_four_built_in_kinds_are_served() {
        assert_eq!(Registry::new().kinds().count(), 64);
        assert!(Registry::new().find("", "v1", "bindings").is_none());
        assert!(Registry::new().find("apps", "v2", "deployments").is_none());
    }

    #[test]
    fn kinds_that_are_one_resource_share_their_storage() {
        let registry = Registry::new();
        let (core, new) = (kind("", "v1", "events"), kind("events.k8s.io", "v1", "events"));
        assert_eq!(core.storage, new.storage);
        assert_eq!(registry.stored(&new.storage).unwrap().api_version(), "v1");
        assert_eq!(core.cache, Cache::Uncached);
        let [v1, v2] = ["v1", "v2"].map(|version| kind("autoscaling", version, "horizontalpodautoscalers"));
        assert_eq!(v1.storage, v2.storage);
        assert_eq!(registry.stored(&v1.storage).unwrap().version, "v2");
    }

    #[test]
    fn the_four_wordings_for_an_unknown_field() {
        let message_of = |kind: Arc<Kind>| kind.selectable_field("foo").unwrap_err();
        assert_eq!(
            message_of(kind("", "v1", "configmaps")),
            r#""foo" is not a known field selector: only "metadata.name", "metadata.namespace""#
        );
        assert_eq!(message_of(kind("", "v1", "pods")), "field label not supported: foo");
        assert_eq!(message_of(kind("batch", "v1", "jobs")), r#"field label "foo" not supported for Job"#);
        assert_eq!(
            message_of(kind("resource.k8s.io", "v1", "resourceslices")),
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: foo"
        );
    }

    #[test]
    fn kinds_behave_as_recorded() {
        let lease = &kind("coordination.k8s.io", "v1", "leases").behaviour;
        assert_eq!((lease.update_version, lease.put_missing), (UpdateVersion::Required, PutMissing::Creates));
        let map = &kind("", "v1", "configmaps").behaviour;
        assert_eq!((map.update_version, map.put_missing), (UpdateVersion::Optional, PutMissing::NotFound));
        assert_eq!(map.delete_reply, DeleteReply::Status);
        assert_eq!(kind("", "v1", "services").behaviour.delete_reply, DeleteReply::Object);
        assert_eq!(kind("batch", "v1", "jobs").behaviour.propagation, Propagation::Orphan);
        assert_eq!(kind("", "v1", "persistentvolumes").behaviour.initial_finalizers, ["kubernetes.io/pv-protection"]);
        assert_eq!(kind("", "v1", "namespaces").behaviour.lifecycle, Lifecycle::Namespace);
        let warning = kind("", "v1", "endpoints").behaviour.deprecation;
        assert_eq!(warning, Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"));
    }

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = ["v1alpha1", "foo10", "v10", "v2", "v1beta2", "v11beta1", "foo1", "v1"].map(Version);
        versions.sort_by(|a, b| b.cmp(a));
        let names = versions.map(|version| version.0);
        assert_eq!(names, ["v10", "v2", "v1", "v11beta1", "v1beta2", "v1alpha1", "foo1", "foo10"]);
    }
}
