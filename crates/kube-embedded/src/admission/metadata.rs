//! Accessors for the metadata of an object that is held as a JSON value.

use serde_json::{Map, Value};

/// The finalizer that keeps an object until its dependents have no owner reference to it.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer that keeps an object until its dependents are deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// A string field of the metadata; empty if missing.
pub(crate) fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object["metadata"][name].as_str().unwrap_or_default()
}

/// A number field of the metadata.
pub(crate) fn number(object: &Value, name: &str) -> Option<i64> {
    object["metadata"][name].as_i64()
}

/// A field of the metadata; `None` if missing or null.
pub(crate) fn part<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    object["metadata"].get(name).filter(|value| !value.is_null())
}

/// Sets a field of the metadata.
pub(crate) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    entries(object).insert(name.to_owned(), value.into());
}

/// Removes a field of the metadata.
pub(crate) fn remove(object: &mut Value, name: &str) {
    entries(object).remove(name);
}

/// Copies a field of the metadata from another object, or removes it if the other object has none.
pub(crate) fn keep(object: &mut Value, name: &str, from: &Value) {
    match part(from, name) {
        Some(value) => set(object, name, value.clone()),
        None => remove(object, name),
    }
}

/// Whether the object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    part(object, "deletionTimestamp").is_some()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    list(object, "finalizers").iter().filter_map(Value::as_str).collect()
}

/// Sets the finalizers; an empty list removes the field.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    match finalizers.is_empty() {
        true => remove(object, "finalizers"),
        false => set(object, "finalizers", finalizers),
    }
}

/// A list field of the metadata; empty if missing.
pub(crate) fn list<'v>(object: &'v Value, name: &str) -> &'v [Value] {
    object["metadata"][name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Increments the generation, if it is set.
pub(crate) fn count_generation(object: &mut Value) {
    if let Some(generation) = number(object, "generation").filter(|generation| *generation > 0) {
        set(object, "generation", generation.saturating_add(1));
    }
}

fn entries(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"].as_object_mut().expect("it was made an object just now")
}
