//! The stateful set controller: pods with ordinals, created and updated in their order.
//!
//! Claims of volumes are not created.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::book::Book;
use super::part::{is_ending, is_ready, name, number, text, unless_zero, wanted};
use super::workload::{BURST, REVISION, Workload, is_of_revision, revision};

const KIND: Workload = Workload::StatefulSet;

/// Moves a stateful set one step towards its desired state, given its pods.
pub(super) fn reconcile(set: &Value, pods: &[Value], book: &mut Book<'_>) {
    if is_ending(set) {
        return;
    }
    let (wanted, in_order) = (wanted(set), text(set, "/spec/podManagementPolicy") != "Parallel");
    // The revision is an object of its own in a real cluster, named like this.
    let latest = format!("{}-{}", name(set), revision(set));
    let pods: BTreeMap<u64, &Value> = pods.iter().filter_map(|pod| Some((ordinal(set, pod)?, pod))).collect();
    let (mut is_waiting, mut created) = (false, 0);
    for ordinal in 0..wanted {
        match pods.get(&ordinal) {
            None => {
                KIND.create(set, pod_of(set, ordinal, &latest), book);
                created += 1;
            }
            Some(pod) if !is_ending(pod) && is_ready(pod) => continue,
            Some(_) => {}
        }
        is_waiting = true;
        if in_order || created == BURST {
            break;
        }
    }
    let surplus = pods.range(wanted..).rev().map(|(_, pod)| *pod);
    let some = if in_order { 1 } else { BURST };
    if !is_waiting || !in_order {
        for pod in surplus.clone().take(some).filter(|pod| !is_ending(pod)) {
            KIND.delete(set, pod, book);
        }
    }
    let first = number(set, "/spec/updateStrategy/rollingUpdate/partition").min(wanted);
    let is_rolling = text(set, "/spec/updateStrategy/type") != "OnDelete";
    if is_rolling && !is_waiting && surplus.count() == 0 {
        let old = pods.range(first..wanted).rev().find(|(_, pod)| !is_of_revision(pod, &latest));
        if let Some((_, pod)) = old {
            KIND.delete(set, pod, book);
        }
    }
    report(set, &pods.into_values().collect::<Vec<_>>(), &latest, book);
}

fn report(set: &Value, pods: &[&Value], latest: &str, book: &mut Book<'_>) {
    let count = |fits: &dyn Fn(&Value) -> bool| pods.iter().filter(|pod| fits(pod)).count() as u64;
    let updated = count(&|pod| is_of_revision(pod, latest));
    let ready = count(&|pod| !is_ending(pod) && is_ready(pod));
    let current = match text(set, "/status/currentRevision") {
        "" => latest,
        _ if updated >= wanted(set) && ready >= wanted(set) => latest,
        current => current,
    };
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": pods.len(),
        "readyReplicas": unless_zero(ready),
        "availableReplicas": ready,
        "currentReplicas": unless_zero(count(&|pod| is_of_revision(pod, current))),
        "updatedReplicas": unless_zero(updated),
        "currentRevision": current,
        "updateRevision": latest,
        "collisionCount": 0,
    });
    KIND.report(set, &status, book);
}

fn ordinal(set: &Value, pod: &Value) -> Option<u64> {
    name(pod).strip_prefix(name(set))?.strip_prefix('-')?.parse().ok()
}

fn pod_of(set: &Value, ordinal: u64, revision: &str) -> Value {
    let pod_name = format!("{}-{ordinal}", name(set));
    let labels = json!({
        REVISION: revision, "apps.kubernetes.io/pod-index": ordinal.to_string(),
        "statefulset.kubernetes.io/pod-name": pod_name,
    });
    let mut pod = KIND.pod(set, &pod_name, &labels);
    pod["spec"]["hostname"] = json!(pod_name);
    pod["spec"]["subdomain"] = set["spec"]["serviceName"].clone();
    pod
}
