//! Conversion of JSON values to those of CEL.

use std::sync::Arc;

use base64::Engine as _;
use cel::objects::{Key, Map};
use serde_json::Value;

/// Reserved words of CEL. Rules refer to fields with these names by an escaped name.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Converts a value without a schema: all fields are visible, under their own names.
pub(super) fn plain(value: &Value) -> cel::Value {
    match value {
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (Key::from(key.clone()), plain(value)));
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
        scalar => convert(&Value::Null, scalar, false),
    }
}

pub(super) fn convert(schema: &Value, value: &Value, is_root: bool) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if schema["type"] != "number" => cel::Value::Int(whole),
            _ => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => {
            let bytes = (schema["format"] == "byte")
                .then(|| base64::engine::general_purpose::STANDARD.decode(text).ok())
                .flatten();
            bytes.map_or_else(|| cel::Value::String(Arc::new(text.clone())), |bytes| cel::Value::Bytes(Arc::new(bytes)))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| convert(&schema["items"], item, false)).collect();
            cel::Value::List(Arc::new(items))
        }
        Value::Object(map) => {
            let whole = is_root || schema["x-kubernetes-embedded-resource"] == true;
            let other = schema.get("additionalProperties").filter(|other| other.is_object());
            let fields = map.iter().filter_map(|(key, value)| {
                let seen = match (schema["properties"].get(key), other) {
                    (_, Some(other)) => (key.clone(), convert(other, value, false)),
                    (_, None) if whole && key == "metadata" => (key.clone(), names(value)),
                    (_, None) if whole && matches!(key.as_str(), "apiVersion" | "kind") => {
                        (key.clone(), convert(&Value::Null, value, false))
                    }
                    (Some(schema), None) => (escaped(key), convert(schema, value, false)),
                    // Fields that are not in the schema are invisible to rules.
                    (None, None) => return None,
                };
                Some((Key::from(seen.0), seen.1))
            });
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

/// Of the metadata, rules can access only the names.
fn names(metadata: &Value) -> cel::Value {
    let names = ["name", "generateName"].into_iter();
    let names = names.filter_map(|name| Some((name, metadata[name].as_str()?)));
    let names = names.map(|(name, text)| (Key::from(name), cel::Value::String(Arc::new(text.to_owned()))));
    cel::Value::Map(Map { map: Arc::new(names.collect()) })
}

/// The escaped name of a field in rules.
pub(super) fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let name = name.replace("__", "__underscores__").replace('.', "__dot__");
    name.replace('-', "__dash__").replace('/', "__slash__")
}
