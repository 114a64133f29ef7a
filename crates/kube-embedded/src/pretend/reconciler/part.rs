//! Accessors of object fields, with defaults for missing values.

use serde_json::Value;

use crate::pretend::write::ObjectReference;

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

/// The desired number of pods of a deployment or replica set.
pub(super) fn wanted(object: &Value) -> u64 {
    object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
}

/// Whether the object is being deleted.
pub(super) fn is_ending(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The owner reference of an object's controller.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
}

pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    items(object, "/status/conditions").iter().find(|condition| condition["type"] == kind)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Whether a pod has completed.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

pub(super) fn target(api_version: &'static str, kind: &'static str, object: &Value) -> ObjectReference {
    let namespace = text(object, "/metadata/namespace").to_owned();
    ObjectReference { api_version, kind, namespace, name: name(object).to_owned() }
}

/// A number, or null for 0, because such fields are omitted.
pub(super) fn unless_zero(number: u64) -> Value {
    if number == 0 { Value::Null } else { Value::from(number) }
}
