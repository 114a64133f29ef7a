//! What a definition's schema says about its objects: unknown fields go, missing ones get their defaults, wrong ones are
//! refused. Patterns, formats, combinations of schemas and CEL rules are not looked at.

use serde_json::{Map, Value};

use crate::json;
use crate::status::Cause;

/// The schema of one version of a custom kind.
#[derive(Debug)]
pub(crate) struct Structure(Value);

/// Whether a place holds a whole object, whose type and metadata are not the schema's business.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Object,
    Field,
}

impl Structure {
    /// The structure that an `openAPIV3Schema` describes.
    pub(crate) fn new(schema: &Value) -> Self {
        Self(schema.clone())
    }

    /// The schema as the definition has it.
    pub(crate) fn schema(&self) -> &Value {
        &self.0
    }

    /// Takes out fields that the schema does not have; gives their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune(&self.0, object, Place::Object, "", &mut unknown);
        unknown
    }

    /// Fills in the defaults of the schema.
    pub(crate) fn fill(&self, object: &mut Value) {
        fill(&self.0, object);
    }

    /// What is wrong with an object.
    pub(crate) fn problems(&self, object: &Value) -> Vec<Cause> {
        let mut causes = Vec::new();
        check(&self.0, object, Place::Object, "", &mut causes);
        causes
    }
}

fn prune(schema: &Value, value: &mut Value, place: Place, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                prune(&schema["items"], item, Place::Field, &format!("{path}[{at}]"), unknown);
            }
        }
        Value::Object(map) => {
            let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let whole = place == Place::Object || schema["x-kubernetes-embedded-resource"] == true;
            map.retain(|key, value| {
                if whole && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                match known(schema, key) {
                    Some(schema) => {
                        prune(schema, value, Place::Field, &join(path, key), unknown);
                        true
                    }
                    None if keeps_unknown || schema["additionalProperties"] == true => true,
                    None => {
                        unknown.push(join(path, key));
                        false
                    }
                }
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
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
                let Some(default) = schema.get("default") else { continue };
                let missing = match map.get(key) {
                    None => true,
                    Some(value) => value.is_null() && schema["nullable"] != true,
                };
                if missing {
                    map.insert(key.clone(), default.clone());
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

fn check(schema: &Value, value: &Value, place: Place, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(expected) = schema["type"].as_str().filter(|expected| !is_of_type(expected, value)) {
        let found = type_of(value);
        let why = format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}");
        causes.push(Cause::new("FieldValueTypeInvalid", path, why));
        return;
    }
    if schema["x-kubernetes-int-or-string"] == true && !value.is_string() && value.as_i64().is_none() {
        let found = type_of(value);
        let why = format!("Invalid value: {found:?}: {path} in body must be of type integer,string: {found:?}");
        causes.push(Cause::new("FieldValueTypeInvalid", path, why));
        return;
    }
    match value {
        Value::Object(map) => check_fields(schema, map, place, path, causes),
        Value::Array(items) => {
            check_count(schema, ("minItems", "maxItems"), "items", items.len(), path, causes);
            for (at, item) in items.iter().enumerate() {
                check(&schema["items"], item, Place::Field, &format!("{path}[{at}]"), causes);
            }
        }
        Value::String(text) => check_length(schema, text, path, causes),
        Value::Number(number) => check_range(schema, number.as_f64().unwrap_or_default(), value, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        let shown: Vec<String> = allowed.iter().map(shown).collect();
        causes.push(Cause::unsupported(path, self::shown(value), &shown.join(", ")));
    }
}

fn check_fields(schema: &Value, map: &Map<String, Value>, place: Place, path: &str, causes: &mut Vec<Cause>) {
    let whole = place == Place::Object || schema["x-kubernetes-embedded-resource"] == true;
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required.filter(|name| !map.contains_key(*name)) {
        causes.push(Cause::new("FieldValueRequired", join(path, name), "Required value"));
    }
    check_count(schema, ("minProperties", "maxProperties"), "properties", map.len(), path, causes);
    for (key, value) in map {
        if whole && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        if let Some(schema) = known(schema, key) {
            check(schema, value, Place::Field, &join(path, key), causes);
        }
    }
}

fn check_count(
    schema: &Value,
    (least, most): (&str, &str),
    what: &str,
    count: usize,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    let count = count as u64;
    if let Some(least) = schema[least].as_u64().filter(|least| count < *least) {
        causes.push(Cause::invalid(path, count, format!("{path} in body should have at least {least} {what}")));
    }
    if let Some(most) = schema[most].as_u64().filter(|most| count > *most) {
        let why = format!("Too many: {count}: must have at most {most} items");
        causes.push(Cause::new("FieldValueTooMany", path, why));
    }
}

fn check_length(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    if let Some(least) = schema["minLength"].as_u64().filter(|least| length < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        causes.push(Cause::invalid(path, shown(&text.into()), why));
    }
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        let why = format!("Too long: may not be more than {most} bytes");
        causes.push(Cause::new("FieldValueTooLong", path, why));
    }
}

fn check_range(schema: &Value, number: f64, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(least) = schema["minimum"].as_f64() {
        let exclusive = schema["exclusiveMinimum"] == true;
        if number < least || exclusive && number <= least {
            let bound = if exclusive { "greater than" } else { "greater than or equal to" };
            let why = format!("{path} in body should be {bound} {least}");
            causes.push(Cause::invalid(path, shown(value), why));
        }
    }
    if let Some(most) = schema["maximum"].as_f64() {
        let exclusive = schema["exclusiveMaximum"] == true;
        if number > most || exclusive && number >= most {
            let bound = if exclusive { "less than" } else { "less than or equal to" };
            let why = format!("{path} in body should be {bound} {most}");
            causes.push(Cause::invalid(path, shown(value), why));
        }
    }
}

fn is_of_type(expected: &str, value: &Value) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn join(path: &str, key: &str) -> String {
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
    fn wrong_values_are_told_one_by_one() {
        let told = |spec: Value| -> Vec<String> {
            let causes = structure().problems(&json!({"metadata": {"name": "a"}, "spec": spec}));
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
        };
        assert!(told(json!({"size": 3, "port": 80, "tags": ["a"]})).is_empty());
        assert_eq!(told(json!({})), ["spec.size: Required value"]);
        assert_eq!(
            told(json!({"size": "big"})),
            ["spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\""]
        );
        assert_eq!(
            told(json!({"size": 0, "color": "green", "tags": ["", "b", "c"]})),
            [
                "spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
                "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
                "spec.tags: Too many: 3: must have at most 2 items",
                "spec.tags[0]: Invalid value: \"\": spec.tags[0] in body should be at least 1 chars long",
            ]
        );
        assert_eq!(told(json!({"size": 1, "port": true})).len(), 1);
    }
}
