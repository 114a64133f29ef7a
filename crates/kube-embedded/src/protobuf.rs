//! Protobuf bodies, as client-go's typed clients send them: read by what is known about their messages, and turned into
//! the JSON that everything else here works on.

mod messages;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Map, Number, Value};

use self::messages::{Message, Messages, Of, Repeats};
use crate::kinds::schema::{Field, Shape, Struct, Structs};

/// The media type of these bodies.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What every one of them begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may nest, which is deeper than any object may.
const DEEPEST: usize = 128;

/// Bytes that are no such message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable(&'static str);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

const CUT: Unreadable = Unreadable("unexpected EOF");
const MALFORMED: Unreadable = Unreadable("proto: illegal wireType");

/// Reads a body.
///
/// # Errors
///
/// What is no message, or a message of a kind that is not known.
pub(crate) fn read(body: &[u8]) -> Result<Value, Unreadable> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or(Unreadable("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"))?;
    let (mut api_version, mut kind, mut raw): (&[u8], &[u8], &[u8]) = Default::default();
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(types)) => {
                for field in Fields(types) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = text,
                        (2, Wire::Bytes(text)) => kind = text,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let (api_version, kind) = (String::from_utf8_lossy(api_version), String::from_utf8_lossy(kind));
    let message = Messages::get().of_kind(&api_version, &kind).ok_or(Unreadable("no message of that kind is known"))?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let of = Structs::get().of_kind(&format!("{group}/{version}/{kind}"));
    let mut object = Map::new();
    fill(&mut object, message, raw, of, 0)?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// Reads the fields of a message into an object, which is of a struct if that is known.
fn fill(
    object: &mut Map<String, Value>,
    message: &Message,
    bytes: &[u8],
    of: Option<&'static Struct>,
    depth: usize,
) -> Result<(), Unreadable> {
    if depth > DEEPEST {
        return Err(Unreadable("exceeded max depth"));
    }
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let Some(known) = message.field(number) else { continue };
        let json_name = json_name(of, known.name);
        let field = of.and_then(|of| of.field(json_name.as_deref().unwrap_or(known.name))).map(|(_, field)| field);
        // Go embeds some structs whose fields stand in JSON among those around them.
        if let (Some(of), None, Of::Message(inner), Repeats::Once, Wire::Bytes(bytes)) =
            (of, field, known.of, known.repeats, wire)
        {
            fill(object, Messages::get().at(inner), bytes, Some(of), depth + 1)?;
            continue;
        }
        let name = json_name.unwrap_or_else(|| known.name.to_owned());
        match known.repeats {
            Repeats::Once => {
                object.insert(name, value(known.of, wire, field, depth)?);
            }
            Repeats::List => {
                let value = value(known.of, wire, field, depth)?;
                match object.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                    Value::Array(list) => list.push(value),
                    _ => return Err(MALFORMED),
                }
            }
            Repeats::Map => {
                let Wire::Bytes(entry) = wire else { return Err(MALFORMED) };
                let (key, value) = entry_of(known.of, entry, field, depth)?;
                match object.entry(name).or_insert_with(|| Value::Object(Map::new())) {
                    Value::Object(map) => map.insert(key, value),
                    _ => return Err(MALFORMED),
                };
            }
        }
    }
    Ok(())
}

/// The name in JSON, where it is not the message's.
fn json_name(of: Option<&'static Struct>, name: &str) -> Option<String> {
    let of = of?;
    if of.field(name).is_some() {
        return None;
    }
    if let Some(field) = of.fields().iter().find(|field| field.name.eq_ignore_ascii_case(name)) {
        return Some(field.name.to_owned());
    }
    let mut kebab = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(character.to_ascii_lowercase());
    }
    [format!("${name}"), kebab].into_iter().find(|candidate| of.field(candidate).is_some())
}

fn entry_of(of: Of, bytes: &[u8], field: Option<&Field>, depth: usize) -> Result<(String, Value), Unreadable> {
    let mut key = String::new();
    let mut found = match of {
        Of::Text | Of::Bytes => Value::from(""),
        Of::Whole => 0.into(),
        Of::Bool => false.into(),
        Of::Float => Value::from(0.0),
        Of::Message(_) => value(of, Wire::Bytes(&[]), field, depth)?,
    };
    for part in Fields(bytes) {
        match part? {
            (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
            (2, wire) => found = value(of, wire, field, depth)?,
            _ => {}
        }
    }
    Ok((key, found))
}

fn value(of: Of, wire: Wire<'_>, field: Option<&Field>, depth: usize) -> Result<Value, Unreadable> {
    Ok(match (of, wire) {
        (Of::Whole, Wire::Number(number)) => Value::from(number.cast_signed()),
        (Of::Bool, Wire::Number(number)) => Value::from(number != 0),
        (Of::Float, Wire::Fixed(bits)) => Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number),
        (Of::Text, Wire::Bytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        (Of::Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Of::Message(inner), Wire::Bytes(bytes)) => {
            let inner = Messages::get().at(inner);
            match special(inner, bytes, field, depth)? {
                Some(value) => value,
                None => {
                    let of = field.and_then(|field| match field.shape {
                        Shape::Map(leaf) | Shape::MapOfLists(leaf) => Shape::One(leaf).structure(),
                        shape => shape.structure(),
                    });
                    let mut object = Map::new();
                    fill(&mut object, inner, bytes, of, depth + 1)?;
                    Value::Object(object)
                }
            }
        }
        _ => return Err(MALFORMED),
    })
}

/// Messages that JSON writes in a form of its own.
fn special(message: &Message, bytes: &[u8], field: Option<&Field>, depth: usize) -> Result<Option<Value>, Unreadable> {
    let name = message.name.rsplit('.').next().unwrap_or_default();
    let parts = || Fields(bytes).collect::<Result<Vec<_>, _>>();
    let number = |parts: &[(u32, Wire<'_>)], wanted: u32| {
        parts.iter().rev().find_map(|(at, wire)| match wire {
            Wire::Number(number) if *at == wanted => Some(number.cast_signed()),
            _ => None,
        })
    };
    Ok(Some(match name {
        "Time" | "MicroTime" => {
            let parts = parts()?;
            match number(&parts, 1) {
                None => Value::Null,
                Some(seconds) => {
                    let nanos = i32::try_from(number(&parts, 2).unwrap_or(0)).unwrap_or(0);
                    let nanos = if name == "Time" { 0 } else { nanos / 1000 * 1000 };
                    let time = Timestamp::new(seconds, nanos).map_err(|_| Unreadable("a time out of range"))?;
                    let precision = (name == "MicroTime").then_some(6);
                    DateTimePrinter::new().precision(precision).timestamp_to_string(&time).into()
                }
            }
        }
        "Duration" => go_duration(number(&parts()?, 1).unwrap_or(0)).into(),
        "Quantity" => match parts()?.into_iter().find(|(at, _)| *at == 1) {
            Some((_, Wire::Bytes(text))) => String::from_utf8_lossy(text).into(),
            _ => "0".into(),
        },
        "IntOrString" => {
            let parts = parts()?;
            let text = parts.iter().find_map(|(at, wire)| match wire {
                Wire::Bytes(text) if *at == 3 => Some(String::from_utf8_lossy(text).into_owned()),
                _ => None,
            });
            match number(&parts, 1) {
                Some(1) => text.unwrap_or_default().into(),
                _ => number(&parts, 2).unwrap_or(0).into(),
            }
        }
        "RawExtension" | "FieldsV1" | "JSON" => match parts()?.into_iter().find(|(at, _)| *at == 1) {
            Some((_, Wire::Bytes(json))) => serde_json::from_slice(json).map_err(|_| Unreadable("no JSON within"))?,
            _ => Value::Null,
        },
        "ExtraValue" | "Verbs" => {
            let mut object = Map::new();
            fill(&mut object, message, bytes, None, depth + 1)?;
            object.remove("items").unwrap_or_else(|| Value::Array(Vec::new()))
        }
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            either(message, bytes, field, depth)?
        }
        _ => return Ok(None),
    }))
}

/// A schema, or the other thing that may stand in its place.
fn either(message: &Message, bytes: &[u8], field: Option<&Field>, depth: usize) -> Result<Value, Unreadable> {
    use crate::kinds::schema::Leaf;
    let schema = match field.map(|field| field.shape) {
        Some(
            Shape::One(Leaf::StructOrList(id) | Leaf::StructOrBool(id) | Leaf::StructOrStrings(id))
            | Shape::Map(Leaf::StructOrList(id) | Leaf::StructOrBool(id) | Leaf::StructOrStrings(id)),
        ) => Some(id.resolve()),
        _ => None,
    };
    let mut found = Value::Null;
    for part in Fields(bytes) {
        let (number, wire) = part?;
        let Some(known) = message.field(number) else { continue };
        match (known.of, wire) {
            (Of::Bool, Wire::Number(allows)) if found.is_null() => found = (allows != 0).into(),
            (Of::Text, Wire::Bytes(text)) => push(&mut found, String::from_utf8_lossy(text).into()),
            (Of::Message(inner), Wire::Bytes(bytes)) => {
                let mut object = Map::new();
                fill(&mut object, Messages::get().at(inner), bytes, schema, depth + 1)?;
                match known.repeats {
                    Repeats::List => push(&mut found, object.into()),
                    Repeats::Once | Repeats::Map => found = object.into(),
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

/// Nanoseconds as Go prints them: `1m30s`, `1.5s`, `100ms`.
fn go_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let all = nanos.unsigned_abs();
    let fraction = |whole: u64, rest: u64, width: usize| match rest {
        0 => whole.to_string(),
        rest => format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0')),
    };
    let text = match all {
        0 => "0s".to_owned(),
        1..1_000 => format!("{all}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(all / 1_000, all % 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(all / 1_000_000, all % 1_000_000, 6)),
        _ => {
            let (seconds, rest) = (all / 1_000_000_000, all % 1_000_000_000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let seconds = fraction(seconds % 60, rest, 9);
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// One value on the wire.
#[derive(Debug, Clone, Copy)]
enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    Fixed(u64),
}

/// The fields of a message, one after another.
struct Fields<'b>(&'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u32, Wire<'b>), Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Result<(u32, Wire<'b>), Unreadable> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Fixed(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| CUT)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| CUT)?).into()),
            _ => return Err(MALFORMED),
        };
        Ok((u32::try_from(tag >> 3).map_err(|_| MALFORMED)?, wire))
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Unreadable> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(CUT)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Unreadable("proto: integer overflow"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_gos() {
        for (nanos, told) in [
            (0, "0s"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (100_000_000, "100ms"),
            (1_500, "1.5µs"),
            (-1_000_000_000, "-1s"),
        ] {
            assert_eq!(go_duration(nanos), told);
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(read(b"{}").is_err());
        assert!(read(b"k8s\0\x0a\xff").is_err());
        assert!(read(b"k8s\0").is_err());
    }

    /// What a real server answered for objects of every kind: `{"json", "protobuf"}`.
    #[test]
    fn every_kind_reads_as_its_json() {
        let registry = crate::kinds::Registry::new();
        for line in include_str!("protobuf/recorded.jsonl").lines() {
            let recorded: Value = serde_json::from_str(line).unwrap();
            let mut expected = recorded["json"].clone();
            let bytes = STANDARD.decode(recorded["protobuf"].as_str().unwrap()).unwrap();
            let mut object = read(&bytes).unwrap();
            let said = |part: &str| expected[part].as_str().unwrap().to_owned();
            let (api_version, kind) = (said("apiVersion"), said("kind"));
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let kind = registry.by_kind(group, version, &kind).unwrap();
            for each in [&mut expected, &mut object] {
                assert!(crate::kinds::prune(&kind, each).unwrap().is_empty(), "{each}");
            }
            assert_eq!(object, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..2000_usize, byte: u8, cut in 0..3000_usize) {
            let line = include_str!("protobuf/recorded.jsonl").lines().next().unwrap();
            let recorded: Value = serde_json::from_str(line).unwrap();
            let mut bytes = STANDARD.decode(recorded["protobuf"].as_str().unwrap()).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(cut.max(4));
            drop(read(&bytes));
        }
    }

    #[test]
    fn kinds_find_their_messages() {
        assert!(Messages::get().of_kind("v1", "Pod").is_some());
        assert!(Messages::get().of_kind("rbac.authorization.k8s.io/v1", "ClusterRole").is_some());
        assert!(Messages::get().of_kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").is_some());
    }
}
