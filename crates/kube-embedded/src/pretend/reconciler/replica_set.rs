//! The replica set controller: maintains the desired number of pods and reports its status.

use serde_json::{Value, json};

use super::book::{Book, MANAGER};
use super::part::{is_ending, is_over, is_ready, name, target, text, unless_zero, wanted};
use super::workload::BURST;
use crate::pretend::write::Verb;

const COMPONENT: &str = "replicaset-controller";

/// Moves a replica set one step towards its desired state, given its pods.
pub(super) fn reconcile(set: &Value, pods: &[Value], book: &mut Book<'_>) {
    if is_ending(set) {
        return;
    }
    let active: Vec<&Value> = pods.iter().filter(|pod| !is_ending(pod) && !is_over(pod)).collect();
    let wanted = wanted(set) as usize;
    for _ in active.len()..wanted.min(active.len() + BURST) {
        let pod = pod_of(set, &book.suffix());
        let message = format!("Created pod: {}", name(&pod));
        book.write(MANAGER, Verb::Create(pod));
        book.record("ReplicaSet", "apps/v1", set, "SuccessfulCreate", message, COMPONENT);
    }
    let mut surplus = active.clone();
    surplus.sort_by_key(|pod| std::cmp::Reverse(deletion_order(pod)));
    for pod in surplus.into_iter().take(active.len().saturating_sub(wanted).min(BURST)) {
        book.write(MANAGER, Verb::Delete(target("v1", "Pod", pod)));
        let message = format!("Deleted pod: {}", name(pod));
        book.record("ReplicaSet", "apps/v1", set, "SuccessfulDelete", message, COMPONENT);
    }
    let ready = active.iter().filter(|pod| is_ready(pod)).count() as u64;
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": active.len(),
        "fullyLabeledReplicas": unless_zero(active.len() as u64),
        "readyReplicas": unless_zero(ready),
        "availableReplicas": unless_zero(ready),
    });
    book.write(MANAGER, Verb::PatchStatus(target("apps/v1", "ReplicaSet", set), json!({"status": status})));
}

/// Sort key for scaling down; greater pods are deleted first: unbound, not ready, young.
fn deletion_order(pod: &Value) -> (bool, bool, &str, &str) {
    (text(pod, "/spec/nodeName").is_empty(), !is_ready(pod), text(pod, "/metadata/creationTimestamp"), name(pod))
}

fn pod_of(set: &Value, suffix: &str) -> Value {
    let (metadata, template) = (&set["metadata"], &set["spec"]["template"]);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{}-{suffix}", name(set)),
            "generateName": format!("{}-", name(set)),
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": template["metadata"]["annotations"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": metadata["name"], "uid": metadata["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": template["spec"],
    })
}
