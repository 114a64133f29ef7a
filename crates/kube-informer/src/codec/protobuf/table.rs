//! The messages of the built-in kinds, and how their fields stand in JSON.

use std::collections::HashMap;
use std::sync::LazyLock;

/// All messages, read once.
///
/// `data/messages.txt` has a line for each kind, `@apiVersion`, kind and the number of its message, then one for each message: its
/// name, and its fields as `number:name`, presence and type, or `number:^message` for one whose fields stand among those around it.
/// Presence: `!` always, `?` unless it is a zero value, `*` if it was set, `+` as null if it was not. Types: `s` a string, `i` a whole
/// number, `b` a bool, `f` a double, `y` bytes, `t` a time, `u` one with microseconds, `d` a duration, `q` a quantity, `x` a number
/// or a string, `r` JSON as it is, `e` a list of strings in a message of its own, `#` a message, `o`, `p` and `a` one that may have a
/// list of its like, a bool or a list of strings in its place; in front of it `[` for a list and `{` for a map.
#[derive(Debug)]
pub(crate) struct Table {
    messages: Vec<MessageType>,
    kinds: HashMap<(&'static str, &'static str), usize>,
}

/// One message.
#[derive(Debug)]
pub(crate) struct MessageType {
    fields: Box<[Field]>,
    /// Places of fields plus one, by their numbers.
    by_number: Box<[u8]>,
    /// Places of the fields that are null in JSON where a message has none.
    pub(super) nulls: Box<[u8]>,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    /// Whether JSON leaves out a zero value.
    pub(super) omit_zero: bool,
    /// Whether JSON has a null where there is none.
    pub(super) or_null: bool,
    pub(super) repeats: Repeats,
    pub(super) of: Type,
}

/// How often a field may be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    Once,
    List,
    /// Keys are strings.
    Map,
}

/// What a field, or each part of it, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// A message whose fields stand among those around it.
    Inline(usize),
    Message(usize),
    /// A message, or what may stand in its place.
    Either(Instead, usize),
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
    /// A list of strings in a message of its own.
    Texts,
    /// Nothing at all.
    Null,
}

/// What may stand in the place of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instead {
    List,
    Bool,
    Texts,
}

impl Table {
    pub(crate) fn get() -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("../../../data/messages.txt")));
        &TABLE
    }

    /// The message of a kind.
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
                    let kind = parts.next().expect(OURS);
                    kinds.insert((api_version, kind), parse_number(parts.next().expect(OURS)));
                }
                None => messages.push(MessageType::new(parts.map(Field::parse).collect())),
            }
        }
        Self { messages, kinds }
    }
}

/// The file is part of the program, and a test reads all of it.
const OURS: &str = "the table is whole";

fn parse_number(digits: &str) -> usize {
    digits.parse().expect(OURS)
}

impl MessageType {
    fn new(fields: Box<[Field]>) -> Self {
        let largest = fields.iter().map(|field| field.number).max().unwrap_or(0);
        let mut by_number = vec![0; largest as usize + 1];
        let mut nulls = Vec::new();
        for (place, field) in (0..64_u8).zip(&fields) {
            by_number[field.number as usize] = place + 1;
            if field.or_null {
                nulls.push(place);
            }
        }
        Self { fields, by_number: by_number.into(), nulls: nulls.into() }
    }

    #[inline]
    pub(super) fn field(&'static self, number: u32) -> Option<(u8, &'static Field)> {
        let place = self.by_number.get(number as usize)?.checked_sub(1)?;
        Some((place, &self.fields[usize::from(place)]))
    }

    pub(super) fn at(&'static self, place: u8) -> &'static Field {
        &self.fields[usize::from(place)]
    }
}

impl Field {
    fn parse(text: &'static str) -> Self {
        let (number, rest) = text.split_once(':').expect(OURS);
        let number = u32::try_from(parse_number(number)).expect(OURS);
        if let Some(inner) = rest.strip_prefix('^') {
            let of = Type::Inline(parse_number(inner));
            return Self { number, name: "", omit_zero: false, or_null: false, repeats: Repeats::Once, of };
        }
        let mark = rest.find(['!', '?', '*', '+']).expect(OURS);
        let (name, presence, of) = (&rest[..mark], rest.as_bytes()[mark], &rest[mark + 1..]);
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
            "o" => Self::Either(Instead::List, parse_number(rest)),
            "p" => Self::Either(Instead::Bool, parse_number(rest)),
            "a" => Self::Either(Instead::Texts, parse_number(rest)),
            other => unreachable!("no type {other}: {OURS}"),
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
            // One bit for each field tells which have been met.
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
