//! The simulated nodes, their leases and heartbeats.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::write::{ObjectReference, Verb, Write};
use crate::generate::Generator;
use crate::generate::app::time;
use crate::generate::layout::{NOW, NodeNames};

/// Interval of lease renewals, and of node status reports without a change.
const RENEWAL: Duration = Duration::from_secs(10);
const HEARTBEAT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Fleet {
    seed: u64,
    nodes: u64,
    renewals: u64,
    heartbeats: u64,
    numbers: HashMap<String, u64>,
    /// Nodes that are unschedulable.
    cordoned: HashSet<u64>,
}

/// Whether a node is schedulable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cordon {
    Open,
    Closed,
}

impl Fleet {
    pub(super) fn new(seed: u64, nodes: u64) -> Self {
        let numbers = (0..nodes).map(|node| (NodeNames::of(seed, node).name, node)).collect();
        Self { seed, nodes, renewals: 0, heartbeats: 0, numbers, cordoned: HashSet::new() }
    }

    /// The index of a node. `None` if the node is not part of the simulation.
    pub(super) fn number_of(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).copied()
    }

    /// Cordons or uncordons a node.
    pub(super) fn set_cordon(&mut self, name: &str, cordon: Cordon) {
        let Some(node) = self.number_of(name) else { return };
        match cordon {
            Cordon::Open => self.cordoned.remove(&node),
            Cordon::Closed => self.cordoned.insert(node),
        };
    }

    pub(super) fn is_cordoned(&self, node: u64) -> bool {
        self.cordoned.contains(&node)
    }

    /// The first schedulable node at or after this one.
    pub(super) fn open_from(&self, node: u64) -> Option<u64> {
        (0..self.nodes).map(|nth| (node + nth) % self.nodes).find(|node| !self.is_cordoned(*node))
    }

    pub(super) fn len(&self) -> u64 {
        self.nodes
    }

    /// The initial state of a node and its lease.
    pub(super) fn first(&self, node: u64) -> [Value; 2] {
        let object = Generator::new(self.seed).node(node).to_value();
        let lease = lease(&object);
        [object, lease]
    }

    /// Writes the leases and heartbeats that are due. They are spread evenly over the nodes.
    pub(super) fn beat(&mut self, now: Duration, out: &mut Vec<Write>) {
        while self.renewals < turns(now, RENEWAL, self.nodes) {
            let name = NodeNames::of(self.seed, self.renewals % self.nodes).name;
            let lease = ObjectReference {
                api_version: "coordination.k8s.io/v1",
                kind: "Lease",
                namespace: LEASE_NAMESPACE.to_owned(),
                name,
            };
            out.push(Write::new(Verb::Patch(lease, json!({"spec": {"renewTime": micros(now)}}))));
            self.renewals += 1;
        }
        while self.heartbeats < turns(now, HEARTBEAT, self.nodes) {
            out.push(Write::new(Verb::UpdateStatus(self.report(self.heartbeats % self.nodes, now))));
            self.heartbeats += 1;
        }
    }

    fn report(&self, node: u64, now: Duration) -> Value {
        let mut object = Generator::new(self.seed).node(node).to_value();
        let now = time(NOW + now.as_secs() as i64);
        for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = json!(now);
        }
        let metadata = &mut object["metadata"];
        metadata["managedFields"][0]["time"] = json!(now);
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("resourceVersion");
        }
        object
    }
}

/// The namespace of node leases.
const LEASE_NAMESPACE: &str = "kube-node-lease";

fn lease(node: &Value) -> Value {
    let (name, uid) = (&node["metadata"]["name"], &node["metadata"]["uid"]);
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micros(Duration::ZERO)},
    })
}

fn micros(now: Duration) -> String {
    let seconds = time(NOW + now.as_secs() as i64);
    format!("{}.{:06}Z", seconds.trim_end_matches('Z'), now.subsec_micros())
}

/// Number of renewals of all nodes together until now.
fn turns(now: Duration, period: Duration, nodes: u64) -> u64 {
    (now.as_millis() * u128::from(nodes) / period.as_millis()).try_into().unwrap_or(u64::MAX)
}
