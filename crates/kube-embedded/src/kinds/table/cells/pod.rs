//! Cells of pods: the most important part of their state.

use serde_json::Value;

use super::cells;
use super::words::{NONE, age, condition, flag, is_deleting, items, name, number, text, text_or};
use crate::kinds::table::age::{Moment, parse};

pub(super) fn pod(pod: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let state = PodState::of(pod);
    let restarts = match state.restarts.last {
        Some(last) if state.restarts.count != 0 => format!("{} ({} ago)", state.restarts.count, now.since(last)),
        _ => state.restarts.count.to_string(),
    };
    cells![
        name(pod),
        format!("{}/{}", state.ready, state.containers),
        state.reason,
        restarts,
        age(pod, now),
        text_or(&status["podIPs"][0]["ip"], NONE),
        text_or(&spec["nodeName"], NONE),
        text_or(&status["nominatedNodeName"], NONE),
        gates(pod),
    ]
}

/// The number of readiness gates whose condition is true.
fn gates(pod: &Value) -> String {
    let gates = items(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = |gate: &&Value| {
        condition(pod, text(&gate["conditionType"])).is_some_and(|condition| condition["status"] == "True")
    };
    format!("{}/{}", gates.iter().filter(open).count(), gates.len())
}

/// The number of container restarts, and when the last restarted container had terminated.
#[derive(Debug, Clone, Copy, Default)]
struct Restarts<'p> {
    count: i64,
    last: Option<&'p Value>,
}

impl<'p> Restarts<'p> {
    fn add(&mut self, container: &'p Value) {
        self.count += number(&container["restartCount"]);
        let ended = &container["lastState"]["terminated"]["finishedAt"];
        if parse(ended).is_some() && self.last.and_then(parse) < parse(ended) {
            self.last = Some(ended);
        }
    }
}

struct PodState<'p> {
    reason: String,
    ready: usize,
    containers: usize,
    restarts: Restarts<'p>,
}

impl<'p> PodState<'p> {
    fn of(pod: &'p Value) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let mut state = Self {
            reason: text_or(&status["reason"], text(&status["phase"])).to_owned(),
            ready: 0,
            containers: items(&spec["containers"]).len()
                + items(&spec["initContainers"]).iter().filter(|container| is_sidecar(container)).count(),
            restarts: Restarts::default(),
        };
        let gated = |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
        if items(&status["conditions"]).iter().any(gated) {
            state.reason = "SchedulingGated".to_owned();
        }
        let (initializing, sidecar_restarts) = state.initialize(spec, status);
        let initialized = condition(pod, "Initialized").is_some_and(|condition| condition["status"] == "True");
        if !initializing || initialized {
            state.restarts = sidecar_restarts;
            state.run(pod);
        }
        if is_deleting(pod) {
            if status["reason"] == "NodeLost" {
                state.reason = "Unknown".to_owned();
            } else if !matches!(text(&status["phase"]), "Succeeded" | "Failed") {
                state.reason = "Terminating".to_owned();
            }
        }
        state
    }

    /// Evaluates init containers. Returns whether one of them has not completed, and the restarts
    /// of sidecars.
    fn initialize(&mut self, spec: &Value, status: &'p Value) -> (bool, Restarts<'p>) {
        let mut sidecar_restarts = Restarts::default();
        let first = items(&spec["initContainers"]);
        for (at, container) in items(&status["initContainerStatuses"]).iter().enumerate() {
            self.restarts.add(container);
            let sidecar = first.iter().any(|each| each["name"] == container["name"] && is_sidecar(each));
            if sidecar {
                sidecar_restarts.add(container);
            }
            let (ended, waiting) = (&container["state"]["terminated"], &container["state"]["waiting"]);
            if !ended.is_null() && number(&ended["exitCode"]) == 0 {
                continue;
            }
            if sidecar && flag(&container["started"]) {
                self.ready += usize::from(flag(&container["ready"]));
                continue;
            }
            self.reason = match text(&waiting["reason"]) {
                _ if !ended.is_null() => format!("Init:{}", termination_reason(ended)),
                "" | "PodInitializing" => format!("Init:{at}/{}", first.len()),
                reason => format!("Init:{reason}"),
            };
            return (true, sidecar_restarts);
        }
        (false, sidecar_restarts)
    }

    /// Evaluates the main containers, in reverse order, so that the reason of the first one wins.
    fn run(&mut self, pod: &'p Value) {
        let mut running = false;
        let mut failure = None;
        for container in items(&pod["status"]["containerStatuses"]).iter().rev() {
            self.restarts.add(container);
            let state = &container["state"];
            let (waiting, ended) = (text(&state["waiting"]["reason"]), &state["terminated"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if !ended.is_null() {
                self.reason = termination_reason(ended);
                if number(&ended["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if flag(&container["ready"]) && !state["running"].is_null() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            let ready = items(&pod["status"]["conditions"]).iter();
            let ready = ready.into_iter().any(|each| each["type"] == "Ready" && each["status"] == "True");
            match (running, failure) {
                (true, _) if ready => self.reason = "Running".to_owned(),
                (_, Some(failure)) => self.reason = failure,
                (true, None) => self.reason = "NotReady".to_owned(),
                (false, None) => {}
            }
        }
    }
}

/// A sidecar is an init container that is always restarted.
fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// The reason why a container terminated.
fn termination_reason(ended: &Value) -> String {
    match (text(&ended["reason"]), number(&ended["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(&ended["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
