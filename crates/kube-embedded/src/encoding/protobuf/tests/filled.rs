//! Test objects derived from struct definitions alone.

use serde_json::{Map, Value, json};

use super::super::duration;
use crate::kinds::schema::{Field, Leaf, Presence, Shape, Struct, StructId};

/// How many fields of an object are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fullness {
    /// Every field, with a non-empty value.
    Full,
    /// About half of the fields, some with empty values.
    Some,
}

/// Generates objects deterministically from a seed.
#[derive(Debug)]
pub(super) struct Maker {
    state: u64,
    fullness: Fullness,
    /// The structs being generated, to stop the recursion of recursive types.
    within: Vec<StructId>,
}

impl Maker {
    pub(super) fn new(seed: u64, fullness: Fullness) -> Self {
        Self { state: seed, fullness, within: Vec::new() }
    }

    /// Generates an object of a struct, without apiVersion and kind.
    pub(super) fn object(&mut self, id: StructId) -> Value {
        self.within.push(id);
        let of = id.resolve();
        let mut object = Map::new();
        for field in of.fields().iter().skip(type_fields(of)) {
            let is_made = self.fullness == Fullness::Full || field.presence == Presence::Always || self.below(2) == 0;
            if is_made && !self.is_endless(field) {
                let value = self.shaped(field.shape);
                object.insert(field.name.to_owned(), value);
            }
        }
        self.within.pop();
        Value::Object(object)
    }

    fn is_endless(&self, field: &Field) -> bool {
        let leaf = match field.shape {
            Shape::One(leaf) | Shape::List(leaf) | Shape::Map(leaf) | Shape::MapOfLists(leaf) => leaf,
        };
        let (Leaf::Struct(id) | Leaf::StructOrList(id) | Leaf::StructOrBool(id) | Leaf::StructOrStrings(id)) = leaf
        else {
            return false;
        };
        self.within.iter().filter(|within| **within == id).count() > 1
    }

    fn shaped(&mut self, shape: Shape) -> Value {
        let many = match self.fullness {
            Fullness::Full => 1 + self.below(2),
            Fullness::Some => self.below(4),
        };
        match shape {
            Shape::One(leaf) => self.leaf(leaf),
            Shape::List(_) => (0..many).map(|_| self.shaped(shape.element())).collect(),
            Shape::Map(_) | Shape::MapOfLists(_) => {
                let entries = (0..many).map(|_| (self.text(), self.shaped(shape.element())));
                Value::Object(entries.collect())
            }
        }
    }

    fn leaf(&mut self, leaf: Leaf) -> Value {
        match leaf {
            Leaf::String => self.text().into(),
            Leaf::Int32 => i32::from_le_bytes(self.bytes()).into(),
            Leaf::Int64 => i64::from_le_bytes(self.bytes()).into(),
            Leaf::Bool => (self.fullness == Fullness::Full || self.below(2) == 0).into(),
            Leaf::Float => json!(f64::from(i16::from_le_bytes(self.bytes())) / 8.0),
            Leaf::Bytes => ["AA==", "aGVsbG8=", "AP8Q"][self.pick(3)].into(),
            Leaf::Time => ["2026-11-15T14:36:53Z", "1969-12-31T23:59:59Z", "0001-01-02T00:00:00Z"][self.pick(3)].into(),
            Leaf::MicroTime => ["2026-11-15T14:36:53.000000Z", "1969-12-31T23:59:59.999999Z"][self.pick(2)].into(),
            Leaf::Duration => duration::format(i64::from_le_bytes(self.bytes())).into(),
            Leaf::Quantity => ["1", "100m", "1500Mi", "0", "12e6", "-7", "3Ki"][self.pick(7)].into(),
            Leaf::IntOrString if self.below(2) == 0 => self.text().into(),
            Leaf::IntOrString => i32::from_le_bytes(self.bytes()).into(),
            Leaf::Any => {
                [json!({"b": [1, "x", null, true], "a": {}}), json!("text"), json!([1.5])][self.pick(3)].clone()
            }
            Leaf::Struct(id) => self.object(id),
            Leaf::StructOrList(id) if self.below(2) == 0 => Value::Array(vec![self.object(id), self.object(id)]),
            Leaf::StructOrBool(_) if self.below(2) == 0 => (self.below(2) == 0).into(),
            Leaf::StructOrStrings(_) if self.below(2) == 0 => json!(["one", "two"]),
            Leaf::StructOrList(id) | Leaf::StructOrBool(id) | Leaf::StructOrStrings(id) => self.object(id),
        }
    }

    fn text(&mut self) -> String {
        let words = ["a", "some-name", "\u{fc}\u{4e16}\u{1f600}", "with \"quotes\"\n", "x.example.com/y"];
        let empty = self.fullness == Fullness::Some && self.below(8) == 0;
        if empty { String::new() } else { format!("{}{}", words[self.pick(5)], self.below(100)) }
    }

    fn pick(&mut self, among: usize) -> usize {
        usize::try_from(self.next() % among as u64).unwrap()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        // Shifted by a random number of bits, so that small numbers are as likely as large ones.
        let number = self.next() >> self.below(64);
        let number = if self.below(2) == 0 { number } else { number.wrapping_neg() };
        *number.to_le_bytes().first_chunk().unwrap()
    }

    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// How many leading fields are kind and apiVersion, which are sent in the envelope instead.
fn type_fields(of: &Struct) -> usize {
    let names: Vec<_> = of.fields().iter().take(2).map(|field| field.name).collect();
    if names == ["kind", "apiVersion"] { 2 } else { 0 }
}
