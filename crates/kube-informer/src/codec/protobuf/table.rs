//! The messages of the built-in kinds, and how their fields appear in JSON.

use std::collections::HashMap;
use std::sync::LazyLock;

/// All messages, parsed once.
///
/// `data/messages.txt` has tab-separated lines. First one line per kind: `@apiVersion`, kind and
/// message number. Then one line per message: its name, and its fields as `number:name`, presence
/// and type, or `number:^message` for a message whose fields are inlined into the enclosing one.
///
/// - Presence in JSON: `!` always, `?` unless it has a zero value, `*` if it is set, `+` as null if
///   it is not set.
/// - Prefix of the type: `[` a list, `{` a map.
/// - Type: `s` string, `i` integer, `b` bool, `f` double, `y` bytes, `t` time, `u` time with
///   microseconds, `d` duration, `q` quantity, `x` integer or string, `r` embedded JSON, `e` a
///   message that wraps a list of strings, `#` a message, `o`, `p` and `a` a message that may be
///   replaced by a list of such messages, a bool or a list of strings.
#[derive(Debug)]
pub(crate) struct Table {
    messages: Vec<MessageType>,
    kinds: HashMap<(&'static str, &'static str), usize>,
}

/// A message type.
#[derive(Debug)]
pub(crate) struct MessageType {
    fields: Box<[Field]>,
    /// Index of each field plus one, by field number; 0 for none.
    by_number: Box<[u8]>,
    /// Indexes of the fields that are null in JSON if absent.
    pub(super) nulls: Box<[u8]>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    /// Whether JSON omits a zero value.
    pub(super) omit_zero: bool,
    /// Whether JSON contains null if the field is absent.
    pub(super) or_null: bool,
    pub(super) repeats: Repeats,
    pub(super) of: Type,
}

/// Whether a field is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    Once,
    List,
    /// Keys are strings.
    Map,
}

/// The type of a field, or of each element of a repeated field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// A message whose fields are inlined into the enclosing one.
    Inline(usize),
    Message(usize),
    /// A message, or its alternative.
    Either(Alternative, usize),
    Text,
    Int,
    Bool,
    Double,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrText,
    Json,
    /// A message that wraps a list of strings.
    Texts,
    /// An absent field that JSON contains as null.
    Null,
}

/// The alternative to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alternative {
    List,
    Bool,
    Texts,
}

/// The release of Kubernetes whose built-in kinds the table has, as major and minor version.
pub(crate) const RELEASE: (u32, u32) = (1, 37);

impl Table {
    pub(crate) fn get() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("../../../data/messages.txt")));
        &TABLE
    }

    /// The message type of a kind.
    pub(crate) fn of_kind(&'static self, api_version: &str, kind: &str) -> Option<&'static MessageType> {
        self.kinds.get(&(api_version, kind)).map(|at| self.at(*at))
    }

    pub(super) fn at(&'static self, number: usize) -> &'static MessageType {
        &self.messages[number]
    }

    fn parse(text: &'static str) -> Self {
        let (mut messages, mut kinds) = (Vec::new(), HashMap::new());
        for line in text.lines() {
            let mut parts = line.split('\t');
            let name = parts.next().unwrap_or_default();
            match name.strip_prefix('@') {
                Some(api_version) => {
                    let kind = parts.next().expect(VALID);
                    kinds.insert((api_version, kind), parse_number(parts.next().expect(VALID)));
                }
                None => messages.push(MessageType::new(parts.map(Field::parse).collect())),
            }
        }
        Self { messages, kinds }
    }
}

/// Message of panics that cannot occur: the file is compiled in, and a test parses all of it.
const VALID: &str = "the table is whole";

fn parse_number(digits: &str) -> usize {
    digits.parse().expect(VALID)
}

impl MessageType {
    fn new(fields: Box<[Field]>) -> Self {
        let largest = fields.iter().map(|field| field.number).max().unwrap_or(0);
        let mut by_number = vec![0; largest as usize + 1];
        let mut nulls = Vec::new();
        for (index, field) in (0..64_u8).zip(&fields) {
            by_number[field.number as usize] = index + 1;
            if field.or_null {
                nulls.push(index);
            }
        }
        Self { fields, by_number: by_number.into(), nulls: nulls.into() }
    }

    #[inline]
    pub(super) fn field(&'static self, number: u32) -> Option<(u8, &'static Field)> {
        let index = self.by_number.get(number as usize)?.checked_sub(1)?;
        Some((index, &self.fields[usize::from(index)]))
    }

    pub(super) fn at(&'static self, index: u8) -> &'static Field {
        &self.fields[usize::from(index)]
    }
}

impl Field {
    fn parse(text: &'static str) -> Self {
        let (number, rest) = text.split_once(':').expect(VALID);
        let number = u32::try_from(parse_number(number)).expect(VALID);
        if let Some(inner) = rest.strip_prefix('^') {
            let of = Type::Inline(parse_number(inner));
            return Self { number, name: "", omit_zero: false, or_null: false, repeats: Repeats::Once, of };
        }
        let at = rest.find(['!', '?', '*', '+']).expect(VALID);
        let (name, presence, of) = (&rest[..at], rest.as_bytes()[at], &rest[at + 1..]);
        let (repeats, of) = match of.as_bytes().first() {
            Some(b'[') => (Repeats::List, &of[1..]),
            Some(b'{') => (Repeats::Map, &of[1..]),
            _ => (Repeats::Once, of),
        };
        let of = Type::parse(of);
        let null = presence == b'+' || (presence == b'!' && (repeats != Repeats::Once || of == Type::Bytes));
        let omit_zero = presence == b'?' && repeats == Repeats::Once;
        Self { number, name, omit_zero, or_null: null, repeats, of }
    }
}

impl Type {
    fn parse(text: &str) -> Self {
        let (letter, rest) = text.split_at(1);
        match letter {
            "s" => Self::Text,
            "i" => Self::Int,
            "b" => Self::Bool,
            "f" => Self::Double,
            "y" => Self::Bytes,
            "t" => Self::Time,
            "u" => Self::MicroTime,
            "d" => Self::Duration,
            "q" => Self::Quantity,
            "x" => Self::IntOrText,
            "r" => Self::Json,
            "e" => Self::Texts,
            "#" => Self::Message(parse_number(rest)),
            "o" => Self::Either(Alternative::List, parse_number(rest)),
            "p" => Self::Either(Alternative::Bool, parse_number(rest)),
            "a" => Self::Either(Alternative::Texts, parse_number(rest)),
            other => unreachable!("no type {other}: {VALID}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        let table = Table::get();
        assert!(
            table.of_kind("v1", "Pod").is_some() && table.of_kind("meta.k8s.io/v1", "PartialObjectMetadata").is_some()
        );
        assert!(table.of_kind("v1", "Table").is_none());
        for message in &table.messages {
            // `Message` tracks the fields it has found in a 64-bit set.
            assert!(message.fields.len() <= 64);
            for field in &message.fields {
                assert_eq!(message.by_number[field.number as usize] as usize, field_place(message, field) + 1);
                match field.of {
                    Type::Message(at) | Type::Inline(at) | Type::Either(_, at) => assert!(at < table.messages.len()),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn metadata_is_the_first_field_of_every_kind() {
        let table = Table::get();
        for ((api_version, kind), at) in &table.kinds {
            assert_eq!(table.at(*at).field(1).unwrap().1.name, "metadata", "{api_version} {kind}");
        }
    }

    fn field_place(message: &MessageType, field: &Field) -> usize {
        message.fields.iter().position(|other| other.number == field.number).unwrap()
    }
}
