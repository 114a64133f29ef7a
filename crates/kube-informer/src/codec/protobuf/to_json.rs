//! Conversion of protobuf to JSON: of a whole object, or of the values at a path.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::message::{Fault, Message};
use super::order::sort_fields;
use crate::codec::Broken;
use crate::codec::omit::Omit;
use crate::object::{FieldPath, Step};

/// The JSON that a server would have sent for this object.
pub(crate) fn to_json(object: &[u8]) -> Result<Vec<u8>, Broken> {
    let write = |object: &[u8]| {
        let mut json = Vec::with_capacity(object.len() * 3 / 2);
        Message::of_object(object, Omit::Nothing)?.deserialize_any(Writer(&mut json)).map(|()| json)
    };
    in_order(object, write).map_err(|fault| match fault {
        Fault::Broken(broken) => broken,
        Fault::Disorder | Fault::Shape => Broken::Protobuf,
    })
}

/// The first `most` scalars at a path, as text, up to the first malformed field.
pub(crate) fn values_at(object: &[u8], path: &FieldPath, most: usize) -> Vec<String> {
    let find = |object: &[u8]| {
        let mut found = FoundValues { values: Vec::new(), most };
        let walked =
            Message::of_object(object, Omit::Nothing)?.deserialize_any(Walk { steps: path.steps(), found: &mut found });
        match walked {
            Err(Fault::Disorder) => Err(Fault::Disorder),
            _ => Ok(found.values),
        }
    };
    in_order(object, find).unwrap_or_default()
}

/// Reads an object; if its fields are not in order, sorts them and reads it again.
fn in_order<T>(object: &[u8], read: impl Fn(&[u8]) -> Result<T, Fault>) -> Result<T, Fault> {
    match read(object) {
        Err(Fault::Disorder) => read(&sort_fields(object)?),
        result => result,
    }
}

/// A visitor that writes JSON.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn scalar<T: serde::Serialize, E: serde::de::Error>(self, value: T) -> Result<(), E> {
        serde_json::to_writer(self.0, &value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scalar(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut delimiter = b'[';
        loop {
            // The delimiter is removed again if no element follows it.
            let before = self.0.len();
            self.0.push(delimiter);
            if elements.next_element_seed(Writer(self.0))?.is_none() {
                self.0.truncate(before);
                break;
            }
            delimiter = b',';
        }
        if delimiter == b'[' {
            self.0.push(delimiter);
        }
        self.0.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut delimiter = b'{';
        loop {
            let before = self.0.len();
            self.0.push(delimiter);
            if entries.next_key_seed(Writer(self.0))?.is_none() {
                self.0.truncate(before);
                break;
            }
            self.0.push(b':');
            entries.next_value_seed(Writer(self.0))?;
            delimiter = b',';
        }
        if delimiter == b'{' {
            self.0.push(delimiter);
        }
        self.0.push(b'}');
        Ok(())
    }
}

struct FoundValues {
    values: Vec<String>,
    most: usize,
}

/// A visitor that follows a path.
struct Walk<'a> {
    steps: &'a [Step],
    found: &'a mut FoundValues,
}

impl Walk<'_> {
    fn scalar<E: serde::de::Error>(self, value: impl Into<String>) -> Result<(), E> {
        if self.steps.is_empty() {
            self.found.values.push(value.into());
            if self.found.values.len() >= self.found.most {
                return Err(E::custom("enough"));
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.scalar(serde_json::Value::from(value).to_string())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Some((step @ (Step::Element(_) | Step::Every), steps)) = self.steps.split_first() else {
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        for index in 0.. {
            let more = if matches!(step, Step::Every) || *step == Step::Element(index) {
                elements.next_element_seed(Walk { steps, found: self.found })?.is_some()
            } else {
                elements.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let wanted = match self.steps.split_first() {
            Some((Step::Field(name), steps)) => Some((&**name, steps)),
            _ => None,
        };
        let Some((name, steps)) = wanted else {
            while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        while let Some(is_wanted) = entries.next_key_seed(IsName(name))? {
            if is_wanted {
                entries.next_value_seed(Walk { steps, found: self.found })?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// A seed that compares a name with this one.
struct IsName<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde::de::Error as _;

    use super::*;

    #[test]
    fn a_fault_is_an_error_that_quotes_nothing() {
        assert_eq!(Fault::custom("password"), Fault::Shape);
        assert!(!Fault::custom("password").to_string().contains("password"));
    }
}
