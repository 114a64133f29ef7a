//! A serde deserializer of field names and of the keys of maps.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::de::value::CowStrDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

/// Deserializer of a field name, or of a key of a map, in JSON and protobuf.
pub(super) struct Name<'de, E> {
    name: Cow<'de, str>,
    error: PhantomData<E>,
}

impl<'de, E> Name<'de, E> {
    #[inline]
    pub(super) fn new(name: impl Into<Cow<'de, str>>) -> Self {
        Self { name: name.into(), error: PhantomData }
    }

    /// Whether it begins and ends as a number does: blanks and a plus, which parsers may accept, do
    /// not.
    fn may_be_number(&self) -> bool {
        let name = self.name.as_bytes();
        name.first().is_some_and(|first| *first == b'-' || first.is_ascii_digit())
            && name.last().is_some_and(u8::is_ascii_digit)
    }
}

/// Implements the methods for keys that are numbers, which JSON writes as strings.
macro_rules! parse_numbers {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            match serde_json::from_str::<$type>(&self.name) {
                Ok(key) if self.may_be_number() => IntoDeserializer::<E>::into_deserializer(key).$method(visitor),
                _ => Err(E::custom("not a number of this type")),
            }
        }
    )*};
}

impl<'de, E: Error> Deserializer<'de> for Name<'de, E> {
    type Error = E;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.name {
            Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
            Cow::Owned(name) => visitor.visit_string(name),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match &*self.name {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(E::custom("neither true nor false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        visitor.visit_enum(CowStrDeserializer::<E>::new(self.name))
    }

    parse_numbers! {
        deserialize_i8: i8, deserialize_i16: i16, deserialize_i32: i32, deserialize_i64: i64, deserialize_i128: i128,
        deserialize_u8: u8, deserialize_u16: u16, deserialize_u32: u32, deserialize_u64: u64, deserialize_u128: u128,
        deserialize_f32: f32, deserialize_f64: f64,
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
