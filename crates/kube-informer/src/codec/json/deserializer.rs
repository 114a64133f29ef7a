//! A serde deserializer of JSON. What the type does not read is skipped in 64-byte blocks, several
//! times as fast as `serde_json` skips it.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::CowStrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::cursor::{Broken, Cursor, Members, is_scalar};
use crate::codec::name::Name;
use crate::codec::omit::Omit;

/// Maximum nesting depth of what is decoded, the same as in `serde_json`.
const MAX_DEPTH: u32 = 128;

/// Decodes JSON.
///
/// Everything that the type reads is checked as strictly as `serde_json` checks it, except that
/// strings may contain control characters. Of what it skips only strings and brackets are read.
pub(crate) fn decode_json<'de, T: Deserialize<'de>>(json: &'de str, omit: Omit) -> Result<T, JsonError> {
    let mut reader = JsonReader { text: json, cursor: Cursor::new(json.as_bytes()), depth: 0, omit };
    let read = T::deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    read.map_err(|fault| JsonError { fault, at: reader.cursor.at() })
}

/// Why JSON cannot be decoded, and how far it was read.
#[derive(Debug)]
pub(crate) struct JsonError {
    pub(crate) fault: JsonFault,
    pub(crate) at: usize,
}

/// Why JSON cannot be decoded. Contains none of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonFault {
    Broken(Broken),
    /// The value that was read last does not fit.
    Shape,
    /// A field of the object that was read last.
    Missing(&'static str),
    /// The type does not have the field whose name was read last.
    Unknown,
    /// What is to be left out would have to be removed first: `serde_json` decodes a value that
    /// contains it.
    NotOmitted,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON that cannot be decoded")
    }
}

impl std::error::Error for JsonFault {}

impl de::Error for JsonFault {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Shape
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown
    }
}

impl From<Broken> for JsonFault {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

struct JsonReader<'de> {
    text: &'de str,
    /// At the same bytes as `text`.
    cursor: Cursor<'de>,
    depth: u32,
    /// What the value that is read next leaves out.
    omit: Omit,
}

impl<'de> JsonReader<'de> {
    /// The text from here to the cursor.
    #[inline]
    fn text_since(&self, from: usize) -> Result<&'de str, JsonFault> {
        Ok(self.text.get(from..self.cursor.at()).ok_or(Broken::Text)?)
    }

    /// Skips whitespace to the end.
    fn end(&mut self) -> Result<(), JsonFault> {
        match self.cursor.peek() {
            Err(Broken::Short) => Ok(()),
            Err(broken) => Err(broken.into()),
            Ok(_) => Err(Broken::Byte.into()),
        }
    }

    #[inline]
    fn string(&mut self) -> Result<Cow<'de, str>, JsonFault> {
        self.cursor.peek()?;
        let from = self.cursor.at();
        let has_escapes = self.cursor.text()?.has_escapes();
        let quoted = self.text_since(from)?;
        if has_escapes {
            return serde_json::from_str(quoted).map(Cow::Owned).map_err(|_| Broken::Text.into());
        }
        Ok(Cow::Borrowed(quoted.get(1..quoted.len() - 1).ok_or(Broken::Text)?))
    }

    #[inline]
    fn visit_string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonFault> {
        match self.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    /// Consumes a value that does not fit, so that the error names it.
    #[cold]
    fn misfit(&mut self) -> JsonFault {
        self.cursor.skip().map_or_else(JsonFault::Broken, |()| JsonFault::Shape)
    }

    fn literal(&mut self, literal: &str) -> Result<(), JsonFault> {
        let from = self.cursor.at();
        self.cursor.skip()?;
        if self.text_since(from)? == literal { Ok(()) } else { Err(Broken::Byte.into()) }
    }

    fn visit_bool<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonFault> {
        match self.cursor.peek()? {
            b't' => self.literal("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.literal("false").and_then(|()| visitor.visit_bool(false)),
            _ => Err(self.misfit()),
        }
    }

    fn visit_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonFault> {
        if !matches!(self.cursor.peek()?, b'-' | b'0'..=b'9') {
            return Err(self.misfit());
        }
        let from = self.cursor.at();
        self.cursor.skip()?;
        let text = self.text_since(from)?;
        // As nearly all numbers are; serde_json reads the others.
        match (text.strip_prefix('-'), short_integer(text)) {
            (None, Some(number)) => return visitor.visit_u64(number),
            (Some(digits), _) => {
                if let Some(number) = short_integer(digits).filter(|number| *number != 0) {
                    return visitor.visit_i64(-number.cast_signed());
                }
            }
            (None, None) => {}
        }
        let mut number = serde_json::Deserializer::from_str(text);
        let value = number.deserialize_any(visitor).map_err(fault_of)?;
        number.end().map_err(fault_of)?;
        Ok(value)
    }

    /// Has `serde_json` decode the next value.
    fn by_serde_json<T>(
        &mut self,
        decode: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'de>>) -> serde_json::Result<T>,
    ) -> Result<T, JsonFault> {
        if self.omit != Omit::Nothing {
            return Err(JsonFault::NotOmitted);
        }
        self.cursor.peek()?;
        let from = self.cursor.at();
        self.cursor.skip()?;
        let mut value = serde_json::Deserializer::from_str(self.text_since(from)?);
        let decoded = decode(&mut value).map_err(fault_of)?;
        value.end().map_err(fault_of)?;
        Ok(decoded)
    }

    fn visit_map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonFault> {
        if self.cursor.peek()? != b'{' {
            return Err(self.misfit());
        }
        let omit = std::mem::take(&mut self.omit);
        self.enter()?;
        let members = self.cursor.object()?;
        let mut fields = Fields { nested: Nested { reader: self, members, is_read: false }, omit };
        let value = visitor.visit_map(&mut fields)?;
        fields.nested.leave(b'}')?;
        Ok(value)
    }

    fn visit_seq<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, JsonFault> {
        if self.cursor.peek()? != b'[' {
            return Err(self.misfit());
        }
        self.omit = Omit::Nothing;
        self.enter()?;
        let members = self.cursor.list()?;
        let mut elements = Nested { reader: self, members, is_read: false };
        let value = visitor.visit_seq(&mut elements)?;
        elements.leave(b']')?;
        Ok(value)
    }

    fn enter(&mut self) -> Result<(), JsonFault> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH { Err(Broken::Deep.into()) } else { Ok(()) }
    }
}

/// A number of at most 18 digits without a sign, as JSON writes it.
#[inline]
fn short_integer(digits: &str) -> Option<u64> {
    let bytes = digits.as_bytes();
    if bytes.is_empty() || bytes.len() > 18 || (bytes[0] == b'0' && bytes.len() > 1) {
        return None;
    }
    let mut number = 0;
    for byte in bytes {
        number = 10 * number + u64::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    Some(number)
}

#[expect(clippy::needless_pass_by_value, reason = "an argument of `map_err`")]
fn fault_of(error: serde_json::Error) -> JsonFault {
    if error.is_data() { JsonFault::Shape } else { Broken::Byte.into() }
}

/// An object or a list that is being read.
struct Nested<'r, 'de> {
    reader: &'r mut JsonReader<'de>,
    members: Members,
    /// Whether the closing bracket has been consumed.
    is_read: bool,
}

impl Nested<'_, '_> {
    /// Advances to the next member, or consumes the closing bracket.
    #[inline]
    fn advance(&mut self, close: u8) -> Result<bool, JsonFault> {
        self.is_read = !self.reader.cursor.member(&mut self.members, close)?;
        Ok(!self.is_read)
    }

    /// Consumes the closing bracket, unless the visitor already has: one of a tuple stops before.
    fn leave(mut self, close: u8) -> Result<(), JsonFault> {
        self.reader.depth -= 1;
        if !self.is_read && self.advance(close)? {
            return Err(self.reader.misfit());
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for Nested<'_, 'de> {
    type Error = JsonFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, JsonFault> {
        if self.is_read || !self.advance(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

struct Fields<'r, 'de> {
    nested: Nested<'r, 'de>,
    omit: Omit,
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = JsonFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, JsonFault> {
        while !self.nested.is_read && self.nested.advance(b'}')? {
            let name = self.nested.reader.string()?;
            self.nested.reader.cursor.expect(b':')?;
            if self.omit.omits(&name) {
                self.nested.reader.cursor.skip()?;
                continue;
            }
            self.nested.reader.omit = self.omit.within(&name);
            return seed.deserialize(Name::new(name)).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, JsonFault> {
        seed.deserialize(&mut *self.nested.reader)
    }
}

impl<'de> Deserializer<'de> for &mut JsonReader<'de> {
    type Error = JsonFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        match self.cursor.peek()? {
            b'"' => self.visit_string(visitor),
            b'{' => self.visit_map(visitor),
            b'[' => self.visit_seq(visitor),
            b't' | b'f' => self.visit_bool(visitor),
            b'n' => self.literal("null").and_then(|()| visitor.visit_unit()),
            byte if is_scalar(byte) => self.visit_number(visitor),
            _ => Err(Broken::Byte.into()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        if self.cursor.peek()? == b'n' {
            return self.literal("null").and_then(|()| visitor.visit_none());
        }
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.cursor.skip()?;
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        if self.cursor.peek()? == b'"' { self.visit_string(visitor) } else { Err(self.misfit()) }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.visit_bool(visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.visit_number(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.visit_number(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.visit_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.visit_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonFault> {
        // A struct may also be a list of its fields.
        if self.cursor.peek()? == b'[' { self.visit_seq(visitor) } else { self.visit_map(visitor) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, JsonFault> {
        // serde_json's own types, such as `RawValue`.
        if name.starts_with("$serde_json::") {
            return self.by_serde_json(|value| value.deserialize_newtype_struct(name, visitor));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, JsonFault> {
        if self.cursor.peek()? == b'"' {
            return visitor.visit_enum(CowStrDeserializer::<JsonFault>::new(self.string()?));
        }
        self.by_serde_json(|value| value.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.by_serde_json(|value| value.deserialize_bytes(visitor))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, JsonFault> {
        self.by_serde_json(|value| value.deserialize_byte_buf(visitor))
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 f64 unit unit_struct tuple tuple_struct identifier
    }
}
