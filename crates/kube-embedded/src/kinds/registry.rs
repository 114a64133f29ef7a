//! Every kind that is served at one moment.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::builtin::BuiltIns;
use super::{Definition, GroupResource, Kind};
use crate::status::Cause;

/// The built-in kinds and those of the CustomResourceDefinitions. A value: a change makes a new one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registry {
    /// By name, `plural.group`.
    definitions: BTreeMap<String, Arc<Definition>>,
}

/// One version of a group and what is served in it, in the order of discovery.
#[derive(Debug)]
pub(crate) struct GroupVersion<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kinds: Vec<&'a Arc<Kind>>,
}

impl Registry {
    /// The built-in kinds alone.
    pub(crate) fn new() -> Registry {
        Registry::default()
    }

    /// This registry with the kinds of a CustomResourceDefinition, instead of those it had by that name.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the definition, in the server's words.
    pub(crate) fn with_crd(&self, crd: &Value) -> Result<Registry, Vec<Cause>> {
        let definition = Definition::parse(crd)?;
        let mut definitions = self.definitions.clone();
        definitions.insert(definition.name.clone(), Arc::new(definition));
        Ok(Registry { definitions })
    }

    /// This registry without the kinds of the CustomResourceDefinition of that name.
    pub(crate) fn without_crd(&self, name: &str) -> Registry {
        let mut definitions = self.definitions.clone();
        definitions.remove(name);
        Registry { definitions }
    }

    /// The kind at a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let built_in = BuiltIns::get().find(group, version, plural);
        built_in.or_else(|| self.custom(group, plural)?.served.iter().find(|kind| kind.version == version).cloned())
    }

    /// The kind of that name.
    pub(crate) fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.kinds().find(|each| each.kind == kind && each.version == version && each.group == group).cloned()
    }

    /// The kind in whose version a resource's objects are stored.
    pub(crate) fn stored(&self, storage: &GroupResource) -> Option<Arc<Kind>> {
        // Discovery names the preferred version first, and it is the one that is stored.
        let built_in = BuiltIns::get()
            .iter()
            .find(|kind| kind.storage == *storage && kind.group == storage.group && kind.plural == storage.resource);
        built_in.or_else(|| Some(&self.custom(&storage.group, &storage.resource)?.stored)).cloned()
    }

    /// Everything that is served, in the order of discovery as far as built-in kinds go.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &Arc<Kind>> {
        BuiltIns::get().iter().chain(self.definitions.values().flat_map(|definition| &definition.served))
    }

    /// The definitions of custom kinds.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// The definition of that name.
    pub(crate) fn definition(&self, name: &str) -> Option<&Arc<Definition>> {
        self.definitions.get(name)
    }

    /// Whether a group has built-in kinds: unknown resources of such a group are answered differently.
    pub(crate) fn is_built_in_group(&self, group: &str) -> bool {
        BuiltIns::get().iter().any(|kind| kind.group == group)
    }

    /// All groups and versions in the order of discovery: the built-in ones, then custom groups by name, in each the best version first.
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

/// A version's name, ordered as Kubernetes does: `v2` above `v1` above `v1beta2` above `v1alpha1` above anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version<'a>(&'a str);

impl Version<'_> {
    /// Stability, major, minor; `None` for names of another form.
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
    let natural = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    natural.then(|| digits.parse().ok()).flatten()
}

impl Ord for Version<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Names of no known form are ordered backwards: the first in the alphabet is the best of them.
        self.parts().cmp(&other.parts()).then_with(|| other.0.cmp(self.0))
    }
}

impl PartialOrd for Version<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
