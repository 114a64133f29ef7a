//! Estimates the memory of objects if they were cached decoded.

use serde_json::Value;

/// Estimated bytes of a decoded tree: its nodes and their heap allocations.
///
/// Ignores allocator rounding and assumes that B-tree nodes are two thirds full.
pub(crate) fn decoded_size(value: &Value) -> usize {
    size_of::<Value>() + heap(value)
}

fn heap(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(decoded_size).sum(),
        // An empty map allocates no node.
        Value::Object(fields) if fields.is_empty() => 0,
        Value::Object(fields) => {
            let entry = size_of::<String>() + size_of::<Value>();
            let slots = fields.len().max(NODE_CAPACITY * 2 / 3) * 3 / 2;
            slots * entry + fields.iter().map(|(key, value)| key.len() + heap(value)).sum::<usize>()
        }
    }
}

/// Capacity of a node of the standard library's B-tree.
const NODE_CAPACITY: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tree_takes_more_than_its_text() {
        let pod = json!({"metadata": {"name": "a", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "i"}]}});
        assert!(decoded_size(&pod) > 2 * pod.to_string().len());
    }
}
