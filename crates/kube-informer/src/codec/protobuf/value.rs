//! A serde deserializer for field values that yields what JSON would contain.

use std::borrow::Cow;

use serde::de::value::{CowStrDeserializer, MapAccessDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::message::{Fault, Message};
use super::table::{Alternative, Table, Type};
use super::timestamp::{Moment, Precision, duration};
use super::wire::{Datum, Fields, bytes_of};
use super::{MAX_DEPTH, base64};
use crate::codec::Broken;
use crate::codec::name::Name;
use crate::codec::omit::Omit;

/// Deserializer of a single value.
#[derive(Clone, Copy)]
pub(super) struct SingleValue<'de> {
    pub(super) of: Type,
    pub(super) wire: Datum<'de>,
    pub(super) depth: u32,
    /// What a message leaves out.
    pub(super) omit: Omit,
}

impl<'de> SingleValue<'de> {
    pub(super) fn new(of: Type, wire: Datum<'de>, depth: u32) -> Self {
        Self { of, wire, depth, omit: Omit::Nothing }
    }

    pub(super) fn text(text: &'de str) -> Self {
        Self::new(Type::Text, Datum::Bytes(text.as_bytes()), 0)
    }

    /// The message of this type that is the value.
    fn message(&self, message: usize) -> Result<Message<'de>, Fault> {
        Message::new(Table::get().at(message), self.bytes()?, self.depth + 1, self.omit)
    }

    fn bytes(&self) -> Result<&'de [u8], Fault> {
        match self.wire {
            Datum::Bytes(bytes) => Ok(bytes),
            Datum::Number(_) | Datum::Fixed(_) => Err(Broken::Protobuf.into()),
        }
    }

    fn number(&self) -> Result<u64, Fault> {
        match self.wire {
            Datum::Number(number) => Ok(number),
            Datum::Bytes(_) | Datum::Fixed(_) => Err(Broken::Protobuf.into()),
        }
    }

    /// The embedded JSON.
    fn json(&self) -> Result<&'de [u8], Fault> {
        let json = bytes_of(self.bytes()?, 1)?.unwrap_or_default();
        Ok(if json.is_empty() { b"null" } else { json })
    }

    fn is_null(&self) -> Result<bool, Fault> {
        Ok(match self.of {
            Type::Null => true,
            Type::Time | Type::MicroTime => self.bytes()?.is_empty(),
            Type::Json => self.json()?.trim_ascii() == b"null",
            Type::Either(Alternative::List | Alternative::Texts, _) => self.bytes()?.is_empty(),
            _ => false,
        })
    }

    fn time<V: Visitor<'de>>(&self, visitor: V, precision: Precision) -> Result<V::Value, Fault> {
        let bytes = self.bytes()?;
        if bytes.is_empty() {
            return visitor.visit_unit();
        }
        let (mut fields, mut seconds, mut nanos) = (Fields::of(bytes), 0, 0);
        while let Some(field) = fields.next()? {
            match field {
                (1, Datum::Number(number)) => seconds = number.cast_signed(),
                (2, Datum::Number(number)) => nanos = i32::try_from(number).map_err(|_| Broken::Protobuf)?,
                _ => {}
            }
        }
        visitor.visit_str(Moment::of(seconds, nanos, precision).ok_or(Broken::Protobuf)?.as_str())
    }

    fn int_or_text<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Fault> {
        let (mut fields, mut kind, mut int, mut text) = (Fields::of(self.bytes()?), 0, 0, &b""[..]);
        while let Some(field) = fields.next()? {
            match field {
                (1, Datum::Number(number)) => kind = number,
                (2, Datum::Number(number)) => int = number,
                (3, Datum::Bytes(bytes)) => text = bytes,
                _ => {}
            }
        }
        if kind == 1 { visit_text(text, visitor) } else { visit_int(int, visitor) }
    }

    /// A message, or its alternative.
    fn either<V: Visitor<'de>>(&self, instead: Alternative, message: usize, visitor: V) -> Result<V::Value, Fault> {
        let bytes = self.bytes()?;
        let message_number = if instead == Alternative::Bool { 2 } else { 1 };
        let (mut fields, mut schema, mut allows, mut first) = (Fields::of(bytes), None, false, None);
        loop {
            let before = fields;
            match fields.next()? {
                Some((number, Datum::Bytes(bytes))) if number == message_number => schema = Some(bytes),
                Some((1, Datum::Number(number))) => allows = number != 0,
                Some((2, _)) => first = first.or(Some(before)),
                Some(_) => {}
                None => break,
            }
        }
        let depth = self.depth + 1;
        if let Some(mut fields) = first {
            if depth > MAX_DEPTH {
                return Err(Broken::Deep.into());
            }
            let of = if instead == Alternative::Texts { Type::Text } else { Type::Message(message) };
            return visitor.visit_seq(List {
                run: &mut FieldRun { fields: &mut fields, number: 2, next: None },
                of,
                depth,
            });
        }
        match (schema, instead) {
            (Some(bytes), _) => visitor.visit_map(Message::new(Table::get().at(message), bytes, depth, Omit::Nothing)?),
            (None, Alternative::Bool) => visitor.visit_bool(allows),
            (None, Alternative::List | Alternative::Texts) => visitor.visit_unit(),
        }
    }

    fn texts<V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Fault> {
        let mut fields = Fields::of(self.bytes()?);
        visitor.visit_seq(List {
            run: &mut FieldRun { fields: &mut fields, number: 1, next: None },
            of: Type::Text,
            depth: self.depth,
        })
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[inline]
fn visit_text<'de, V: Visitor<'de>>(bytes: &'de [u8], visitor: V) -> Result<V::Value, Fault> {
    match std::str::from_utf8(bytes) {
        Ok(text) => visitor.visit_borrowed_str(text),
        // Go replaces invalid UTF-8 in JSON in the same way.
        Err(_) => visitor.visit_string(text(bytes).into_owned()),
    }
}

fn visit_int<'de, V: Visitor<'de>>(number: u64, visitor: V) -> Result<V::Value, Fault> {
    match number.cast_signed() {
        negative @ ..0 => visitor.visit_i64(negative),
        _ => visitor.visit_u64(number),
    }
}

impl<'de> Deserializer<'de> for SingleValue<'de> {
    type Error = Fault;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.of {
            Type::Text => visit_text(self.bytes()?, visitor),
            Type::Message(message) | Type::Inline(message) => visitor.visit_map(self.message(message)?),
            Type::Int => visit_int(self.number()?, visitor),
            Type::Bool => visitor.visit_bool(self.number()? != 0),
            Type::Double => match self.wire {
                Datum::Fixed(bits) => visit_double(f64::from_bits(bits), visitor),
                Datum::Number(_) | Datum::Bytes(_) => Err(Broken::Protobuf.into()),
            },
            Type::Bytes => visitor.visit_string(base64::encode(self.bytes()?)),
            Type::Time => self.time(visitor, Precision::Seconds),
            Type::MicroTime => self.time(visitor, Precision::Micros),
            Type::Duration => {
                let (mut fields, mut nanos) = (Fields::of(self.bytes()?), 0);
                while let Some(field) = fields.next()? {
                    if let (1, Datum::Number(number)) = field {
                        nanos = number.cast_signed();
                    }
                }
                visitor.visit_string(duration(nanos))
            }
            Type::Quantity => visit_text(bytes_of(self.bytes()?, 1)?.unwrap_or(b"0"), visitor),
            Type::IntOrText => self.int_or_text(visitor),
            Type::Json => {
                // Validating UTF-8 once for the whole value is faster than for each string.
                let json = std::str::from_utf8(self.json()?).map_err(|_| Broken::Text)?;
                let mut json = serde_json::Deserializer::from_str(json);
                let value = json.deserialize_any(visitor).map_err(|_| Fault::Shape)?;
                json.end().map_err(|_| Fault::Shape)?;
                Ok(value)
            }
            Type::Texts => self.texts(visitor),
            Type::Either(instead, message) => self.either(instead, message, visitor),
            Type::Null => visitor.visit_unit(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.of {
            Type::Text => visitor.visit_enum(CowStrDeserializer::<Fault>::new(text(self.bytes()?))),
            Type::Message(message) => visitor.visit_enum(MapAccessDeserializer::new(self.message(message)?)),
            Type::Json => {
                let mut json = serde_json::Deserializer::from_slice(self.json()?);
                json.deserialize_enum(name, variants, visitor).map_err(|_| Fault::Shape)
            }
            _ => Err(Fault::invalid_type(Unexpected::Other("a value"), &visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

/// Visits a double as decoded from Go's JSON, where a whole number has no decimal point.
fn visit_double<'de, V: Visitor<'de>>(double: f64, visitor: V) -> Result<V::Value, Fault> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if double.fract() == 0.0 && double.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and smaller than 2^53")]
        let whole = double as i64;
        return visit_int(whole.cast_unsigned(), visitor);
    }
    visitor.visit_f64(double)
}

/// Adjacent fields with the same number.
pub(super) struct FieldRun<'r, 'de> {
    pub(super) fields: &'r mut Fields<'de>,
    pub(super) number: u32,
    pub(super) next: Option<Datum<'de>>,
}

impl<'de> FieldRun<'_, 'de> {
    #[inline]
    fn next(&mut self) -> Result<Option<Datum<'de>>, Fault> {
        match self.next.take() {
            Some(wire) => Ok(Some(wire)),
            None => Ok(self.fields.next_if(self.number)?),
        }
    }

    /// Skips the fields that the visitor has not read.
    pub(super) fn skip(&mut self) -> Result<(), Fault> {
        while self.next()?.is_some() {}
        Ok(())
    }
}

/// Deserializer of a repeated field.
pub(super) struct List<'r, 's, 'de> {
    pub(super) run: &'s mut FieldRun<'r, 'de>,
    pub(super) of: Type,
    pub(super) depth: u32,
}

impl<'de> SeqAccess<'de> for List<'_, '_, 'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        match self.run.next()? {
            Some(wire) => seed.deserialize(SingleValue::new(self.of, wire, self.depth)).map(Some),
            None => Ok(None),
        }
    }
}

/// Deserializer of a map field.
pub(super) struct Entries<'r, 's, 'de> {
    pub(super) run: &'s mut FieldRun<'r, 'de>,
    pub(super) of: Type,
    pub(super) depth: u32,
    /// The value of the key returned last.
    pub(super) value: Option<Datum<'de>>,
}

impl<'de> MapAccess<'de> for Entries<'_, '_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(wire) = self.run.next()? else { return Ok(None) };
        let Datum::Bytes(entry) = wire else { return Err(Broken::Protobuf.into()) };
        let (key, value) = entry_of(entry)?;
        // A default value is not encoded.
        self.value = Some(value.unwrap_or(match self.of {
            Type::Int | Type::Bool => Datum::Number(0),
            Type::Double => Datum::Fixed(0),
            _ => Datum::Bytes(&[]),
        }));
        seed.deserialize(Name::new(text(key))).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let wire = self.value.take().ok_or(Fault::Shape)?;
        seed.deserialize(SingleValue::new(self.of, wire, self.depth))
    }
}

/// The key and value of a map entry.
pub(super) fn entry_of(entry: &[u8]) -> Result<(&[u8], Option<Datum<'_>>), Broken> {
    let (mut fields, mut key, mut value) = (Fields::of(entry), &b""[..], None);
    while let Some(field) = fields.next()? {
        match field {
            (1, Datum::Bytes(bytes)) => key = bytes,
            (2, wire) => value = Some(wire),
            _ => {}
        }
    }
    Ok((key, value))
}

/// Implements `Deserializer` for a type that is itself the access to its elements.
macro_rules! deserialize_as {
    ($name:ident, $visit:ident) => {
        impl<'de> Deserializer<'de> for $name<'_, '_, 'de> {
            type Error = Fault;

            fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
                visitor.$visit(self)
            }

            fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
                visitor.visit_some(self)
            }

            fn deserialize_newtype_struct<V: Visitor<'de>>(
                self,
                _: &'static str,
                visitor: V,
            ) -> Result<V::Value, Fault> {
                visitor.visit_newtype_struct(self)
            }

            fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
                visitor.visit_unit()
            }

            forward_to_deserialize_any! {
                bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
                tuple tuple_struct map struct enum identifier
            }
        }
    };
}

deserialize_as!(List, visit_seq);
deserialize_as!(Entries, visit_map);
