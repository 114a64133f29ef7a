//! A serde deserializer for messages that yields what JSON would contain.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::MAX_DEPTH;
use super::envelope::Envelope;
use super::table::{Field, MessageType, Repeats, Table, Type};
use super::value::{Entries, FieldRun, List, SingleValue};
use super::wire::{Datum, Fields};
use crate::codec::Broken;
use crate::codec::name::Name;
use crate::codec::omit::Omit;

/// Why a message cannot be read. Contains none of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Broken(Broken),
    /// The fields are not in ascending order of their numbers; [`sort_fields`](super::sort_fields)
    /// sorts them.
    Disorder,
    /// The message does not fit the deserialized type, or the visitor has stopped early.
    Shape,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message that cannot be read")
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Shape
    }
}

impl From<Broken> for Fault {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Deserializer of a message. The visitor receives what JSON would contain: the same names, and
/// nothing that JSON omits.
///
/// Servers write fields in ascending order of their numbers, so the elements of a list or map are
/// adjacent and no other field is repeated. Any other order is a [`Fault::Disorder`].
pub(crate) struct Message<'de> {
    frame: Frame<'de>,
    /// The enclosing messages into which the current one is inlined in JSON.
    outer: Vec<Frame<'de>>,
    types: Types<'de>,
    next: NextValue<'de>,
    depth: u32,
    omit: Omit,
}

struct Frame<'de> {
    fields: Fields<'de>,
    of: &'static MessageType,
    last: u32,
    /// Bit set of the fields found so far.
    found: u64,
    /// Number of `of.nulls` already checked: fields that are null in JSON if absent.
    nulls: usize,
}

/// The types in the envelope that are still to be yielded; JSON has them as fields.
enum Types<'de> {
    ApiVersion(&'de str, &'de str),
    Kind(&'de str),
    Done,
}

/// The value of the name returned last.
enum NextValue<'de> {
    Text(&'de str),
    Null,
    Value(&'static Field, Datum<'de>),
}

impl<'de> Message<'de> {
    /// A deserializer of an object in its envelope.
    pub(crate) fn of_object(bytes: &'de [u8], omit: Omit) -> Result<Self, Fault> {
        let envelope = Envelope::open(bytes)?;
        let (api_version, kind) = envelope.texts()?;
        let of = Table::get().of_kind(api_version, kind).ok_or(Broken::Kind)?;
        let mut message = Self::new(of, envelope.raw, 0, omit)?;
        message.types = Types::ApiVersion(api_version, kind);
        Ok(message)
    }

    pub(super) fn new(of: &'static MessageType, bytes: &'de [u8], depth: u32, omit: Omit) -> Result<Self, Fault> {
        if depth > MAX_DEPTH {
            return Err(Broken::Deep.into());
        }
        let frame = Frame::new(of, bytes);
        Ok(Self { frame, outer: Vec::new(), types: Types::Done, next: NextValue::Null, depth, omit })
    }

    /// Advances to the next field that JSON contains, and returns its name.
    #[inline]
    fn advance(&mut self) -> Result<Option<&'de str>, Fault> {
        match self.types {
            Types::Done => {}
            Types::ApiVersion(api_version, kind) => {
                self.types = Types::Kind(kind);
                self.next = NextValue::Text(api_version);
                return Ok(Some("apiVersion"));
            }
            Types::Kind(kind) => {
                self.types = Types::Done;
                self.next = NextValue::Text(kind);
                return Ok(Some("kind"));
            }
        }
        loop {
            let Some((number, wire)) = self.frame.fields.next()? else {
                if let Some(field) = self.frame.next_null() {
                    self.next = NextValue::Null;
                    return Ok(Some(field.name));
                }
                match self.outer.pop() {
                    Some(outer) => self.frame = outer,
                    None => return Ok(None),
                }
                continue;
            };
            let frame = &mut self.frame;
            if number < frame.last {
                return Err(Fault::Disorder);
            }
            let Some((place, field)) = frame.of.field(number) else {
                frame.last = number;
                continue;
            };
            if number == frame.last {
                return Err(Fault::Disorder);
            }
            frame.last = number;
            frame.found |= 1 << place;
            if let Type::Inline(inner) = field.of {
                let Datum::Bytes(bytes) = wire else { return Err(Broken::Protobuf.into()) };
                let inner = Frame::new(Table::get().at(inner), bytes);
                self.outer.push(std::mem::replace(frame, inner));
                continue;
            }
            if self.omit.omits(field.name) {
                while frame.fields.next_if(number)?.is_some() {}
                continue;
            }
            if field.omit_zero && matches!(wire, Datum::Number(0) | Datum::Fixed(0) | Datum::Bytes([])) {
                continue;
            }
            self.next = NextValue::Value(field, wire);
            return Ok(Some(field.name));
        }
    }
}

impl<'de> Frame<'de> {
    fn new(of: &'static MessageType, bytes: &'de [u8]) -> Self {
        Self { fields: Fields::of(bytes), of, last: 0, found: 0, nulls: 0 }
    }

    fn next_null(&mut self) -> Option<&'static Field> {
        loop {
            let place = *self.of.nulls.get(self.nulls)?;
            self.nulls += 1;
            if self.found & (1 << place) == 0 {
                return Some(self.of.at(place));
            }
        }
    }
}

impl<'de> MapAccess<'de> for Message<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        match self.advance()? {
            Some(name) => seed.deserialize(Name::new(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let depth = self.depth;
        let (field, wire) = match std::mem::replace(&mut self.next, NextValue::Null) {
            NextValue::Text(text) => return seed.deserialize(SingleValue::text(text)),
            NextValue::Null => return seed.deserialize(SingleValue::new(Type::Null, Datum::Bytes(&[]), depth)),
            NextValue::Value(field, wire) => (field, wire),
        };
        if field.repeats == Repeats::Once {
            let omit = self.omit.within(field.name);
            return seed.deserialize(SingleValue { of: field.of, wire, depth, omit });
        }
        let mut run = FieldRun { fields: &mut self.frame.fields, number: field.number, next: Some(wire) };
        let value = match field.repeats {
            Repeats::Map => seed.deserialize(Entries { run: &mut run, of: field.of, depth, value: None })?,
            Repeats::List | Repeats::Once => seed.deserialize(List { run: &mut run, of: field.of, depth })?,
        };
        run.skip()?;
        Ok(value)
    }
}

impl<'de> Deserializer<'de> for Message<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(MapAccessDeserializer::new(self))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}
