//! Structural schemas of custom resources: pruning, defaulting and validation.

mod check;
#[cfg(feature = "cel")]
mod cost;
mod formats;
#[cfg(feature = "cel")]
mod rules;
#[cfg(not(feature = "cel"))]
#[path = "structure/no_rules.rs"]
mod rules;

use std::collections::HashMap;

use serde_json::{Map, Value};

use self::check::Patterns;
use self::rules::Rules;
pub(crate) use self::rules::are_met;
use super::schema::Structs;
use crate::encoding::json;
use crate::http::status::Cause;

/// The schema of one version of a custom resource.
#[derive(Debug)]
pub(crate) struct Structure {
    schema: Value,
    patterns: Patterns,
    rules: Rules,
}

/// The result of validating an object.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Validation errors, for which the object is rejected.
    pub(crate) causes: Vec<Cause>,
    /// Warnings for the client: errors that existed before the update, and rules that could not be
    /// checked.
    pub(crate) warnings: Vec<String>,
}

/// Which part of an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Whole,
    Status,
}

/// Whether a value is a complete object, whose apiVersion, kind and metadata are not validated by
/// the schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePosition {
    Object,
    Field,
}

impl Structure {
    /// Compiles an `openAPIV3Schema`.
    pub(crate) fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), patterns: Patterns::of(schema), rules: Rules::of(schema) }
    }

    /// The original schema.
    pub(crate) fn schema(&self) -> &Value {
        &self.schema
    }

    /// Removes fields that are not in the schema, and returns their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune(&self.schema, object, ValuePosition::Object, "", &mut unknown);
        unknown
    }

    /// Sets the defaults of the schema.
    pub(crate) fn fill(&self, object: &mut Value) {
        fill(&self.schema, object);
    }

    /// Warnings about unknown formats in the schema, with the messages of kube-apiserver.
    pub(crate) fn unknown_formats(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        formats::unknown(&self.schema, &mut unknown);
        unknown.iter().map(|format| format!("unrecognized format {format:?}")).collect()
    }

    /// Warnings about validation rules that cannot be compiled and are therefore not checked.
    pub(crate) fn unchecked_rules(&self) -> Vec<String> {
        self.rules.unreadable()
    }

    /// Validates a new object.
    pub(crate) fn created(&self, object: &Value) -> Findings {
        self.validate(object, None, Written::Whole)
    }

    /// Validates an update. Errors in unchanged parts of the old object are tolerated (ratcheting).
    pub(crate) fn updated(&self, new: &Value, old: &Value, written: Written) -> Findings {
        self.validate(new, Some(old), written)
    }

    fn validate(&self, object: &Value, old: Option<&Value>, written: Written) -> Findings {
        let schema = &self.schema;
        let mut causes = match written {
            Written::Whole => check::problems(&self.patterns, schema, object, old, ""),
            Written::Status => self.status_problems(object, old),
        };
        if written == Written::Whole {
            check::embedded(schema, object, "", &mut causes);
        }
        let mut repeated = Vec::new();
        check::repeated(schema, object, "", &mut repeated);
        if let Some(old) = old.filter(|_| !repeated.is_empty()) {
            let mut before = Vec::new();
            check::repeated(schema, old, "", &mut before);
            if !before.is_empty() {
                repeated.clear();
            }
        }
        causes.extend(repeated);
        if self.rules.is_empty() {
            return Findings { causes, warnings: Vec::new() };
        }
        if causes.iter().any(blocks_rules) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                       complete validation";
            causes.push(Cause::invalid(check::NO_FIELD, "null", why));
            return Findings { causes, warnings: Vec::new() };
        }
        let of_rules = self.rules.check(schema, object, old);
        causes.extend(of_rules.causes);
        Findings { causes, warnings: of_rules.warnings }
    }

    /// Validates the status by itself. The messages omit the prefix `status`, the field paths
    /// contain it.
    fn status_problems(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let Some(status) = object.get("status") else { return Vec::new() };
        let (schema, old) = (&self.schema["properties"]["status"], old.and_then(|old| old.get("status")));
        let mut causes = check::problems(&self.patterns, schema, status, old, "");
        for cause in causes.iter_mut().filter(|cause| cause.field != check::NO_FIELD) {
            cause.field = joined("status", &cause.field).trim_end_matches('.').to_owned();
        }
        causes
    }
}

/// Validation rules rely on correct types and sizes.
fn blocks_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}

/// The old values of the items of a list. Items are matched by their keys, or not at all.
struct Counterparts<'v>(HashMap<Value, &'v Value>);

impl<'v> Counterparts<'v> {
    fn of(schema: &Value, old: Option<&'v Value>) -> Self {
        let is_map = schema["x-kubernetes-list-type"] == "map";
        let old = old.filter(|_| is_map).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // Of several with one key, the first one comes last, and stays.
        Self(old.iter().rev().map(|item| (key_of(schema, item), item)).collect())
    }

    fn get(&self, schema: &Value, item: &Value) -> Option<&'v Value> {
        if self.0.is_empty() { None } else { self.0.get(&key_of(schema, item)).copied() }
    }
}

/// The map keys of a list item; the item itself if the list has no map keys.
fn key_of(schema: &Value, item: &Value) -> Value {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut keys = keys.peekable();
    if keys.peek().is_none() {
        return item.clone();
    }
    keys.filter_map(|key| Some((key.to_owned(), item.get(key)?.clone()))).collect::<Map<_, _>>().into()
}

fn prune(schema: &Value, value: &mut Value, place: ValuePosition, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                prune(&schema["items"], item, ValuePosition::Field, &format!("{path}[{at}]"), unknown);
            }
        }
        Value::Object(map) => {
            let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let whole = place == ValuePosition::Object || schema["x-kubernetes-embedded-resource"] == true;
            map.retain(|key, value| {
                if whole && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    if place == ValuePosition::Field && key == "metadata" {
                        prune_metadata(value, &joined(path, key), unknown);
                    }
                    return true;
                }
                match known(schema, key) {
                    Some(schema) => {
                        prune(schema, value, ValuePosition::Field, &joined(path, key), unknown);
                        true
                    }
                    None if keeps_unknown || schema["additionalProperties"] == true => true,
                    None => {
                        unknown.push(joined(path, key));
                        false
                    }
                }
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The metadata of an embedded resource has the fields of `ObjectMeta`.
fn prune_metadata(metadata: &mut Value, path: &str, unknown: &mut Vec<String>) {
    if let Value::Object(map) = metadata {
        map.retain(|key, _| {
            let known = Structs::object_meta().field(key).is_some();
            if !known {
                unknown.push(joined(path, key));
            }
            known
        });
    }
}

/// The schema of a field.
fn known<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let named = schema["properties"].get(key);
    named.or_else(|| schema.get("additionalProperties").filter(|schema| schema.is_object()))
}

fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&schema["items"], item)),
        Value::Object(map) => {
            for (key, schema) in properties(schema) {
                let is_null = match map.get(key) {
                    None => false,
                    Some(value) if value.is_null() && schema["nullable"] != true => true,
                    Some(_) => continue,
                };
                match schema.get("default") {
                    Some(default) => drop(map.insert(key.clone(), default.clone())),
                    // Null in a field that is not nullable counts as absent.
                    None if is_null => drop(map.remove(key)),
                    None => {}
                }
            }
            for (key, value) in map.iter_mut() {
                if let Some(schema) = known(schema, key) {
                    fill(schema, value);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn shown(value: &Value) -> String {
    String::from_utf8_lossy(&json::encode_sorted(value)).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn structure() -> Structure {
        Structure::new(&json!({
            "type": "object", "required": ["spec"],
            "properties": {
                "spec": {
                    "type": "object", "required": ["size"],
                    "properties": {
                        "size": {"type": "integer", "minimum": 1, "maximum": 9},
                        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                        "tags": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 1}},
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "parts": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "port": {"x-kubernetes-int-or-string": true}
                    }
                }
            }
        }))
    }

    #[test]
    fn unknown_fields_go_wherever_they_are() {
        let mut object = json!({
            "apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "a"}, "extra": 1,
            "spec": {"size": 1, "bogus": 2, "labels": {"any": "x"}, "free": {"any": {"thing": 1}}, "parts": [{"n": 1, "m": 2}]}
        });
        assert_eq!(structure().prune(&mut object), ["extra", "spec.bogus", "spec.parts[0].m"]);
        let spec = json!({"size": 1, "labels": {"any": "x"}, "free": {"any": {"thing": 1}}, "parts": [{"n": 1}]});
        assert_eq!(object["spec"], spec);
        assert_eq!(object["metadata"]["name"], "a");
    }

    #[test]
    fn defaults_are_filled_in_where_their_parent_is() {
        let mut object = json!({"spec": {"size": 1, "parts": [{}, {"n": null}, {"n": 3}]}});
        structure().fill(&mut object);
        assert_eq!(object["spec"], json!({"size": 1, "color": "red", "parts": [{"n": 1}, {"n": 1}, {"n": 3}]}));
        let mut nothing = json!({});
        structure().fill(&mut nothing);
        assert_eq!(nothing, json!({}));
    }

    #[test]
    fn wrong_values_are_reported_one_by_one() {
        let errors_of = |spec: Value| -> Vec<String> {
            let found = structure().created(&json!({"metadata": {"name": "a"}, "spec": spec}));
            found.causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
        };
        assert!(errors_of(json!({"size": 3, "port": 80, "tags": ["a"]})).is_empty());
        assert_eq!(errors_of(json!({})), ["spec.size: Required value"]);
        assert_eq!(
            errors_of(json!({"size": "big"})),
            ["spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\""]
        );
        assert_eq!(
            errors_of(json!({"size": 0, "color": "green", "tags": ["", "b", "c"]})),
            [
                "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
                "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
                "spec.tags[0]: Invalid value: \"\": spec.tags[0] in body should be at least 1 chars long",
                "spec.tags: Too many: 3: must have at most 2 items",
            ]
        );
        assert_eq!(errors_of(json!({"size": 1, "port": true})).len(), 1);
    }
}
