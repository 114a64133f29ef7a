//! A JSON parser that reports duplicate fields; the last value of a field wins.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::go_error;

/// Parses JSON. The second result is the list of paths of duplicate fields.
///
/// # Errors
///
/// The error message of Go's JSON decoder.
pub(crate) fn parse(json: &[u8]) -> Result<(Value, Vec<String>), String> {
    let mut found = FoundDuplicates::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let parsed = Node(&mut found).deserialize(&mut deserializer);
    let parsed = parsed.and_then(|value| deserializer.end().map(|()| value));
    parsed.map(|value| (value, found.duplicates)).map_err(|error| go_error::explain(json, &error))
}

#[derive(Default)]
struct FoundDuplicates {
    path: String,
    duplicates: Vec<String>,
}

impl FoundDuplicates {
    /// Reads one value with the path extended by a step.
    fn within<T>(&mut self, step: impl FnOnce(&mut String), read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        step(&mut self.path);
        let value = read(self);
        self.path.truncate(length);
        value
    }
}

struct Node<'f>(&'f mut FoundDuplicates);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
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
                .within(|path| path.push_str(&format!("[{at}]")), |found| items.next_element_seed(Node(found)))?;
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
                |found| {
                    if map.contains_key(&key) && !found.duplicates.contains(&found.path) {
                        let path = found.path.clone();
                        found.duplicates.push(path);
                    }
                    entries.next_value_seed(Node(found))
                },
            );
            map.insert(key, value?);
        }
        Ok(Value::Object(map))
    }
}
