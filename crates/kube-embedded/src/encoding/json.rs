//! Canonical JSON: the same bytes that kube-apiserver sends.
//!
//! Built-in kinds are written in the field order of their Go structs, maps and custom resources
//! with sorted keys, strings and numbers as Go's encoder writes them.

use std::io::Write as _;
use std::ops::Range;

use serde_json::{Number, Value};

use super::escape::push_string;
use crate::kinds::schema::{Field, Leaf, Shape, Struct, Structs};
use crate::kinds::{Kind, Schema};

/// JSON encoding of an object with an empty resourceVersion.
///
/// The version is known only when the write is committed, so it is inserted at `version_at` when
/// the object is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    bytes: Box<[u8]>,
    version_at: usize,
    metadata: Range<usize>,
    type_prefix: usize,
}

impl Encoded {
    /// The bytes before the resourceVersion value, up to and including its opening quote.
    pub(crate) fn head(&self) -> &[u8] {
        &self.bytes[..self.version_at]
    }

    /// The bytes after the resourceVersion value, starting with its closing quote.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.bytes[self.version_at..]
    }

    /// The byte range of the metadata object in the concatenation of head and tail, that is, with
    /// an empty resourceVersion.
    pub(crate) fn metadata(&self) -> Range<usize> {
        self.metadata.clone()
    }

    /// Length of the prefix `{"kind":…,"apiVersion":…,` of the head, which items of built-in lists
    /// omit. 0 for custom resources.
    pub(crate) fn type_prefix(&self) -> usize {
        self.type_prefix
    }

    /// The complete object with this resourceVersion.
    pub(crate) fn at_version(&self, version: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + version.len());
        bytes.extend_from_slice(self.head());
        bytes.extend_from_slice(version.as_bytes());
        bytes.extend_from_slice(self.tail());
        bytes
    }
}

/// Encodes an object of a kind. apiVersion and kind are taken from `kind`, and the resourceVersion
/// is left empty, whatever the value contains.
pub(crate) fn encode(kind: &Kind, object: &Value) -> Encoded {
    let mut writer = Writer::new();
    let (metadata, version_at, type_prefix) = writer.object(kind, object, Version::Gap);
    Encoded { bytes: writer.out.into_boxed_slice(), version_at, metadata, type_prefix }
}

/// Encodes an object of a kind with the resourceVersion it has, or without one.
pub(crate) fn encode_as_is(kind: &Kind, object: &Value) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(kind, object, Version::AsIs);
    writer.out
}

/// Encodes metadata in the field order of built-in kinds, as in a `PartialObjectMetadata` of any
/// kind.
pub(crate) fn encode_metadata(metadata: &Value) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.structure(Structs::object_meta(), metadata);
    writer.out
}

/// Encodes a list of values of one Go struct.
pub(crate) fn encode_list(of: &'static Struct, list: &[Value]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.out.push(b'[');
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            writer.out.push(b',');
        }
        writer.structure(of, item);
    }
    writer.out.push(b']');
    writer.out
}

/// Encodes an object with its keys in the given order.
pub(crate) fn encode_ordered(members: &[(&str, &Value)]) -> String {
    let mut writer = Writer::new();
    writer.out.push(b'{');
    for (at, (key, value)) in members.iter().enumerate() {
        if at > 0 {
            writer.out.push(b',');
        }
        writer.member(None, key, value);
    }
    writer.out.push(b'}');
    String::from_utf8_lossy(&writer.out).into_owned()
}

/// Encodes a value of a shape.
pub(crate) fn encode_shaped(shape: Shape, value: &Value) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.shaped(shape, value);
    writer.out
}

/// Encodes any value with sorted keys.
pub(crate) fn encode_sorted(value: &Value) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.sorted(value);
    writer.out
}

#[derive(Clone, Copy)]
enum Version {
    Gap,
    AsIs,
}

/// A member of an object, to be sorted before writing: field position, key, value. `None` is the
/// empty resourceVersion, or a type field of a custom resource.
type Member<'v> = (u16, &'v str, Option<&'v Value>);

struct Writer<'v> {
    out: Vec<u8>,
    /// Stack of the members of all objects being written, innermost last. Shared, to allocate once
    /// per document instead of once per object.
    members: Vec<Member<'v>>,
}

impl<'v> Writer<'v> {
    fn new() -> Self {
        Writer { out: Vec::with_capacity(4096), members: Vec::with_capacity(64) }
    }

    /// Writes a complete object. Returns the byte range of its metadata, the offset of its
    /// resourceVersion and the length of its type prefix.
    fn object(&mut self, kind: &'v Kind, object: &'v Value, version: Version) -> (Range<usize>, usize, usize) {
        const TYPE: [&str; 3] = ["kind", "apiVersion", "metadata"];
        let rest = object.as_object().into_iter().flatten().filter(|(key, _)| !TYPE.contains(&key.as_str()));
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        self.out.push(b'{');
        match kind.schema {
            Schema::Typed(of) => {
                self.text_member("kind", &kind.kind);
                self.out.push(b',');
                self.text_member("apiVersion", kind.api_version());
                self.out.push(b',');
                let type_prefix = self.out.len();
                let (range, version_at) = self.metadata(kind, metadata, version);
                let start = self.members.len();
                self.members.extend(rest.map(|(key, value)| (place(of, key), key.as_str(), Some(value))));
                self.members[start..].sort_unstable_by_key(|&(at, key, _)| (at, key));
                for at in start..self.members.len() {
                    let (place, key, value) = self.members[at];
                    self.out.push(b',');
                    self.member(of.fields().get(usize::from(place)), key, value.unwrap_or(&Value::Null));
                }
                self.members.truncate(start);
                self.out.push(b'}');
                (range, version_at, type_prefix)
            }
            Schema::Custom => {
                let (mut range, mut version_at) = (0..0, 0);
                let start = self.members.len();
                self.members.extend(rest.map(|(key, value)| (0, key.as_str(), Some(value))));
                self.members.extend(TYPE.map(|key| (0, key, None)));
                self.members[start..].sort_unstable_by_key(|&(_, key, _)| key);
                for at in start..self.members.len() {
                    if at > start {
                        self.out.push(b',');
                    }
                    match self.members[at] {
                        (_, "kind", None) => self.text_member("kind", &kind.kind),
                        (_, "apiVersion", None) => self.text_member("apiVersion", kind.api_version()),
                        (_, _, None) => (range, version_at) = self.metadata(kind, metadata, version),
                        (_, key, Some(value)) => self.member(None, key, value),
                    }
                }
                self.members.truncate(start);
                self.out.push(b'}');
                (range, version_at, 0)
            }
        }
    }

    fn text_member(&mut self, key: &str, text: &str) {
        self.key(key);
        push_string(&mut self.out, text);
    }

    fn metadata(&mut self, kind: &Kind, metadata: &'v Value, version: Version) -> (Range<usize>, usize) {
        const VERSION: &str = "resourceVersion";
        let meta = Structs::object_meta();
        let typed = matches!(kind.schema, Schema::Typed(_));
        let place = |key: &str| if typed { place(meta, key) } else { 0 };
        self.key("metadata");
        let begin = self.out.len();
        let mut version_at = begin;
        let start = self.members.len();
        let gap = matches!(version, Version::Gap);
        let members = metadata.as_object().into_iter().flatten();
        let members = members.filter(|(key, _)| !(gap && key.as_str() == VERSION));
        self.members.extend(members.map(|(key, value)| (place(key), key.as_str(), Some(value))));
        if gap {
            self.members.push((place(VERSION), VERSION, None));
        }
        self.members[start..].sort_unstable_by_key(|&(at, key, _)| (at, key));
        self.out.push(b'{');
        for at in start..self.members.len() {
            if at > start {
                self.out.push(b',');
            }
            match self.members[at] {
                (_, key, None) => {
                    self.key(key);
                    self.out.extend_from_slice(b"\"\"");
                    version_at = self.out.len() - 1;
                }
                (place, key, Some(value)) => {
                    let field = if typed { meta.fields().get(usize::from(place)) } else { None };
                    self.member(field, key, value);
                }
            }
        }
        self.members.truncate(start);
        self.out.push(b'}');
        (begin..self.out.len(), version_at)
    }

    fn structure(&mut self, of: &'static Struct, value: &'v Value) {
        let Value::Object(map) = value else { return self.sorted(value) };
        let start = self.members.len();
        self.members.extend(map.iter().map(|(key, value)| (place(of, key), key.as_str(), Some(value))));
        self.members[start..].sort_unstable_by_key(|&(at, key, _)| (at, key));
        self.out.push(b'{');
        for at in start..self.members.len() {
            if at > start {
                self.out.push(b',');
            }
            let (place, key, value) = self.members[at];
            self.member(of.fields().get(usize::from(place)), key, value.unwrap_or(&Value::Null));
        }
        self.members.truncate(start);
        self.out.push(b'}');
    }

    fn member(&mut self, field: Option<&Field>, key: &str, value: &'v Value) {
        match field {
            Some(field) => {
                self.key(key);
                self.shaped(field.shape, value);
            }
            None => {
                push_string(&mut self.out, key);
                self.out.push(b':');
                self.sorted(value);
            }
        }
    }

    /// Writes a key that needs no escaping.
    fn key(&mut self, key: &str) {
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn shaped(&mut self, shape: Shape, value: &'v Value) {
        match (shape, value) {
            (_, Value::String(text)) => push_string(&mut self.out, text),
            (Shape::One(Leaf::StructOrList(of)), Value::Array(_)) => self.shaped(Shape::List(Leaf::Struct(of)), value),
            (
                Shape::One(
                    Leaf::Struct(of) | Leaf::StructOrList(of) | Leaf::StructOrBool(of) | Leaf::StructOrStrings(of),
                ),
                Value::Object(_),
            ) => self.structure(of.resolve(), value),
            (Shape::List(_), Value::Array(items)) => {
                self.out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.shaped(shape.element(), item);
                }
                self.out.push(b']');
            }
            (Shape::Map(_) | Shape::MapOfLists(_), Value::Object(_)) => self.map(value, Some(shape.element())),
            _ => self.sorted(value),
        }
    }

    fn sorted(&mut self, value: &'v Value) {
        match value {
            Value::Null => self.out.extend_from_slice(b"null"),
            Value::Bool(true) => self.out.extend_from_slice(b"true"),
            Value::Bool(false) => self.out.extend_from_slice(b"false"),
            Value::Number(number) => write_number(&mut self.out, number),
            Value::String(text) => push_string(&mut self.out, text),
            Value::Array(items) => {
                self.out.push(b'[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.sorted(item);
                }
                self.out.push(b']');
            }
            Value::Object(_) => self.map(value, None),
        }
    }

    fn map(&mut self, value: &'v Value, element: Option<Shape>) {
        let start = self.members.len();
        self.members.extend(value.as_object().into_iter().flatten().map(|(key, value)| (0, key.as_str(), Some(value))));
        self.members[start..].sort_unstable_by_key(|&(_, key, _)| key);
        self.out.push(b'{');
        for at in start..self.members.len() {
            if at > start {
                self.out.push(b',');
            }
            let (_, key, value) = self.members[at];
            let value = value.unwrap_or(&Value::Null);
            push_string(&mut self.out, key);
            self.out.push(b':');
            match element {
                Some(shape) => self.shaped(shape, value),
                None => self.sorted(value),
            }
        }
        self.members.truncate(start);
        self.out.push(b'}');
    }
}

/// The position of a key in its struct. Unknown keys sort last.
fn place(of: &Struct, key: &str) -> u16 {
    of.field(key).map_or(u16::MAX, |(at, _)| at)
}

/// Writes a number as Go does: integers without a decimal point, very large and very small numbers
/// with an exponent.
fn write_number(out: &mut Vec<u8>, number: &Number) {
    const TO_MEMORY: &str = "writing to memory does not fail";
    if let Some(whole) = number.as_i64() {
        return write!(out, "{whole}").expect(TO_MEMORY);
    }
    if let Some(whole) = number.as_u64() {
        return write!(out, "{whole}").expect(TO_MEMORY);
    }
    let float = number.as_f64().unwrap_or_default();
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => write!(out, "{digits}e+{exponent}"),
            _ => write!(out, "{text}"),
        }
        .expect(TO_MEMORY);
    } else {
        write!(out, "{float}").expect(TO_MEMORY);
    }
}

#[cfg(test)]
mod tests;
