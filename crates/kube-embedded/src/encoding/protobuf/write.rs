//! Encoding of JSON into messages: the same bytes that kube-apiserver sends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::duration;
use super::plan::{Of, Other, Part, Plan, Plans, Repeats, Written};
use super::wire::{push_bytes, push_double, push_message, push_number};
use crate::encoding::json::encode_sorted;
use crate::encoding::value::text;

/// Appends a message. Fields that are missing or have the wrong type are written as Go writes zero
/// values.
pub(super) fn push(out: &mut Vec<u8>, plan: &Plan, object: &Value) {
    for part in plan.parts() {
        match (part.of, part.repeats) {
            (Of::Embedded(inner), _) => {
                push_message(out, part.number, |out| push(out, Plans::get().at(inner), object));
            }
            (_, Repeats::Once) => match object.get(part.name).filter(|value| !value.is_null()) {
                Some(value) => push_value(out, part.number, part.of, value),
                None if part.written == Written::Always => push_value(out, part.number, part.of, &Value::Null),
                None => {}
            },
            (_, Repeats::List) => {
                for item in object.get(part.name).and_then(Value::as_array).into_iter().flatten() {
                    push_value(out, part.number, part.of, item);
                }
            }
            (_, Repeats::Map) => {
                if let Some(map) = object.get(part.name).and_then(Value::as_object) {
                    push_map(out, part, map);
                }
            }
        }
    }
}

fn push_map(out: &mut Vec<u8>, part: &Part, map: &Map<String, Value>) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    for (key, value) in entries {
        push_message(out, part.number, |out| {
            push_bytes(out, 1, key.as_bytes());
            // A Go byte slice can be nil, and is then omitted.
            if part.of != Of::Bytes || !value.is_null() {
                push_value(out, 2, part.of, value);
            }
        });
    }
}

fn push_value(out: &mut Vec<u8>, field: u32, of: Of, value: &Value) {
    match of {
        Of::Int32 | Of::Int64 => push_number(out, field, value.as_i64().unwrap_or_default()),
        Of::Bool => push_number(out, field, value.as_bool().unwrap_or_default().into()),
        Of::Double => push_double(out, field, value.as_f64().unwrap_or_default()),
        Of::Text => push_bytes(out, field, text(value).as_bytes()),
        Of::Bytes => push_bytes(out, field, &STANDARD.decode(text(value)).unwrap_or_default()),
        Of::Time | Of::MicroTime => push_message(out, field, |out| {
            if let Ok(time) = text(value).parse::<Timestamp>() {
                // `nanos` is never negative, also before 1970.
                let micros = time.as_microsecond();
                push_number(out, 1, micros.div_euclid(1_000_000));
                push_number(out, 2, if of == Of::Time { 0 } else { micros.rem_euclid(1_000_000) * 1000 });
            }
        }),
        Of::Duration => {
            push_message(out, field, |out| push_number(out, 1, duration::read(text(value)).unwrap_or_default()));
        }
        Of::Quantity => push_message(out, field, |out| {
            let text = if value.is_string() { text(value) } else { "0" };
            push_bytes(out, 1, text.as_bytes());
        }),
        Of::IntOrString => push_message(out, field, |out| {
            push_number(out, 1, value.is_string().into());
            push_number(out, 2, value.as_i64().unwrap_or_default());
            push_bytes(out, 3, text(value).as_bytes());
        }),
        Of::Json => push_message(out, field, |out| {
            if !value.is_null() {
                push_bytes(out, 1, &encode_sorted(value));
            }
        }),
        Of::Texts => push_message(out, field, |out| {
            for item in value.as_array().into_iter().flatten() {
                push_bytes(out, 1, text(item).as_bytes());
            }
        }),
        Of::Either(other, schema) => {
            push_message(out, field, |out| push_either(out, other, Plans::get().at(schema), value));
        }
        Of::Message(inner) | Of::Embedded(inner) => {
            push_message(out, field, |out| push(out, Plans::get().at(inner), value));
        }
    }
}

/// Appends the content of a `JSONSchemaPropsOr…` message: a schema or its alternative.
fn push_either(out: &mut Vec<u8>, other: Other, schema: &Plan, value: &Value) {
    let one = |out: &mut Vec<u8>, field| push_message(out, field, |out| push(out, schema, value));
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match other {
        Other::Schemas if value.is_object() => one(out, 1),
        Other::Schemas => list.iter().for_each(|item| push_message(out, 2, |out| push(out, schema, item))),
        Other::Bool => {
            push_number(out, 1, (value.is_object() || value.as_bool().unwrap_or_default()).into());
            if value.is_object() {
                one(out, 2);
            }
        }
        Other::Texts if value.is_object() => one(out, 1),
        Other::Texts => list.iter().for_each(|item| push_bytes(out, 2, text(item).as_bytes())),
    }
}
