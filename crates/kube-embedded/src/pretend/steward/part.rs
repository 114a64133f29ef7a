//! Reading objects as people wrote them: whatever is missing has its usual value.

use serde_json::Value;

use crate::pretend::write::Target;

pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(object: &Value, pointer: &str) -> u64 {
    object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn items<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// How many pods a deployment or replica set wants.
pub(super) fn wanted(object: &Value) -> u64 {
    object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
}

/// Whether it has been told to go.
pub(super) fn is_ending(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The reference to whoever controls an object.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
}

pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    items(object, "/status/conditions").iter().find(|condition| condition["type"] == kind)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Whether a pod has run to its end.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub(super) fn target(api_version: &'static str, kind: &'static str, object: &Value) -> Target {
    let namespace = text(object, "/metadata/namespace").to_owned();
    Target { api_version, kind, namespace, name: name(object).to_owned() }
}

/// A number, or nothing where objects leave out a zero.
pub(super) fn unless_zero(number: u64) -> Value {
    if number == 0 { Value::Null } else { Value::from(number) }
}
