//! Decoding of messages that clients send into JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Map, Number, Value};

use super::plan::{Of, Other, Part, Plan, Plans, Repeats};
use super::wire::{Fields, Varints, Wire};
use super::{Unreadable, duration};
use crate::encoding::depth::{MAX_DEPTH, TOO_DEEP};

/// Decodes the fields of a message into an object.
pub(super) fn fill(object: &mut Map<String, Value>, plan: &Plan, bytes: &[u8], depth: usize) -> Result<(), Unreadable> {
    if depth > MAX_DEPTH {
        return Err(Unreadable(TOO_DEEP.into()));
    }
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let Some(part) = plan.part(number) else {
            match wire {
                Wire::Odd(odd) => return Err(Unreadable(format!("proto: illegal wireType {odd}").into())),
                _ => continue,
            }
        };
        let wrong = || wrong(part, wire);
        match (part.of, part.repeats, wire) {
            (Of::Embedded(inner), _, Wire::Bytes(bytes)) => fill(object, Plans::get().at(inner), bytes, depth + 1)?,
            // Repeated occurrences of a singular message field are merged.
            (Of::Message(inner), Repeats::Once, Wire::Bytes(bytes)) => {
                let within = object.entry(part.name).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(within) = within {
                    fill(within, Plans::get().at(inner), bytes, depth + 1)?;
                }
            }
            (_, Repeats::Once, wire) => {
                let value = value(part.of, wire, depth)?.ok_or_else(wrong)?;
                object.insert(part.name.to_owned(), value);
            }
            (_, Repeats::List, wire) => {
                let list = object.entry(part.name).or_insert_with(|| Value::Array(Vec::new()));
                let Value::Array(list) = list else { continue };
                match (part.of, wire) {
                    // Numbers may be packed.
                    (Of::Int32 | Of::Int64 | Of::Bool, Wire::Bytes(packed)) => {
                        for number in Varints(packed) {
                            list.extend(value(part.of, Wire::Number(number?), depth)?);
                        }
                    }
                    (of, wire) => list.push(value(of, wire, depth)?.ok_or_else(wrong)?),
                }
            }
            (_, Repeats::Map, Wire::Bytes(entry)) => {
                let (key, value) = entry_of(part, entry, depth)?;
                if let Value::Object(map) = object.entry(part.name).or_insert_with(|| Value::Object(Map::new())) {
                    map.insert(key, value);
                }
            }
            (_, Repeats::Map, _) => return Err(wrong()),
        }
    }
    Ok(())
}

/// The error for a field with an unexpected wire type. Uses Go's field name, which is almost the
/// JSON name.
fn wrong(part: &Part, wire: Wire<'_>) -> Unreadable {
    let name = match (part.name, part.name.split_at_checked(1)) {
        ("metadata", _) => "ObjectMeta".to_owned(),
        (_, Some((first, rest))) => format!("{}{rest}", first.to_ascii_uppercase()),
        (name, None) => name.to_owned(),
    };
    Unreadable(format!("proto: wrong wireType = {} for field {name}", wire.number()).into())
}

fn entry_of(part: &Part, bytes: &[u8], depth: usize) -> Result<(String, Value), Unreadable> {
    let mut key = String::new();
    let mut found = match part.of {
        Of::Text => Value::from(""),
        Of::Bytes => Value::Null,
        Of::Int32 | Of::Int64 => 0.into(),
        Of::Bool => false.into(),
        Of::Double => Value::from(0.0),
        of => value(of, Wire::Bytes(&[]), depth)?.unwrap_or_default(),
    };
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
            (2, wire) => found = value(part.of, wire, depth)?.ok_or_else(|| wrong(part, wire))?,
            _ => {}
        }
    }
    Ok((key, found))
}

/// Decodes one value. `None` if the wire type does not match.
fn value(of: Of, wire: Wire<'_>, depth: usize) -> Result<Option<Value>, Unreadable> {
    Ok(Some(match (of, wire) {
        // Go truncates to the low 32 bits.
        (Of::Int32, Wire::Number(number)) => i32::from_le_bytes(low_half(number)).into(),
        (Of::Int64, Wire::Number(number)) => number.cast_signed().into(),
        (Of::Bool, Wire::Number(number)) => (number != 0).into(),
        (Of::Double, Wire::Double(bits)) => Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number),
        (Of::Text, Wire::Bytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        (Of::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Of::Message(inner) | Of::Embedded(inner), Wire::Bytes(bytes)) => {
            let mut object = Map::new();
            fill(&mut object, Plans::get().at(inner), bytes, depth + 1)?;
            object.into()
        }
        (Of::Either(other, schema), Wire::Bytes(bytes)) => either(other, Plans::get().at(schema), bytes, depth)?,
        (Of::Texts, Wire::Bytes(bytes)) => {
            let texts = Fields(bytes).filter_map(|field| match field {
                Ok((1, Wire::Bytes(text))) => Some(Ok(Value::from(String::from_utf8_lossy(text)))),
                Ok(_) => None,
                Err(why) => Some(Err(why)),
            });
            Value::Array(texts.collect::<Result<_, _>>()?)
        }
        (Of::Json, Wire::Bytes(bytes)) => match Parts::read(bytes)?.bytes(1) {
            Some(json) => serde_json::from_slice(json).map_err(|_| Unreadable("no JSON within".into()))?,
            None => Value::Null,
        },
        // An empty message is the zero time, which is null in JSON. In a non-empty message missing
        // seconds are 0.
        (Of::Time | Of::MicroTime, Wire::Bytes([])) => Value::Null,
        (Of::Time | Of::MicroTime, Wire::Bytes(bytes)) => time(of, &Parts::read(bytes)?)?,
        (Of::Duration, Wire::Bytes(bytes)) => duration::format(Parts::read(bytes)?.number(1).unwrap_or(0)).into(),
        (Of::Quantity, Wire::Bytes(bytes)) => {
            Parts::read(bytes)?.bytes(1).map_or("0".into(), |text| String::from_utf8_lossy(text).into())
        }
        (Of::IntOrString, Wire::Bytes(bytes)) => {
            let parts = Parts::read(bytes)?;
            match parts.number(1) {
                Some(1) => String::from_utf8_lossy(parts.bytes(3).unwrap_or_default()).into(),
                _ => i32::from_le_bytes(low_half(parts.number(2).unwrap_or(0).cast_unsigned())).into(),
            }
        }
        _ => return Ok(None),
    }))
}

fn low_half(number: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = number.to_le_bytes();
    [a, b, c, d]
}

fn time(of: Of, parts: &Parts<'_>) -> Result<Value, Unreadable> {
    let seconds = parts.number(1).unwrap_or(0);
    let nanos = i32::try_from(parts.number(2).unwrap_or(0)).unwrap_or(0);
    let (nanos, precision) = if of == Of::Time { (0, None) } else { (nanos / 1000 * 1000, Some(6)) };
    let time = Timestamp::new(seconds, nanos).map_err(|_| Unreadable("a time out of range".into()))?;
    Ok(DateTimePrinter::new().precision(precision).timestamp_to_string(&time).into())
}

/// Decodes a `JSONSchemaPropsOr…` message: a schema or its alternative.
fn either(other: Other, schema: &Plan, bytes: &[u8], depth: usize) -> Result<Value, Unreadable> {
    let mut found = Value::Null;
    let one = |bytes: &[u8]| {
        let mut object = Map::new();
        fill(&mut object, schema, bytes, depth + 1)?;
        Ok(Value::Object(object))
    };
    for field in Fields(bytes) {
        match (other, field?) {
            (Other::Schemas | Other::Texts, (1, Wire::Bytes(bytes))) | (Other::Bool, (2, Wire::Bytes(bytes))) => {
                found = one(bytes)?;
            }
            (Other::Bool, (1, Wire::Number(allows))) if found.is_null() => found = (allows != 0).into(),
            (Other::Schemas, (2, Wire::Bytes(bytes))) => append(&mut found, one(bytes)?),
            (Other::Texts, (2, Wire::Bytes(text))) => append(&mut found, String::from_utf8_lossy(text).into()),
            _ => {}
        }
    }
    Ok(found)
}

fn append(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

/// The fields of a small message. The last occurrence of a field wins.
struct Parts<'b>(Vec<(u32, Wire<'b>)>);

impl<'b> Parts<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, Unreadable> {
        Fields(bytes).collect::<Result<_, _>>().map(Self)
    }

    fn number(&self, field: u32) -> Option<i64> {
        self.0.iter().rev().find_map(|(at, wire)| match wire {
            Wire::Number(number) if *at == field => Some(number.cast_signed()),
            _ => None,
        })
    }

    fn bytes(&self, field: u32) -> Option<&'b [u8]> {
        self.0.iter().rev().find_map(|(at, wire)| match wire {
            Wire::Bytes(bytes) if *at == field => Some(*bytes),
            _ => None,
        })
    }
}
