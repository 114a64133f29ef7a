//! Scenarios: what is watched, and which faults occur.

use std::time::Duration;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// A configuration of both informers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    kind: Kind,
    pub(crate) client: Client,
    pub(crate) view: View,
    pub(crate) resync: Option<Duration>,
    pub(crate) faults: Faults,
}

/// The kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    ServiceAccount,
    Pod,
    Lease,
    /// Cluster-scoped.
    StorageClass,
    /// Defined by the test.
    Widget,
}

/// Which of client-go's clients is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// The typed client for built-in kinds, which prefers protobuf and accepts JSON.
    Typed,
    /// The dynamic client for any kind, which uses JSON.
    Dynamic,
}

/// Which objects the informers select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Everything,
    OneNamespace,
    Labels(&'static str),
    Fields(&'static str),
}

/// The faults of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Faults {
    None,
    /// Connections are cut, refused, closed at once and stalled, for one or both informers.
    Cuts,
    /// Connections are cut, and the server loses its history before they are restored.
    LostHistory,
}

const PLAIN: Scenario = Scenario {
    name: "no cuts",
    kind: Kind::Secret,
    client: Client::Typed,
    view: View::Everything,
    resync: None,
    faults: Faults::None,
};

const CUTS: Scenario = Scenario { name: "cuts", kind: Kind::ConfigMap, faults: Faults::Cuts, ..PLAIN };

/// Scenarios that can run concurrently.
pub(crate) const TOGETHER: [Scenario; 7] = [
    PLAIN,
    CUTS,
    Scenario {
        name: "label selector",
        kind: Kind::ServiceAccount,
        view: View::Labels("tier in (gold, silver)"),
        ..CUTS
    },
    Scenario { name: "field selector", kind: Kind::Pod, view: View::Fields("status.phase=Pending"), ..CUTS },
    Scenario { name: "one namespace", kind: Kind::Lease, view: View::OneNamespace, ..CUTS },
    Scenario { name: "resync", kind: Kind::StorageClass, resync: Some(Duration::from_secs(1)), ..CUTS },
    Scenario { name: "custom kind", kind: Kind::Widget, client: Client::Dynamic, ..CUTS },
];

/// Needs exclusive use of the server.
pub(crate) const ALONE: Scenario = Scenario { name: "lost history", faults: Faults::LostHistory, ..CUTS };

impl Scenario {
    /// A name for folders and objects.
    pub(crate) fn slug(&self) -> String {
        self.name.replace(' ', "-")
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The resource in the format of client-go's program.
    pub(crate) fn resource(&self) -> String {
        let ApiResource { api_version, plural, .. } = self.kind.resource();
        format!("{api_version}/{plural}")
    }

    pub(crate) fn is_of_one_namespace(&self) -> bool {
        self.view == View::OneNamespace
    }

    pub(crate) fn labels(&self) -> Option<&'static str> {
        match self.view {
            View::Labels(labels) => Some(labels),
            View::Everything | View::OneNamespace | View::Fields(_) => None,
        }
    }

    pub(crate) fn fields(&self) -> Option<&'static str> {
        match self.view {
            View::Fields(fields) => Some(fields),
            View::Everything | View::OneNamespace | View::Labels(_) => None,
        }
    }
}

impl Kind {
    pub(crate) fn resource(self) -> ApiResource {
        let (group, version, kind, plural) = match self {
            Self::ConfigMap => ("", "v1", "ConfigMap", "configmaps"),
            Self::Secret => ("", "v1", "Secret", "secrets"),
            Self::ServiceAccount => ("", "v1", "ServiceAccount", "serviceaccounts"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Lease => ("coordination.k8s.io", "v1", "Lease", "leases"),
            Self::StorageClass => ("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
            Self::Widget => ("e2e.example.com", "v1", "Widget", "widgets"),
        };
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
    }

    pub(crate) fn is_namespaced(self) -> bool {
        self != Self::StorageClass
    }

    /// The required fields of an object in addition to its metadata.
    pub(crate) fn body(self) -> Value {
        match self {
            Self::ConfigMap => json!({"data": {"colour": "blue"}}),
            Self::Secret => json!({"stringData": {"colour": "blue"}}),
            Self::ServiceAccount | Self::Lease => json!({}),
            Self::Pod => json!({"spec": {"containers": [{"name": "main", "image": "none"}]}}),
            Self::StorageClass => json!({"provisioner": "example.com/none"}),
            Self::Widget => json!({"spec": {"colour": "blue", "sizes": [1, 2, 3]}}),
        }
    }

    /// The definition of the kind, if it is not built in.
    pub(crate) fn definition(self) -> Option<Value> {
        if self != Self::Widget {
            return None;
        }
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.e2e.example.com"},
            "spec": {
                "group": "e2e.example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
                    }}
                }]
            }
        }))
    }
}
