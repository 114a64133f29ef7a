//! Workloads: kinds and their sizes.

use std::fmt;
use std::str::FromStr;

use kube_embedded::generate::{Generator, Sample};

/// A kind of objects to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// 6 to 9 KB, with managedFields.
    Pods,
    /// 1 to 2 KB.
    EndpointSlices,
    /// 1 KB.
    Events,
    /// Custom resources of 1 KB; not available in protobuf.
    Certificates,
    /// 100 KB.
    ConfigMaps,
}

impl Work {
    /// All workloads.
    pub const ALL: [Self; 5] = [Self::Pods, Self::EndpointSlices, Self::Events, Self::Certificates, Self::ConfigMaps];

    /// The plural name in paths and on the command line.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::EndpointSlices => "endpointslices",
            Self::Events => "events",
            Self::Certificates => "certificates",
            Self::ConfigMaps => "configmaps",
        }
    }

    /// The kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Pods => "Pod",
            Self::EndpointSlices => "EndpointSlice",
            Self::Events => "Event",
            Self::Certificates => "Certificate",
            Self::ConfigMaps => "ConfigMap",
        }
    }

    /// The group and version, as in `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Pods | Self::Events | Self::ConfigMaps => "v1",
            Self::EndpointSlices => "discovery.k8s.io/v1",
            Self::Certificates => "pki.acme.com/v1",
        }
    }

    /// The path for list and watch.
    pub fn path(self) -> String {
        let root = if self.api_version().contains('/') { "apis" } else { "api" };
        format!("/{root}/{}/{}", self.api_version(), self.plural())
    }

    /// Whether the server supports protobuf for it.
    pub fn has_protobuf(self) -> bool {
        self != Self::Certificates
    }

    /// The object with this index in one of its states.
    pub fn state(self, cluster: Generator, index: u64, state: u64) -> Sample {
        match self {
            Self::Pods => cluster.pod_at(index, state),
            _ => self.states(cluster, index).0,
        }
    }

    /// The object with this index in its first and second state; the second is `None` if only the
    /// version changes.
    pub fn states(self, cluster: Generator, index: u64) -> (Sample, Option<Sample>) {
        match self {
            Self::Pods => (cluster.pod(index), Some(cluster.pod_at(index, 1))),
            Self::EndpointSlices => (cluster.endpoint_slice(index), None),
            Self::Events => (cluster.event(index), None),
            Self::Certificates => (cluster.custom_resource(index), None),
            Self::ConfigMaps => (cluster.config_map(index, 100_000), None),
        }
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|work| work.plural() == text).ok_or_else(|| format!("no such work: {text}"))
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.plural())
    }
}

/// Suffix of the figures of workers that take items themselves, instead of being called with them.
pub const BY_HAND: &str = ", next and done by hand";
