//! Test objects: a synthetic cluster of any size, generated from a seed.
//!
//! A [`Generator`] writes pods, nodes, deployments and more as an API server would send them: with
//! managedFields, owner references, statuses, hashes, addresses and times, in the server's key
//! order. It needs no server: of the crate it uses only `encoding`. Each object is a function of
//! the seed and its number, so every call of `pod(41)` returns the same object, in any order of
//! calls.
//!
//! ```
//! use kube_embedded::generate::Generator;
//!
//! let cluster = Generator::new(7);
//! let pod = cluster.pod(41);
//! assert_eq!(pod, cluster.pods(100).nth(41).unwrap());
//!
//! // The body of a create request: without the fields that only a server sets.
//! println!("POST {}: {} bytes", pod.collection_path(), pod.to_write().len());
//!
//! // The same pod one status change later.
//! let later = cluster.pod_at(41, 1);
//! assert_eq!(later.name(), pod.name());
//! assert_ne!(later.bytes(), pod.bytes());
//!
//! // Its replica set, node and namespace can be generated too.
//! let value = pod.to_value();
//! assert!(cluster.namespaces().any(|namespace| Some(namespace.name()) == pod.namespace()));
//! assert_eq!(value["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
//! ```
//!
//! Pods have 6 to 9 KB. Pods of one workload share their template, so they compress well against
//! each other, but not better than real ones: with zstd and a dictionary trained on one pod in a
//! hundred, more than 1,000 bytes per pod remain.

mod advance;
pub(crate) mod app;
pub(crate) mod course;
mod fit;
pub(crate) mod layout;
mod life;
mod managed_fields;
mod namespace;
mod node;
pub(crate) mod pod;
mod pod_status;
pub(crate) mod rng;
mod rollout;
mod sample;
mod service;
mod small;
mod words;
mod workload;
mod writer;

pub use sample::Sample;

use serde_json::Value;

use layout::PodPlace;
use pod::Pod;
use workload::Workload;

/// A synthetic cluster. See the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    seed: u64,
}

impl Generator {
    /// The cluster with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The pod with this number.
    #[must_use]
    pub fn pod(&self, index: u64) -> Sample {
        self.pod_at(index, 0)
    }

    /// The pod with this number after this many updates.
    ///
    /// Every step is a change that occurs in a real cluster: the pod becomes unready or ready, its
    /// container fails and restarts, sometimes an operator sets a label. Two consecutive steps
    /// never give the same object.
    #[must_use]
    pub fn pod_at(&self, index: u64, step: u64) -> Sample {
        let place = PodPlace::of_pod(self.seed, index);
        Pod::new(self.seed, &pod::template(self.seed, place.owner), index, place, step).to_sample()
    }

    /// Changes the status of any pod, for example one from a server, as its kubelet would in this
    /// step: it becomes unready or ready, and every fourth time its first container has failed. Its
    /// metadata and spec stay.
    ///
    /// ```
    /// # use kube_embedded::generate::Generator;
    /// let cluster = Generator::new(7);
    /// let mut pod = cluster.pod(20).to_value();
    /// cluster.advance(&mut pod, 1);
    /// assert_eq!(pod["status"]["containerStatuses"][0]["ready"], false);
    /// ```
    pub fn advance(&self, pod: &mut Value, step: u64) {
        advance::advance(self.seed, pod, step);
    }

    /// The first `count` pods. Faster than one call of [`Generator::pod`] each, because pods of one
    /// workload share their template.
    pub fn pods(&self, count: u64) -> impl Iterator<Item = Sample> + use<> {
        let seed = self.seed;
        let mut last: Option<Workload> = None;
        (0..count).map(move |index| {
            let place = PodPlace::of_pod(seed, index);
            let workload = last.take().filter(|workload| workload.owner == place.owner);
            let workload = last.insert(workload.unwrap_or_else(|| pod::template(seed, place.owner)));
            Pod::new(seed, workload, index, place, 0).to_sample()
        })
    }

    /// Every namespace that a generated object may be in.
    pub fn namespaces(&self) -> impl Iterator<Item = Sample> + use<> {
        let seed = self.seed;
        layout::namespaces().enumerate().map(move |(index, name)| namespace::write(seed, index as u64, &name))
    }

    /// The node with this number, about 6 KB. The first 64 pods may run on any of the first 64
    /// nodes.
    #[must_use]
    pub fn node(&self, index: u64) -> Sample {
        node::write(self.seed, index)
    }

    /// The deployment with this number. Ten of them own most of 64 pods.
    #[must_use]
    pub fn deployment(&self, index: u64) -> Sample {
        rollout::deployment(self.seed, index)
    }

    /// The replica set of the deployment with this number, which owns its pods.
    #[must_use]
    pub fn replica_set(&self, index: u64) -> Sample {
        rollout::replica_set(self.seed, index)
    }

    /// The service in front of the deployment with this number.
    #[must_use]
    pub fn service(&self, index: u64) -> Sample {
        service::service(self.seed, index)
    }

    /// The endpoint slice of that service, with the addresses of its pods.
    #[must_use]
    pub fn endpoint_slice(&self, index: u64) -> Sample {
        service::endpoint_slice(self.seed, index)
    }

    /// An event about the pod with this number, about 1 KB.
    #[must_use]
    pub fn event(&self, index: u64) -> Sample {
        small::event(self.seed, index)
    }

    /// A custom resource of about 1 KB: `certificates` in the group `pki.acme.com`, version `v1`,
    /// namespaced.
    #[must_use]
    pub fn custom_resource(&self, index: u64) -> Sample {
        small::custom_resource(self.seed, index)
    }

    /// A config map of about this many bytes.
    #[must_use]
    pub fn config_map(&self, index: u64, bytes: usize) -> Sample {
        small::config_map(self.seed, index, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::json::{encode_as_is, encode_sorted};
    use crate::kinds::Registry;

    #[test]
    fn every_object_is_written_as_the_server_would_write_it() {
        let (cluster, registry) = (Generator::new(9), Registry::new());
        for index in 0..60 {
            let samples = [
                cluster.pod(index),
                cluster.pod_at(index, 35),
                cluster.node(index),
                cluster.deployment(index),
                cluster.replica_set(index),
                cluster.service(index),
                cluster.endpoint_slice(index),
                cluster.event(index),
                cluster.config_map(index, 2_000),
            ];
            for sample in samples.into_iter().chain(cluster.namespaces().take(2)) {
                let value = sample.to_value();
                let (group, version) = value["apiVersion"].as_str().unwrap().split_once('/').unwrap_or(("", "v1"));
                let kind = registry.by_kind(group, version, value["kind"].as_str().unwrap()).unwrap();
                let expected = encode_as_is(&kind, &value);
                let expected = String::from_utf8_lossy(&expected);
                assert_eq!(String::from_utf8_lossy(sample.bytes()), expected, "{}", sample.path());
            }
            let custom = cluster.custom_resource(index);
            assert_eq!(custom.bytes(), encode_sorted(&custom.to_value()), "{}", custom.path());
        }
    }
}
