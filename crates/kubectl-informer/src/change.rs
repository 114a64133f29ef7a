//! What happened to an object, in half a line.

use serde_json::Value;

use crate::diff::{Difference, diff, is_time, path_text};
use crate::mask::Secrets;

/// So many differences are named; the others are counted.
const NAMED: usize = 3;
/// Longer values are cut.
const LONGEST: usize = 48;

/// What an object is, as far as one line goes.
pub(crate) fn headline(kind: &str, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match kind {
        "Pod" => pod_headline(object),
        "Event" => {
            let about = text("/involvedObject/kind").to_lowercase();
            cut(&format!("{about} {}: {}", text("/reason"), text("/message")), 3 * LONGEST)
        }
        "Node" => condition(object, "Ready").map_or_else(String::new, |status| format!("Ready={status}")),
        "Service" => format!("{} {}", text("/spec/type"), text("/spec/clusterIP")),
        "EndpointSlice" => {
            format!("{} endpoints ready", serving(object))
        }
        _ => match (object.pointer("/spec/replicas"), object.pointer("/status/readyReplicas")) {
            (Some(wanted), ready) => format!("{}/{wanted} ready", ready.unwrap_or(&Value::from(0))),
            (None, _) => text("/status/phase").to_owned(),
        },
    }
}

/// What is different, the telling parts first.
pub(crate) fn summary(kind: &str, old: &Value, new: &Value, secrets: Secrets) -> String {
    let all = diff(old, new);
    let mark = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
    if mark(new) && !mark(old) {
        let grace = new.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(0);
        return format!("terminating, {grace} s of grace");
    }
    if kind == "EndpointSlice" && serving(old) != serving(new) {
        return format!("{}→{} endpoints ready", serving(old), serving(new));
    }
    let mut telling: Vec<(u8, String)> = all
        .iter()
        .filter(|difference| !is_time(&difference.path))
        .map(|difference| {
            let path = path_text(&difference.path);
            (rank(&path), named(kind, &path, difference, secrets))
        })
        .collect();
    if telling.is_empty() {
        return match all.first() {
            Some(first) => format!("{} renewed", short(&path_text(&first.path))),
            None => "no field changed".to_owned(),
        };
    }
    telling.sort_by_key(|(rank, _)| *rank);
    telling.dedup_by(|one, other| one.1 == other.1);
    let more = telling.len().saturating_sub(NAMED);
    let mut parts: Vec<String> = telling.into_iter().take(NAMED).map(|(_, text)| text).collect();
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    parts.join(", ")
}

/// A value in a line.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None => "∅".to_owned(),
        Some(Value::String(text)) => cut(text, LONGEST),
        Some(other) => cut(&other.to_string(), LONGEST),
    }
}

fn named(kind: &str, path: &str, difference: &Difference<'_>, secrets: Secrets) -> String {
    let name = short(path);
    if secrets.hides(kind, path) {
        return format!("{name} ***");
    }
    // Where a number is zero, it is left out.
    let zero = Value::from(0);
    let (old, new) = match path.ends_with("eplicas") {
        true => (difference.old.or(Some(&zero)), difference.new.or(Some(&zero))),
        false => (difference.old, difference.new),
    };
    match (old, new) {
        (None, new) => format!("{name} {}", shown(new)),
        (Some(_), None) => format!("{name} gone"),
        (old, new) => format!("{name} {}→{}", shown(old), shown(new)),
    }
}

/// The smaller, the more it tells.
fn rank(path: &str) -> u8 {
    let ends = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    match path {
        _ if path.ends_with("status.phase") || path.ends_with("nodeName") => 1,
        _ if ends(&["restartCount", "spec.replicas", "readyReplicas", ".image"]) => 2,
        _ if ends(&["availableReplicas"]) => 7,
        _ if path.contains("conditions[Ready]") && path.ends_with(".status") => 3,
        _ if ends(&["podIP", "waiting.reason", "status.replicas"]) => 4,
        _ if path.contains("conditions[") && path.ends_with(".status") => 5,
        _ if ends(&["containerID", "imageID", "observedGeneration", "generation", ".message"]) => 9,
        _ if path.contains("conditions[") => 8,
        _ if path.contains("lastState") || path.contains("podIPs") || path.contains("annotations") => 8,
        _ => 6,
    }
}

/// A path without what every object has.
fn short(path: &str) -> String {
    let path = ["status.", "spec.", "metadata."].iter().find_map(|part| path.strip_prefix(part)).unwrap_or(path);
    match path.strip_prefix("conditions[").and_then(|rest| rest.split_once(']')) {
        Some((condition, ".status")) => condition.to_owned(),
        Some((condition, field)) => format!("{condition}{field}"),
        None => path.replace("containerStatuses", ""),
    }
}

fn pod_headline(pod: &Value) -> String {
    let statuses = pod.pointer("/status/containerStatuses").and_then(Value::as_array);
    let statuses = statuses.map(Vec::as_slice).unwrap_or_default();
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let wanted = pod.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let waiting = statuses.iter().find_map(|status| status.pointer("/state/waiting/reason")?.as_str());
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("{} {ready}/{wanted}", waiting.unwrap_or(phase));
    if let Some(ip) = pod.pointer("/status/podIP").and_then(Value::as_str) {
        text.push(' ');
        text.push_str(ip);
    }
    text
}

/// How many endpoints of a slice are ready, of how many.
fn serving(slice: &Value) -> String {
    let all = slice["endpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = all.iter().filter(|endpoint| endpoint["conditions"]["ready"] == true).count();
    format!("{ready}/{}", all.len())
}

fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v str> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

fn cut(text: &str, longest: usize) -> String {
    let text = text.replace(['\n', '\r', '\t', '\x1b'], " ");
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_telling_part_of_a_change_comes_first() {
        let old = json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "app", "containerID": "a", "restartCount": 0}]}});
        let new = json!({"status": {"phase": "Running", "podIP": "10.0.0.1", "startTime": "x", "containerStatuses": [{"name": "app", "containerID": "b", "restartCount": 1}]}});
        let told = summary("Pod", &old, &new, Secrets::Masked);
        assert_eq!(told, "phase Pending→Running, [app].restartCount 0→1, podIP 10.0.0.1, 1 more");
    }

    #[test]
    fn a_change_of_times_only_says_so() {
        let told = summary(
            "Lease",
            &json!({"spec": {"renewTime": "a"}}),
            &json!({"spec": {"renewTime": "b"}}),
            Secrets::Masked,
        );
        assert_eq!(told, "renewTime renewed");
    }

    #[test]
    fn what_is_counted_is_told_in_numbers() {
        let slice =
            |ready: bool| json!({"endpoints": [{"conditions": {"ready": true}}, {"conditions": {"ready": ready}}]});
        assert_eq!(summary("EndpointSlice", &slice(true), &slice(false), Secrets::Masked), "2/2→1/2 endpoints ready");
        let told =
            summary("ReplicaSet", &json!({"status": {"readyReplicas": 1}}), &json!({"status": {}}), Secrets::Masked);
        assert_eq!(told, "readyReplicas 1→0");
    }

    #[test]
    fn a_secret_tells_what_changed_and_not_how() {
        let told = summary("Secret", &json!({"data": {"k": "old"}}), &json!({"data": {"k": "new"}}), Secrets::Masked);
        assert_eq!(told, "data.k ***");
    }
}
