//! Advances an already decoded pod, of any origin, to its next state.

use serde_json::{Map, Value, json};

use super::layout::NOW;
use super::rng::{Domain, SampleRng, mix};
use super::writer::rfc3339;

/// The first container restarts once in this many steps.
const STEPS_TO_RESTART: u64 = 4;

pub(super) fn advance(seed: u64, pod: &mut Value, step: u64) {
    let named = |key: &str| pod["metadata"][key].as_str().unwrap_or_default().bytes();
    let identity = named("namespace").chain(named("name")).fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
    let time = time_of(step, identity);
    let ready = step.is_multiple_of(2);

    let Some(status) = object_in(pod, "status") else { return };
    status.insert("phase".to_owned(), json!("Running"));
    for kind in ["Ready", "ContainersReady"] {
        set_condition(status, kind, ready, &time);
    }
    if let Some(first) = status.get_mut("containerStatuses").and_then(|statuses| statuses.get_mut(0)) {
        first["ready"] = json!(ready);
        if step % STEPS_TO_RESTART == STEPS_TO_RESTART - 1 {
            restart(first, &time, &SampleRng::new(identity, Domain::Container, step).sha256());
        }
    }
}

fn time_of(step: u64, identity: u64) -> String {
    let seconds = NOW + (step * 41 + mix(identity ^ step) % 23) as i64;
    String::from_utf8_lossy(&rfc3339(seconds)).into_owned()
}

fn restart(status: &mut Value, time: &str, container: &str) {
    let failed = status["containerID"].take();
    status["lastState"] =
        json!({"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": time, "containerID": failed}});
    status["state"] = json!({"running": {"startedAt": time}});
    status["restartCount"] = json!(status["restartCount"].as_u64().unwrap_or(0) + 1);
    status["containerID"] = json!(format!("containerd://{container}"));
}

fn set_condition(status: &mut Map<String, Value>, kind: &str, ready: bool, time: &str) {
    let mut condition = json!({"type": kind, "status": if ready { "True" } else { "False" }, "lastProbeTime": null, "lastTransitionTime": time});
    if !ready {
        condition["reason"] = json!("ContainersNotReady");
    }
    let Some(conditions) = status.entry("conditions").or_insert_with(|| json!([])).as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == kind) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

fn object_in<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Map<String, Value>> {
    value.as_object_mut()?.entry(key).or_insert_with(|| json!({})).as_object_mut()
}
