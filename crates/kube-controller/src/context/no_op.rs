//! Whether a server-side apply would change nothing. Pure.
//!
//! The schema of the kind is not needed: the server has already divided the applied object into
//! fields, in the entry of the field manager. If that entry has exactly the fields of the object to
//! apply, and the object has them with equal values, a second apply sets nothing, adds no field to
//! the entry and removes none from it. In doubt the answer is no.

use serde_json::{Map, Value};

/// Returns whether applying `applied` would leave `current` as it is: the whole object as the
/// server has it, `managedFields` included.
///
/// `subresource` is empty for the object itself.
pub(crate) fn changes_nothing(applied: &Value, current: &Value, manager: &str, subresource: &str) -> bool {
    let Some(fields) = own_fields(applied, current, manager, subresource) else { return false };
    let Some(applied) = applied.as_object() else { return false };
    // The server strips what identifies the object before it divides it into fields.
    let mut configuration = applied.clone();
    let (version, kind) = (configuration.remove("apiVersion"), configuration.remove("kind"));
    if version.as_ref() != current.get("apiVersion") || kind.as_ref() != current.get("kind") {
        return false;
    }
    let Some(Value::Object(metadata)) = configuration.get_mut("metadata") else { return false };
    for identity in ["name", "namespace", "uid"] {
        if let Some(value) = metadata.remove(identity)
            && current.get("metadata").and_then(|metadata| metadata.get(identity)) != Some(&value)
        {
            return false;
        }
    }
    if metadata.is_empty() {
        configuration.remove("metadata");
    }
    let Some(current) = current.as_object() else { return false };
    has_exactly(fields, &configuration, current)
}

/// The fields of the only entry of this manager that applies with this version and subresource.
fn own_fields<'a>(
    applied: &Value,
    current: &'a Value,
    manager: &str,
    subresource: &str,
) -> Option<&'a Map<String, Value>> {
    let entries = current.get("metadata")?.get("managedFields")?.as_array()?;
    fn text<'e>(entry: &'e Value, field: &str) -> &'e str {
        entry.get(field).and_then(Value::as_str).unwrap_or_default()
    }
    let is_own = |entry: &&Value| {
        let (by, how, of) = (text(entry, "manager"), text(entry, "operation"), text(entry, "subresource"));
        (by, how, of) == (manager, "Apply", subresource)
    };
    let mut own = entries.iter().filter(is_own);
    let entry = own.next().filter(|_| own.next().is_none())?;
    let has_version = entry.get("apiVersion") == applied.get("apiVersion");
    entry.get("fieldsV1").filter(|_| has_version && text(entry, "fieldsType") == "FieldsV1")?.as_object()
}

/// An object: the fields are exactly those of `applied`, whose values are those of `current`.
fn has_exactly(fields: &Map<String, Value>, applied: &Map<String, Value>, current: &Map<String, Value>) -> bool {
    let owned = fields.keys().filter(|field| *field != ".").count();
    owned == applied.len()
        && applied.iter().all(|(name, applied)| {
            let below = fields.get(&format!("f:{name}"));
            below.zip(current.get(name)).is_some_and(|(below, current)| has_value(below, applied, current))
        })
}

fn has_value(fields: &Value, applied: &Value, current: &Value) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    // A leaf: a scalar, or a map or a list that has one owner as a whole.
    if fields.is_empty() {
        return !applied.is_null() && is_plain(applied) && applied == current;
    }
    match (applied, current) {
        (Value::Object(applied), Value::Object(current)) => has_exactly(fields, applied, current),
        (Value::Array(applied), Value::Array(current)) => has_items(fields, applied, current),
        _ => false,
    }
}

/// A list whose items have owners: the items are the same, in the same order.
fn has_items(fields: &Map<String, Value>, applied: &[Value], current: &[Value]) -> bool {
    let owned = fields.keys().filter(|field| *field != ".").count();
    owned == applied.len()
        && applied.len() == current.len()
        && applied.iter().zip(current).all(|(applied, current)| has_item(fields, applied, current))
}

fn has_item(fields: &Map<String, Value>, applied: &Value, current: &Value) -> bool {
    let mut owned = fields.iter().filter(|(element, _)| names(element, current));
    match (owned.next(), owned.next()) {
        // An item may have one owner as a whole, such as an owner reference.
        (Some((element, below)), None) if element.starts_with("k:") => has_value(below, applied, current),
        (Some((element, _)), None) if element.starts_with("v:") => applied == current,
        _ => false,
    }
}

/// Returns whether an element of a path, `k:` with the keys of an item or `v:` with a value, names
/// this item of a list.
fn names(element: &str, item: &Value) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    if let Some(keys) = element.strip_prefix("k:").and_then(read) {
        let Value::Object(keys) = keys else { return false };
        return keys.iter().all(|(key, value)| item.get(key) == Some(value));
    }
    element.strip_prefix("v:").and_then(read).is_some_and(|value| value == *item)
}

/// Whether a leaf is without nulls: servers drop some of them, which an equal value would hide.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => fields.values().all(is_plain),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn current() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u", "labels": {"app": "web", "other": "x"},
                "managedFields": [
                    {
                        "manager": "sites", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                        "fieldsV1": {
                            "f:metadata": {"f:labels": {"f:app": {}}},
                            "f:spec": {
                                "f:ports": {r#"k:{"port":80,"protocol":"TCP"}"#: {".": {}, "f:port": {}, "f:protocol": {}}},
                                "f:selector": {},
                            },
                        },
                    },
                    {"manager": "other", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}},
                ],
            },
            "spec": {
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "selector": {"app": "web"}, "clusterIP": "10.0.0.1",
            },
        })
    }

    fn applied() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"ports": [{"port": 80, "protocol": "TCP"}], "selector": {"app": "web"}},
        })
    }

    fn after(change: impl FnOnce(&mut Value)) -> bool {
        let mut applied = applied();
        change(&mut applied);
        changes_nothing(&applied, &current(), "sites", "")
    }

    #[test]
    fn the_same_fields_with_the_same_values_change_nothing() {
        assert!(after(|_| ()));
    }

    #[test]
    fn any_difference_is_sent() {
        assert!(!after(|applied| applied["spec"]["selector"]["app"] = "db".into()), "a value");
        assert!(!after(|applied| applied["metadata"]["labels"]["other"] = "x".into()), "a field of another manager");
        assert!(!after(|applied| applied["metadata"]["labels"] = json!({})), "a field less");
        assert!(!after(|applied| applied["spec"]["ports"][0]["port"] = 81.into()), "another item");
        assert!(!after(|applied| applied["spec"]["ports"] = json!([])), "an item less");
        assert!(!after(|applied| applied["metadata"]["uid"] = "other".into()), "another object");
        assert!(!after(|applied| applied["metadata"]["resourceVersion"] = "1".into()), "a precondition");
        assert!(!after(|applied| applied["apiVersion"] = "v2".into()), "another version");
        assert!(!after(|applied| applied["spec"]["selector"] = Value::Null), "a null");
    }

    #[test]
    fn another_manager_or_subresource_is_sent() {
        assert!(!changes_nothing(&applied(), &current(), "websites", ""));
        assert!(!changes_nothing(&applied(), &current(), "sites", "status"));
        assert!(!changes_nothing(&applied(), &current(), "other", ""), "an update owns no apply");
    }

    #[test]
    fn the_uid_of_the_object_itself_is_no_difference() {
        assert!(after(|applied| applied["metadata"]["uid"] = "u".into()));
    }
}
