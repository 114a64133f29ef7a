//! The daemon set controller: one pod on each node.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::book::Book;
use super::part::{is_ending, is_over, is_ready, name, resolve_share, text, unless_zero};
use super::workload::{REVISION, Workload, is_of_revision, revision};

const KIND: Workload = Workload::DaemonSet;

/// Moves a daemon set one step towards its desired state, given its pods and the nodes it selects.
pub(super) fn reconcile(set: &Value, pods: &[Value], nodes: &[String], book: &mut Book<'_>) {
    if is_ending(set) {
        return;
    }
    let latest = revision(set);
    let active = pods.iter().filter(|pod| !is_over(pod));
    let by_node: BTreeMap<&str, &Value> = active.map(|pod| (text(pod, "/spec/nodeName"), pod)).collect();
    for node in nodes.iter().filter(|node| !by_node.contains_key(node.as_str())) {
        let pod_name = format!("{}-{}", name(set), book.suffix());
        let mut pod = KIND.pod(set, &pod_name, &json!({REVISION: latest}));
        pod["spec"]["nodeName"] = json!(node);
        KIND.create(set, pod, book);
    }
    let misplaced = by_node.iter().filter(|(node, _)| !nodes.iter().any(|known| known == *node));
    for (_, pod) in misplaced.filter(|(_, pod)| !is_ending(pod)) {
        KIND.delete(set, pod, book);
    }
    let placed: Vec<&Value> = nodes.iter().filter_map(|node| by_node.get(node.as_str()).copied()).collect();
    let is_available = |pod: &&&Value| !is_ending(pod) && is_ready(pod);
    let available = placed.iter().filter(is_available).count();
    if text(set, "/spec/updateStrategy/type") != "OnDelete" {
        // Pods that are not available yet may go at once.
        let unavailable = nodes.len() - available;
        let share = &set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"];
        let share = resolve_share(share, nodes.len() as u64, u64::div_ceil).unwrap_or(1) as usize;
        let old = placed.iter().filter(|pod| !is_ending(pod) && !is_of_revision(pod, &latest));
        for pod in old.take(share.saturating_sub(unavailable)) {
            KIND.delete(set, pod, book);
        }
    }
    let updated = placed.iter().filter(|pod| !is_ending(pod) && is_of_revision(pod, &latest)).count();
    let status = json!({
        "currentNumberScheduled": placed.len(),
        "desiredNumberScheduled": nodes.len(),
        "numberMisscheduled": by_node.len() - placed.len(),
        "numberReady": available,
        "numberAvailable": unless_zero(available as u64),
        "numberUnavailable": unless_zero((nodes.len() - available) as u64),
        "updatedNumberScheduled": unless_zero(updated as u64),
        "observedGeneration": set["metadata"]["generation"],
    });
    KIND.report(set, &status, book);
}
