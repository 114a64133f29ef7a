//! A JSON parser that reports duplicate and unknown fields; the last value of a field wins.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::go_error;

/// How many fields are reported.
const MAX_REPORTED: usize = 100;

/// Parses JSON. The second result reports the duplicate fields.
///
/// # Errors
///
/// The error message of Go's JSON decoder.
pub(crate) fn parse(json: &[u8]) -> Result<(Value, Vec<String>), String> {
    let mut fields = Fields::default();
    let parsed = fields.read(json);
    parsed.map(|value| (value, fields.reported)).map_err(|error| go_error::explain(json, &error))
}

/// Reports the unknown and the duplicate fields of a document, in its order. `unknown` are the
/// paths of fields that the object's type does not have; nothing inside them is reported.
pub(super) fn report(json: &[u8], unknown: &[String]) -> Vec<String> {
    let mut fields = Fields { unknown: unknown.iter().map(String::as_str).collect(), ..Fields::default() };
    // The document has been parsed before, so this does not fail.
    drop(fields.read(json));
    fields.reported
}

#[derive(Default)]
struct Fields<'u> {
    path: String,
    unknown: HashSet<&'u str>,
    /// Whether the path is inside of an unknown field.
    is_unknown: bool,
    reported: Vec<String>,
}

impl Fields<'_> {
    fn read(&mut self, json: &[u8]) -> serde_json::Result<Value> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let value = Node(self).deserialize(&mut deserializer)?;
        deserializer.end().map(|()| value)
    }

    /// Reads the value of a field, which is reported if it is unknown or a duplicate.
    fn field<T>(&mut self, is_duplicate: bool, read: impl FnOnce(&mut Self) -> T) -> T {
        let was_unknown = self.is_unknown;
        if !was_unknown && self.unknown.contains(self.path.as_str()) {
            self.is_unknown = true;
            self.report("unknown");
        } else if !was_unknown && is_duplicate {
            self.report("duplicate");
        }
        let value = read(self);
        self.is_unknown = was_unknown;
        value
    }

    fn report(&mut self, what: &str) {
        let message = format!("{what} field \"{}\"", self.path);
        if self.reported.len() < MAX_REPORTED && !self.reported.contains(&message) {
            self.reported.push(message);
        }
    }

    /// Reads one value with the path extended by a step.
    fn within<T>(&mut self, step: impl FnOnce(&mut String), read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        step(&mut self.path);
        let value = read(self);
        self.path.truncate(length);
        value
    }
}

struct Node<'f, 'u>(&'f mut Fields<'u>);

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let at = list.len();
            let item = self
                .0
                .within(|path| path.push_str(&format!("[{at}]")), |fields| items.next_element_seed(Node(fields)))?;
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = self.0.within(
                |path| {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&key);
                },
                |fields| fields.field(map.contains_key(&key), |fields| entries.next_value_seed(Node(fields))),
            );
            map.insert(key, value?);
        }
        Ok(Value::Object(map))
    }
}
