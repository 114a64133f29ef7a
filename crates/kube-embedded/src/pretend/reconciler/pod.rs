//! The scheduler and the kubelet, for pods of other clients.

use std::time::Duration;

use serde_json::{Value, json};

use super::book::Book;
use super::part::{condition, is_ending, is_over, is_ready, items, name, number, target, text};
use crate::pretend::write::Verb;

const KUBELET: &str = "kubelet";
const SCHEDULER: &str = "kube-scheduler";

/// The next action on a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodStep {
    /// The scheduler binds it to a node.
    Bind,
    /// The kubelet has seen it.
    Create,
    /// The containers start.
    Start,
    /// The readiness probes succeed.
    Settle,
    /// The containers complete.
    Finish,
    /// The grace period is over.
    End,
}

impl PodStep {
    /// The next action for a pod in its current state. `None` if it is in its final state.
    pub(super) fn of(pod: &Value) -> Option<Self> {
        let unbound = text(pod, "/spec/nodeName").is_empty();
        let restarts = text(pod, "/spec/restartPolicy");
        Some(match text(pod, "/status/phase") {
            _ if is_ending(pod) => Self::End,
            _ if is_over(pod) => return None,
            _ if unbound => Self::Bind,
            "Running" if !is_ready(pod) => Self::Settle,
            "Running" if matches!(restarts, "Never" | "OnFailure") => Self::Finish,
            "Running" => return None,
            _ if items(pod, "/status/containerStatuses").is_empty() => Self::Create,
            _ => Self::Start,
        })
    }

    /// Minimum and maximum delay before the action, in milliseconds.
    pub(super) fn takes(self) -> (u64, u64) {
        match self {
            Self::Bind => (20, 200),
            Self::Create => (50, 300),
            Self::Start => (500, 2_500),
            Self::Settle => (500, 2_000),
            Self::Finish => (2_000, 8_000),
            Self::End => (700, 2_500),
        }
    }
}

/// A node for a pod.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) ip: String,
}

/// Delay before the scheduler retries to find a node.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Binds a pod to a node.
pub(super) fn bind(pod: &Value, node: &Node, book: &mut Book<'_>) {
    let which = target("v1", "Pod", pod);
    book.write(SCHEDULER, Verb::Patch(which.clone(), json!({"spec": {"nodeName": node.name}})));
    let conditions = conditions(pod, &[("PodScheduled", true)], &book.time);
    book.write(SCHEDULER, Verb::PatchStatus(which, json!({"status": {"conditions": conditions}})));
    let message = format!("Successfully assigned {}/{} to {}", text(pod, "/metadata/namespace"), name(pod), node.name);
    book.record("Pod", "v1", pod, "Scheduled", message, "default-scheduler");
}

/// Reports once that no node is available for a pod.
pub(super) fn leave_unbound(pod: &Value, nodes: u64, book: &mut Book<'_>) {
    if condition(pod, "PodScheduled").is_some() {
        return;
    }
    let message = format!(
        "0/{nodes} nodes are available: {nodes} node(s) were unschedulable or didn't match Pod's node affinity/selector."
    );
    let scheduled = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastProbeTime": null, "lastTransitionTime": book.time,
    });
    let patch = json!({"status": {"phase": "Pending", "conditions": [scheduled]}});
    book.write(SCHEDULER, Verb::PatchStatus(target("v1", "Pod", pod), patch));
    book.record("Pod", "v1", pod, "FailedScheduling", message, "default-scheduler");
}

/// Performs an action of the kubelet. `ip` is the pod's address if it gets one now.
pub(super) fn live(pod: &Value, next: PodStep, host: &str, ip: &str, book: &mut Book<'_>) {
    let which = target("v1", "Pod", pod);
    let main = text(pod, "/spec/containers/0/name").to_owned();
    let image = text(pod, "/spec/containers/0/image").to_owned();
    let status = match next {
        PodStep::Bind => return,
        PodStep::Create => {
            book.record("Pod", "v1", pod, "Pulling", format!("Pulling image \"{image}\""), KUBELET);
            created(pod, host, book)
        }
        PodStep::Start => {
            book.record("Pod", "v1", pod, "Pulled", format!("Successfully pulled image \"{image}\""), KUBELET);
            book.record("Pod", "v1", pod, "Started", format!("Container started: {main}"), KUBELET);
            running(pod, Readiness::Unready, host, ip, book)
        }
        PodStep::Settle => running(pod, Readiness::Ready, host, ip, book),
        PodStep::Finish => finished(pod, book),
        PodStep::End => {
            if !text(pod, "/spec/nodeName").is_empty() && !is_over(pod) {
                book.record("Pod", "v1", pod, "Killing", format!("Stopping container {main}"), KUBELET);
            }
            return book.write(KUBELET, Verb::Remove(which));
        }
    };
    book.write(KUBELET, Verb::PatchStatus(which, json!({"status": status})));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Unready,
    Ready,
}

fn created(pod: &Value, host: &str, book: &mut Book<'_>) -> Value {
    let waiting = |container: &Value| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": "", "ready": false, "started": false,
            "restartCount": 0, "lastState": {}, "state": {"waiting": {"reason": "ContainerCreating"}},
        })
    };
    let containers: Vec<Value> = items(pod, "/spec/containers").iter().map(waiting).collect();
    let reached =
        [("Initialized", items(pod, "/spec/initContainers").is_empty()), ("Ready", false), ("ContainersReady", false)];
    let current = [("PodReadyToStartContainers", false)].into_iter().chain(reached).collect::<Vec<_>>();
    json!({
        "phase": "Pending", "hostIP": host, "hostIPs": [{"ip": host}], "startTime": book.time,
        "conditions": conditions(pod, &current, &book.time), "containerStatuses": containers,
    })
}

fn running(pod: &Value, readiness: Readiness, host: &str, ip: &str, book: &mut Book<'_>) -> Value {
    let ready = readiness == Readiness::Ready;
    let mut containers = Vec::new();
    for container in items(pod, "/spec/containers") {
        let known = items(pod, "/status/containerStatuses").iter().find(|status| status["name"] == container["name"]);
        let known = known.filter(|status| status.pointer("/state/running").is_some());
        containers.push(match known {
            Some(known) => {
                let mut status = known.clone();
                status["ready"] = json!(ready);
                status
            }
            None => container_status(pod, container, ready, book),
        });
    }
    let current =
        [("PodReadyToStartContainers", true), ("Initialized", true), ("Ready", ready), ("ContainersReady", ready)];
    let mut status = json!({
        "phase": "Running", "hostIP": host, "hostIPs": [{"ip": host}],
        "conditions": conditions(pod, &current, &book.time), "containerStatuses": containers,
    });
    if text(pod, "/status/podIP").is_empty() {
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{"ip": ip}]);
    }
    let initial = items(pod, "/spec/initContainers");
    if !initial.is_empty() && items(pod, "/status/initContainerStatuses").is_empty() {
        let mut done = Vec::new();
        for container in initial {
            let mut status = container_status(pod, container, true, book);
            let end = json!({"exitCode": 0, "reason": "Completed", "startedAt": book.time, "finishedAt": book.time, "containerID": status["containerID"]});
            status["state"] = json!({"terminated": end});
            status["started"] = json!(false);
            done.push(status);
        }
        status["initContainerStatuses"] = Value::Array(done);
    }
    status
}

fn container_status(pod: &Value, container: &Value, ready: bool, book: &mut Book<'_>) -> Value {
    let image = container["image"].as_str().unwrap_or_default();
    let repository = image.split('@').next().unwrap_or(image);
    let repository = match repository.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => repository,
    };
    let known = items(pod, "/status/containerStatuses").iter().find(|status| status["name"] == container["name"]);
    json!({
        "name": container["name"], "image": image, "imageID": format!("{repository}@sha256:{}", book.hex(64)),
        "containerID": format!("containerd://{}", book.hex(64)), "ready": ready, "started": true,
        "restartCount": known.map_or(0, |known| number(known, "/restartCount")), "lastState": {},
        "state": {"running": {"startedAt": book.time}},
    })
}

/// The status of a pod whose containers succeeded and are not restarted.
fn finished(pod: &Value, book: &Book<'_>) -> Value {
    let done = |status: &Value| {
        let mut status = status.clone();
        let end = json!({
            "exitCode": 0, "reason": "Completed", "startedAt": status["state"]["running"]["startedAt"],
            "finishedAt": book.time, "containerID": status["containerID"],
        });
        status["state"] = json!({"terminated": end});
        status["ready"] = json!(false);
        status["started"] = json!(false);
        status
    };
    let containers: Vec<Value> = items(pod, "/status/containerStatuses").iter().map(done).collect();
    let current = conditions(
        pod,
        &[("PodReadyToStartContainers", false), ("Ready", false), ("ContainersReady", false)],
        &book.time,
    );
    json!({"phase": "Succeeded", "conditions": current, "containerStatuses": containers})
}

/// The conditions of a pod, with these set to their current values.
fn conditions(pod: &Value, now: &[(&str, bool)], time: &str) -> Vec<Value> {
    let mut all = items(pod, "/status/conditions").to_vec();
    for (kind, holds) in now {
        let status = if *holds { "True" } else { "False" };
        let new = json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": time});
        match all.iter_mut().find(|condition| condition["type"] == *kind) {
            Some(known) if known["status"] == status => {}
            Some(known) => *known = new,
            None => all.push(new),
        }
    }
    all
}
