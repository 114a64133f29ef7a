//! The nodes: what they are and how they show that they live.

use std::time::Duration;

use serde_json::{Value, json};

use super::write::{Target, Verb, Write};
use crate::generate::Generator;
use crate::generate::app::time;
use crate::generate::layout::{NOW, NodeNames};

/// How often a kubelet renews its lease, and how often it reports its node's status though nothing has changed.
const RENEWAL: Duration = Duration::from_secs(10);
const HEARTBEAT: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Fleet {
    seed: u64,
    nodes: u64,
    renewals: u64,
    heartbeats: u64,
}

impl Fleet {
    pub(super) fn new(seed: u64, nodes: u64) -> Self {
        Self { seed, nodes, renewals: 0, heartbeats: 0 }
    }

    pub(super) fn len(&self) -> u64 {
        self.nodes
    }

    /// A node and its lease, as they are in the beginning.
    pub(super) fn first(&self, node: u64) -> [Value; 2] {
        let object = Generator::new(self.seed).node(node).to_value();
        let lease = lease(&object);
        [object, lease]
    }

    /// The leases and heartbeats that have become due. The nodes take turns.
    pub(super) fn beat(&mut self, now: Duration, out: &mut Vec<Write>) {
        while self.renewals < turns(now, RENEWAL, self.nodes) {
            let name = NodeNames::of(self.seed, self.renewals % self.nodes).name;
            let lease =
                Target { api_version: "coordination.k8s.io/v1", kind: "Lease", namespace: LEASES.to_owned(), name };
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

/// Where leases of nodes live.
const LEASES: &str = "kube-node-lease";

fn lease(node: &Value) -> Value {
    let (name, uid) = (&node["metadata"]["name"], &node["metadata"]["uid"]);
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASES,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micros(Duration::ZERO)},
    })
}

fn micros(now: Duration) -> String {
    let seconds = time(NOW + now.as_secs() as i64);
    format!("{}.{:06}Z", seconds.trim_end_matches('Z'), now.subsec_micros())
}

/// How many turns of all nodes together are over by now.
fn turns(now: Duration, period: Duration, nodes: u64) -> u64 {
    (now.as_millis() * u128::from(nodes) / period.as_millis()).try_into().unwrap_or(u64::MAX)
}
