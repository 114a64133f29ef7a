//! What is printed and recorded of a kind.

use kube_informer::client::{ResourceScope, Served};
use serde::{Deserialize, Serialize};

/// The names of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KindInfo {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
}

impl KindInfo {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The plural with its group.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Prefix that kubectl writes before an object's name: `pod`, `deployment.apps`.
    pub(crate) fn singular_name(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }

    /// Whether the kind has this name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        [self.plural.clone(), self.full_name(), self.kind.to_lowercase(), self.singular_name()].contains(&name)
            || self.short_names.contains(&name)
    }
}

impl From<&Served> for KindInfo {
    fn from(served: &Served) -> Self {
        Self {
            group: served.group().to_owned(),
            version: served.version().to_owned(),
            kind: served.kind().to_owned(),
            plural: served.plural().to_owned(),
            namespaced: served.scope() == ResourceScope::Namespaced,
            short_names: served.short_names().to_vec(),
        }
    }
}
