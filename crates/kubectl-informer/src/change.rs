//! Summarizes an object or a change in less than a line.

use serde_json::Value;

use crate::diff::{Difference, diff, is_time, path_text};
use crate::mask::Secrets;

/// Maximum number of differences named in a summary; the others are only counted.
const MAX_NAMED: usize = 3;
/// Maximum length of a value in characters; longer values are truncated.
const MAX_VALUE_LENGTH: usize = 48;

/// One-line description of an object's state, by kind.
pub(crate) fn headline(kind: &str, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match kind {
        "Pod" => pod_headline(object),
        "Event" => {
            let about = text("/involvedObject/kind").to_lowercase();
            cut(&format!("{about} {}: {}", text("/reason"), text("/message")), 3 * MAX_VALUE_LENGTH)
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

/// Summary of the changed fields, most significant first.
pub(crate) fn summary(kind: &str, old: &Value, new: &Value, secrets: Secrets) -> String {
    let all = diff(old, new);
    let is_terminating = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
    if is_terminating(new) && !is_terminating(old) {
        let grace = new.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(0);
        return format!("terminating, {grace} s of grace");
    }
    if kind == "EndpointSlice" && serving(old) != serving(new) {
        return format!("{}→{} endpoints ready", serving(old), serving(new));
    }
    let mut ranked: Vec<(u8, String)> = all
        .iter()
        .filter(|difference| !is_time(&difference.path))
        .map(|difference| {
            let path = path_text(&difference.path);
            (rank(&path), named(kind, &path, difference, secrets))
        })
        .collect();
    if ranked.is_empty() {
        return match all.first() {
            Some(first) => format!("{} renewed", short(&path_text(&first.path))),
            None => "no field changed".to_owned(),
        };
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.dedup_by(|one, other| one.1 == other.1);
    let more = ranked.len().saturating_sub(MAX_NAMED);
    let mut parts: Vec<String> = ranked.into_iter().take(MAX_NAMED).map(|(_, text)| text).collect();
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    parts.join(", ")
}

/// Formats a value for a line, truncated.
pub(crate) fn shown(value: Option<&Value>) -> String {
    match value {
        None => "∅".to_owned(),
        Some(Value::String(text)) => cut(text, MAX_VALUE_LENGTH),
        Some(other) => cut(&other.to_string(), MAX_VALUE_LENGTH),
    }
}

fn named(kind: &str, path: &str, difference: &Difference<'_>, secrets: Secrets) -> String {
    let name = short(path);
    if secrets.hides(kind, path) {
        return format!("{name} ***");
    }
    // Kubernetes omits replica counts that are zero.
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

/// Significance of a field; lower ranks are listed first.
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

/// Shortens a path by its top-level section and the `conditions[…]` and `containerStatuses` parts.
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

/// Ready and total endpoints of an `EndpointSlice`, as `ready/total`.
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
        let text = summary("Pod", &old, &new, Secrets::Masked);
        assert_eq!(text, "phase Pending→Running, [app].restartCount 0→1, podIP 10.0.0.1, 1 more");
    }

    #[test]
    fn a_change_of_times_only_says_so() {
        let text = summary(
            "Lease",
            &json!({"spec": {"renewTime": "a"}}),
            &json!({"spec": {"renewTime": "b"}}),
            Secrets::Masked,
        );
        assert_eq!(text, "renewTime renewed");
    }

    #[test]
    fn counted_items_are_shown_as_numbers() {
        let slice =
            |ready: bool| json!({"endpoints": [{"conditions": {"ready": true}}, {"conditions": {"ready": ready}}]});
        assert_eq!(summary("EndpointSlice", &slice(true), &slice(false), Secrets::Masked), "2/2→1/2 endpoints ready");
        let text =
            summary("ReplicaSet", &json!({"status": {"readyReplicas": 1}}), &json!({"status": {}}), Secrets::Masked);
        assert_eq!(text, "readyReplicas 1→0");
    }

    #[test]
    fn a_change_of_a_secret_names_the_keys_and_no_values() {
        let text = summary("Secret", &json!({"data": {"k": "old"}}), &json!({"data": {"k": "new"}}), Secrets::Masked);
        assert_eq!(text, "data.k ***");
    }
}
