//! Emulates decoding into a Go struct and encoding again: drops unknown fields, rejects wrong
//! types, omits or writes empty values as the struct specifies.

use std::fmt;

use base64::Engine as _;
use serde_json::{Map, Value};

use super::quantity;
use super::schema::{Field, Leaf, Presence, Shape, Struct, Structs};
use super::{Kind, Schema};
use crate::encoding::value::type_name;

/// An unknown field of an object; displays as the server's warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownField(String);

impl UnknownField {
    pub(crate) fn path(&self) -> &str {
        &self.0
    }
}

/// A decoding error with the message of Go's decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecodeProblem(String);

/// Converts an object to the form in which its kind is stored. Returns the dropped fields.
///
/// # Errors
///
/// The first value with a wrong type.
pub(crate) fn prune(kind: &Kind, object: &mut Value) -> Result<Vec<UnknownField>, DecodeProblem> {
    let mut pruner = Pruner { unknown: Vec::new(), path: Vec::new() };
    match kind.schema {
        Schema::Typed(of) => {
            let Value::Object(map) = object else { return Err(not_a_struct(of, object)) };
            pruner.structure(of, map)?;
            map.insert("kind".to_owned(), Value::from(&*kind.kind));
            map.insert("apiVersion".to_owned(), Value::from(kind.api_version()));
        }
        Schema::Custom => {
            pruner.path.push(Step::Field("metadata"));
            let Some(metadata) = object.get_mut("metadata").filter(|metadata| !metadata.is_null()) else {
                return Ok(Vec::new());
            };
            let of = Structs::object_meta();
            let Value::Object(map) = metadata else {
                return Err(pruner.mismatch(&kind.kind, metadata, of.go_type()));
            };
            pruner.structure(of, map)?;
        }
    }
    Ok(pruner.unknown)
}

/// Converts a value of a struct to its stored form. Unknown fields are dropped silently.
///
/// # Errors
///
/// The first value with a wrong type.
pub(crate) fn prune_struct(of: &'static Struct, value: &mut Value) -> Result<(), DecodeProblem> {
    let Value::Object(map) = value else { return Err(not_a_struct(of, value)) };
    Pruner { unknown: Vec::new(), path: Vec::new() }.structure(of, map)
}

fn not_a_struct(of: &Struct, found: &Value) -> DecodeProblem {
    DecodeProblem(format!("json: cannot unmarshal {} into Go value of type {}", type_name(found), of.go_type()))
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field \"{}\"", self.0)
    }
}

impl fmt::Display for DecodeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

enum Step {
    Field(&'static str),
    Key(String),
    Index(usize),
}

struct Pruner {
    unknown: Vec<UnknownField>,
    path: Vec<Step>,
}

impl Pruner {
    fn structure(&mut self, of: &'static Struct, map: &mut Map<String, Value>) -> Result<(), DecodeProblem> {
        if map.keys().any(|key| of.field(key).is_none()) {
            let unknown: Vec<String> = map.keys().filter(|key| of.field(key).is_none()).cloned().collect();
            for key in unknown {
                map.remove(&key);
                self.path.push(Step::Key(key));
                self.unknown.push(UnknownField(self.full_path()));
                self.path.pop();
            }
        }
        for field in of.fields() {
            self.path.push(Step::Field(field.name));
            self.field(of, field, map)?;
            self.path.pop();
        }
        Ok(())
    }

    fn field(&mut self, of: &Struct, field: &Field, map: &mut Map<String, Value>) -> Result<(), DecodeProblem> {
        let Some(value) = map.get_mut(field.name).filter(|value| !value.is_null()) else {
            match field.zero() {
                Some(zero) => map.insert(field.name.to_owned(), zero),
                None => map.remove(field.name),
            };
            return Ok(());
        };
        self.shaped(of, field, field.shape, value)?;
        match field.presence {
            Presence::WhenNotZero if is_zero(field.shape, value) => {
                map.remove(field.name);
            }
            Presence::Always if is_empty(field.shape, value) => *value = Value::Null,
            Presence::WhenNotZero | Presence::Always | Presence::WhenSet | Presence::OrNull => {}
        }
        Ok(())
    }

    fn shaped(&mut self, of: &Struct, field: &Field, shape: Shape, value: &mut Value) -> Result<(), DecodeProblem> {
        match shape {
            Shape::One(leaf) => self.leaf(of, field, leaf, value),
            Shape::List(_) => {
                let Value::Array(items) = value else {
                    return Err(self.mismatch(of.name(), value, &field.go_type()));
                };
                for (at, item) in items.iter_mut().enumerate() {
                    self.path.push(Step::Index(at));
                    self.element(of, field, shape.element(), item)?;
                    self.path.pop();
                }
                Ok(())
            }
            Shape::Map(_) | Shape::MapOfLists(_) => {
                let Value::Object(map) = value else {
                    return Err(self.mismatch(of.name(), value, &field.go_type()));
                };
                for (key, item) in map.iter_mut() {
                    self.path.push(Step::Key(key.clone()));
                    self.element(of, field, shape.element(), item)?;
                    self.path.pop();
                }
                Ok(())
            }
        }
    }

    fn element(&mut self, of: &Struct, field: &Field, shape: Shape, item: &mut Value) -> Result<(), DecodeProblem> {
        if item.is_null() {
            if let Shape::One(leaf) = shape {
                *item = leaf.zero();
            }
            return Ok(());
        }
        self.shaped(of, field, shape, item)
    }

    fn leaf(&mut self, of: &Struct, field: &Field, leaf: Leaf, value: &mut Value) -> Result<(), DecodeProblem> {
        match (leaf, &mut *value) {
            (Leaf::Any, _) | (Leaf::Bool | Leaf::StructOrBool(_), Value::Bool(_)) => Ok(()),
            (Leaf::String | Leaf::Duration | Leaf::IntOrString, Value::String(_)) => Ok(()),
            (Leaf::Float, Value::Number(_)) => Ok(()),
            (Leaf::Int32 | Leaf::IntOrString, Value::Number(number)) => match number.as_i64() {
                Some(whole) if i32::try_from(whole).is_ok() => Ok(()),
                _ => Err(self.mismatch(of.name(), value, &self.leaf_type(field, leaf))),
            },
            (Leaf::Int64, Value::Number(number)) if number.as_i64().is_some() => Ok(()),
            (Leaf::Bytes, Value::String(text)) => {
                // Go's decoder ignores line breaks, and its encoder writes none.
                text.retain(|c| !matches!(c, '\n' | '\r'));
                let decoded = base64::engine::general_purpose::STANDARD.decode(text.as_bytes());
                decoded.map(drop).map_err(|error| DecodeProblem(illegal_base64(text, &error)))
            }
            (Leaf::Time | Leaf::MicroTime, Value::String(text)) => {
                let problem = || {
                    let layout = match leaf {
                        Leaf::MicroTime => "2006-01-02T15:04:05.000000Z07:00",
                        _ => "2006-01-02T15:04:05Z07:00",
                    };
                    DecodeProblem(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
                };
                *text = canonical_time(leaf, text).ok_or_else(problem)?;
                Ok(())
            }
            (Leaf::Quantity, Value::String(_) | Value::Number(_)) => {
                let canonical = match &*value {
                    Value::String(text) => quantity::canonical(text.trim()),
                    other => quantity::canonical(&other.to_string()),
                };
                *value = Value::from(canonical.ok_or_else(|| DecodeProblem(quantity::NOT_A_QUANTITY.to_owned()))?);
                Ok(())
            }
            (Leaf::Quantity, _) => Err(DecodeProblem(quantity::NOT_A_QUANTITY.to_owned())),
            (Leaf::StructOrList(id), Value::Array(_)) => self.shaped(of, field, Shape::List(Leaf::Struct(id)), value),
            (Leaf::StructOrStrings(_), Value::Array(_)) => self.shaped(of, field, Shape::List(Leaf::String), value),
            (
                Leaf::Struct(id) | Leaf::StructOrList(id) | Leaf::StructOrBool(id) | Leaf::StructOrStrings(id),
                Value::Object(map),
            ) => self.structure(id.resolve(), map),
            _ => Err(self.mismatch(of.name(), value, &self.leaf_type(field, leaf))),
        }
    }

    fn leaf_type(&self, field: &Field, leaf: Leaf) -> String {
        match leaf {
            // These types have custom decoders, which report the last type they tried.
            Leaf::Time | Leaf::MicroTime | Leaf::Duration => return "string".to_owned(),
            Leaf::IntOrString => return "int32".to_owned(),
            _ => {}
        }
        match field.shape {
            Shape::One(own) if own == leaf => field.go_type(),
            _ => field.element_go_type(),
        }
    }

    fn mismatch(&self, of: &str, found: &Value, go_type: &str) -> DecodeProblem {
        // Go includes the number only if it expected an integer.
        let found = match found {
            Value::Number(number) if go_type.starts_with("int") => format!("number {number}"),
            other => type_name(other).to_owned(),
        };
        let fields: Vec<&str> = self
            .path
            .iter()
            .filter_map(|step| match step {
                Step::Field(name) => Some(*name),
                Step::Key(_) | Step::Index(_) => None,
            })
            .collect();
        let path = fields.join(".");
        DecodeProblem(format!("json: cannot unmarshal {found} into Go struct field {of}.{path} of type {go_type}"))
    }

    fn full_path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Index(at) => path.push_str(&format!("[{at}]")),
                Step::Field(name) => join(&mut path, name),
                Step::Key(name) => join(&mut path, name),
            }
        }
        path
    }
}

fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// A time in the server's format.
fn canonical_time(leaf: Leaf, text: &str) -> Option<String> {
    let time: jiff::Timestamp = text.parse().ok().filter(|_| text.len() >= 20 && text.as_bytes()[10] == b'T')?;
    Some(if leaf == Leaf::MicroTime { format!("{time:.6}") } else { format!("{:.0}", truncate(time)) })
}

/// Truncates to whole seconds, like Go's layout without a fraction.
fn truncate(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn illegal_base64(text: &str, error: &base64::DecodeError) -> String {
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) => *at,
        base64::DecodeError::InvalidLastSymbol { .. }
        | base64::DecodeError::InvalidLength(_)
        | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    format!("illegal base64 data at input byte {at}")
}

fn is_zero(shape: Shape, value: &Value) -> bool {
    match shape {
        Shape::One(Leaf::Struct(id)) => *value == id.resolve().zero(),
        Shape::One(Leaf::Bytes) => value == "",
        Shape::One(leaf) => *value == leaf.zero(),
        Shape::List(_) | Shape::Map(_) | Shape::MapOfLists(_) => is_empty(shape, value),
    }
}

/// Empty lists and maps are stored as if they were absent.
fn is_empty(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::List(_), Value::Array(items)) => items.is_empty(),
        (Shape::Map(_) | Shape::MapOfLists(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
