//! The nesting depth of JSON values.
//!
//! Values are encoded, compared and dropped by recursion, so no value may be nested deeper than the
//! stack permits. Everything that builds values from input checks this limit first.

use serde_json::Value;

/// The maximum nesting depth of objects and patches. Stored objects are parsed again, and the JSON
/// parser has a recursion limit of 128.
pub(crate) const MAX_DEPTH: usize = 100;

/// The error message of kube-apiserver's decoder for a value that is nested too deep.
pub(crate) const TOO_DEEP: &str = "exceeded max depth";

/// The nesting depth of a value: 0 for a scalar. Computed without recursion.
pub(crate) fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut pending = vec![(value, 1)];
    while let Some((value, depth)) = pending.pop() {
        let is_container = |value: &&Value| value.is_array() || value.is_object();
        match value {
            Value::Array(items) => pending.extend(items.iter().filter(is_container).map(|item| (item, depth + 1))),
            Value::Object(map) => pending.extend(map.values().filter(is_container).map(|item| (item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => continue,
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Whether a value is nested deeper than [`MAX_DEPTH`].
pub(crate) fn is_too_deep(value: &Value) -> bool {
    depth(value) > MAX_DEPTH
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_list_and_each_object_is_a_level() {
        for (value, expected) in
            [(json!(1), 0), (json!([]), 1), (json!({"a": 1, "b": [1, {"c": []}], "d": {}}), 4), (json!([[], [[]]]), 3)]
        {
            assert_eq!(depth(&value), expected, "{value}");
        }
    }

    #[test]
    fn the_depth_of_a_deep_value_needs_no_stack() {
        let mut value = json!([]);
        for _ in 0..100_000 {
            value = Value::Array(vec![value]);
        }
        assert_eq!(depth(&value), 100_001);
        // Taken apart level by level, because dropping the value would recurse.
        while let Value::Array(mut items) = value {
            value = items.pop().unwrap_or_default();
        }
    }
}
