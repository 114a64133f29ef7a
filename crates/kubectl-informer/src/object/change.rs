//! Summarizes an object or a change in less than a line.

use std::sync::LazyLock;
use std::time::SystemTime;

use kube_embedded::table::Columns;
use serde_json::Value;

use crate::object::diff::{Difference, is_time, path_text};
use crate::object::noise::Noise;
use crate::object::redaction::Secrets;
use crate::terminal::terminal_text::visible;

/// Maximum number of differences named in a summary; the others are only counted.
const MAX_NAMED: usize = 3;
/// Maximum length of a value in characters; longer values are truncated.
const MAX_VALUE_LENGTH: usize = 48;
/// Number of equal characters shown before the first difference of long values.
const CONTEXT_LENGTH: usize = 8;

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
        _ => match ready_replicas(kind, object) {
            Some((ready, wanted)) => format!("{ready}/{wanted} ready"),
            None => text("/status/phase").to_owned(),
        },
    }
}

/// How many replicas of a workload are ready, and how many are wanted.
pub(crate) fn ready_replicas(kind: &str, object: &Value) -> Option<(i64, i64)> {
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let (ready, wanted) = match kind {
        "DaemonSet" => ("/status/numberReady", "/status/desiredNumberScheduled"),
        _ => ("/status/readyReplicas", "/spec/replicas"),
    };
    Some((count(ready).unwrap_or(0), count(wanted)?))
}

/// Summary of the changed fields, most significant first.
pub(crate) fn summary(kind: &str, old: &Value, new: &Value, secrets: Secrets, noise: Noise) -> String {
    let all = noise.diff(kind, old, new);
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

/// The text of a value, of any length.
pub(crate) fn value_text(value: Option<&Value>) -> String {
    match value {
        None => "∅".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn shown(value: Option<&Value>) -> String {
    cut(&value_text(value), MAX_VALUE_LENGTH)
}

/// Two different values, truncated so that their first difference is visible: of long values with
/// the same beginning, most of it is left out.
fn shown_pair(old: Option<&Value>, new: Option<&Value>) -> (String, String) {
    let texts = [old, new].map(|value| visible(&value_text(value)).into_owned());
    let is_short = texts.iter().all(|text| text.chars().count() <= MAX_VALUE_LENGTH);
    let same = texts[0].chars().zip(texts[1].chars()).take_while(|(old, new)| old == new).count();
    let left_out = if is_short { 0 } else { same.saturating_sub(CONTEXT_LENGTH) };
    let [old, new] = texts.map(|text| match text.char_indices().nth(left_out) {
        Some((start, _)) if left_out > 0 => cut(&format!("…{}", &text[start..]), MAX_VALUE_LENGTH),
        _ => cut(&text, MAX_VALUE_LENGTH),
    });
    (old, new)
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
        (old, new) => {
            let (old, new) = shown_pair(old, new);
            format!("{name} {old}→{new}")
        }
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

/// The status and readiness of a pod, as in kubectl's table, and its address.
fn pod_headline(pod: &Value) -> String {
    static COLUMNS: LazyLock<Option<Columns>> = LazyLock::new(|| Columns::built_in("", "v1", "pods"));
    let cells = COLUMNS.as_ref().map(|columns| columns.row(pod, SystemTime::now()).cells).unwrap_or_default();
    let mut text = match cells.as_slice() {
        [_name, Value::String(ready), Value::String(status), ..] => format!("{status} {ready}"),
        _ => String::new(),
    };
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
    let text = visible(text);
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
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
        let text = summary("Pod", &old, &new, Secrets::Redacted, Noise::Shown);
        assert_eq!(text, "phase Pending→Running, [app].restartCount 0→1, podIP 10.0.0.1, 1 more");
    }

    #[test]
    fn a_change_of_times_only_says_so() {
        let text = summary(
            "Lease",
            &json!({"spec": {"renewTime": "a"}}),
            &json!({"spec": {"renewTime": "b"}}),
            Secrets::Redacted,
            Noise::Shown,
        );
        assert_eq!(text, "renewTime renewed");
    }

    #[test]
    fn counted_items_are_shown_as_numbers() {
        let slice =
            |ready: bool| json!({"endpoints": [{"conditions": {"ready": true}}, {"conditions": {"ready": ready}}]});
        assert_eq!(
            summary("EndpointSlice", &slice(true), &slice(false), Secrets::Redacted, Noise::Shown),
            "2/2→1/2 endpoints ready"
        );
        let text = summary(
            "ReplicaSet",
            &json!({"status": {"readyReplicas": 1}}),
            &json!({"status": {}}),
            Secrets::Redacted,
            Noise::Shown,
        );
        assert_eq!(text, "readyReplicas 1→0");
    }

    #[test]
    fn a_pod_has_the_status_that_kubectl_shows() {
        let container = |state: Value| json!([{"name": "c", "ready": false, "restartCount": 0, "state": state}]);
        let ended = container(json!({"terminated": {"reason": "Completed", "exitCode": 0}}));
        for (expected, status) in [
            ("Completed 0/1 10.0.0.1", json!({"phase": "Succeeded", "podIP": "10.0.0.1", "containerStatuses": ended})),
            (
                "CrashLoopBackOff 0/1",
                json!({"phase": "Running", "containerStatuses": container(json!({"waiting": {"reason": "CrashLoopBackOff"}}))}),
            ),
            ("Init:0/2 0/1", json!({"phase": "Pending", "initContainerStatuses": container(json!({"running": {}}))})),
            ("Pending 0/1", json!({"phase": "Pending"})),
        ] {
            let containers = |count| (0..count).map(|n| json!({"name": format!("c{n}")})).collect::<Vec<_>>();
            let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers(1), "initContainers": containers(2)}, "status": status});
            assert_eq!(headline("Pod", &pod), expected);
        }
    }

    #[test]
    fn long_values_are_cut_where_they_are_equal() {
        let image =
            |tag: &str| json!({"image": format!("registry.example.com/some/long/path/of/an/image/name/web:{tag}")});
        let text = summary("Widget", &image("v1.2.3"), &image("v1.2.4-rc1"), Secrets::Redacted, Noise::Shown);
        assert_eq!(text, "image …eb:v1.2.3→…eb:v1.2.4-rc1");
        let long = |end: &str| json!({"k": format!("{}{end}", "x".repeat(60))});
        assert_eq!(
            summary("Widget", &long(""), &long("yz"), Secrets::Redacted, Noise::Shown),
            "k …xxxxxxxx→…xxxxxxxxyz"
        );
        let apart = |letter: &str| json!({"k": letter.repeat(60)});
        let text = summary("Widget", &apart("a"), &apart("b"), Secrets::Redacted, Noise::Shown);
        assert_eq!(text, format!("k {}…→{}…", "a".repeat(48), "b".repeat(48)));
    }

    #[test]
    fn a_change_of_a_secret_names_the_keys_and_no_values() {
        let text = summary(
            "Secret",
            &json!({"data": {"k": "old"}}),
            &json!({"data": {"k": "new"}}),
            Secrets::Redacted,
            Noise::Shown,
        );
        assert_eq!(text, "data.k ***");
    }
}
