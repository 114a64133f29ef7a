//! Accessors of object fields, with defaults for missing values.

use serde_json::Value;

pub(super) use crate::kinds::status_condition::{find as condition, is_ready};
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

/// Resolves a number of pods, or a percentage of all of them. `None` if it is neither.
pub(super) fn resolve_share(share: &Value, all: u64, divide: impl Fn(u64, u64) -> u64) -> Option<u64> {
    let resolved = match share {
        Value::String(text) => {
            let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty())?;
            let percent = digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(digits)?;
            // Digits that do not fit are a great number.
            divide(all.saturating_mul(percent.parse().unwrap_or(u64::MAX)), 100)
        }
        number => number.as_u64()?,
    };
    // Numbers of pods are of 32 bits.
    Some(resolved.min(i32::MAX as u64))
}

/// Whether the object is being deleted.
pub(super) fn is_ending(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// The owner reference of an object's controller.
pub(super) fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        let up = |share: Value| resolve_share(&share, 10, u64::div_ceil);
        assert_eq!([up(json!(3)), up(json!("25%")), up(json!("0%"))], [Some(3), Some(3), Some(0)]);
        assert_eq!([up(json!("3")), up(json!("%")), up(json!("a%")), up(json!(-1))], [None; 4]);
    }

    #[test]
    fn a_share_has_an_upper_bound() {
        for share in ["99999999999%", "9999999999999999999%", "99999999999999999999999%"] {
            assert_eq!(resolve_share(&json!(share), 10, u64::div_ceil), Some(i32::MAX as u64), "{share}");
        }
    }
}
