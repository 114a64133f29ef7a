//! What the write of a subresource may change: everything else is copied from the old object.

use serde_json::{Value, json};

use super::metadata;
use crate::encoding::value::items;
use crate::kinds::status_condition;

/// Drops all changes of a pod but those of its ephemeral containers.
pub(crate) fn only_ephemeral_containers(new: &mut Value, old: &Value) {
    let containers = new["spec"].get("ephemeralContainers").cloned();
    restore(new, old);
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        match containers {
            Some(containers) => spec.insert("ephemeralContainers".to_owned(), containers),
            None => spec.remove("ephemeralContainers"),
        };
    }
}

/// The fields of a container that a resize changes.
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];

/// Drops all changes of a pod but those of its resources. Containers that are added, removed,
/// renamed or moved stay so, for the validation to refuse them.
pub(crate) fn only_resources(new: &mut Value, old: &Value) {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let names = |pod: &Value, list: &str| -> Vec<Value> {
        items(&pod["spec"][list]).iter().map(|container| container["name"].clone()).collect()
    };
    if LISTS.iter().any(|list| names(new, list) != names(old, list)) {
        return;
    }
    let sent = new["spec"].clone();
    restore(new, old);
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if sent.get("resources").is_some() {
        spec.insert("resources".to_owned(), sent["resources"].clone());
    }
    for list in LISTS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, sent) in containers.zip(items(&sent[list])) {
            for field in RESIZED {
                crate::api::write::keep(container, field, sent);
            }
        }
    }
}

/// Drops all changes of a certificate signing request but those of its conditions.
pub(crate) fn only_conditions(new: &mut Value, old: &Value, now: &str) {
    date_conditions(new, old, now);
    let conditions = new["status"].get("conditions").cloned();
    for part in ["spec", "status"] {
        crate::api::write::keep(new, part, old);
    }
    if let Some(conditions) = conditions {
        new["status"]["conditions"] = conditions;
    } else if let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("conditions");
    }
}

/// Keeps the approval of a certificate signing request in a write of its status.
pub(crate) fn keep_approval(new: &mut Value, old: &Value, now: &str) {
    for approval in ["Approved", "Denied"] {
        let of = |object: &Value| -> Vec<Value> {
            let conditions = items(&object["status"]["conditions"]).iter();
            conditions.filter(|condition| condition["type"] == approval).cloned().collect()
        };
        let before = of(old);
        // More or fewer of them are refused by the validation.
        if before.len() != of(new).len() {
            continue;
        }
        let mut before = before.into_iter();
        for condition in conditions(new).filter(|condition| condition["type"] == approval) {
            condition.clone_from(&before.next().unwrap_or_default());
        }
    }
    date_conditions(new, old, now);
}

/// Sets the times of conditions that have none.
fn date_conditions(new: &mut Value, old: &Value, now: &str) {
    for condition in conditions(new) {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = json!(now);
        }
        if condition["lastTransitionTime"].is_null() {
            let same = |old: &&Value| old["type"] == condition["type"] && old["status"] == condition["status"];
            let before = items(&old["status"]["conditions"]).iter().find(same);
            let since = before.map(|old| &old["lastTransitionTime"]).filter(|since| !since.is_null());
            condition["lastTransitionTime"] = since.cloned().unwrap_or_else(|| json!(now));
        }
    }
}

fn conditions(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Copies spec, status and metadata from the old object; the version remains, as a precondition.
fn restore(new: &mut Value, old: &Value) {
    let version = metadata::part(new, "resourceVersion").cloned();
    for part in ["metadata", "spec", "status"] {
        crate::api::write::keep(new, part, old);
    }
    if let Some(version) = version {
        metadata::set(new, "resourceVersion", version);
    }
}

/// Adds a condition to a pod's status, or replaces that of the same type.
pub(crate) fn set_pod_condition(pod: &mut Value, mut condition: Value, now: &str) {
    condition["lastProbeTime"] = Value::Null;
    status_condition::set(pod, condition, now);
}
