//! The conditions in the status of an object.

use serde_json::{Value, json};

use crate::encoding::value::items;

/// The condition with this type.
pub(crate) fn find<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    items(&object["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}

/// Whether a pod is ready.
pub(crate) fn is_ready(pod: &Value) -> bool {
    find(pod, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Adds a condition, or replaces that of the same type. `lastTransitionTime` changes only with the
/// status.
pub(crate) fn set(object: &mut Value, mut condition: Value, now: &str) {
    condition["lastTransitionTime"] = json!(now);
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}
