//! The shapes of the built-in kinds: what their Go structs say about their JSON.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::{Map, Value};

/// All structs of the built-in kinds, read once per process from a file made by reflection on the Go types.
#[derive(Debug)]
pub(crate) struct Structs {
    structs: Vec<Struct>,
    kinds: HashMap<&'static str, StructId>,
}

/// A struct's place among [`Structs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StructId(u16);

/// One Go struct: its fields in the order in which they are written.
#[derive(Debug)]
pub(crate) struct Struct {
    go_type: &'static str,
    fields: Box<[Field]>,
    /// Places of fields plus one, by a hash of their names; 0 is free. Half empty, so a search is short.
    by_name: Box<[u8]>,
    /// Whether appliers own it as a whole.
    pub(crate) atomic: bool,
}

/// One field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) presence: Presence,
    pub(crate) shape: Shape,
    go_type: Option<&'static str>,
    /// How strategic merge patches change it.
    pub(crate) patch: PatchRule,
    /// How appliers share it.
    pub(crate) apply: ApplyRule,
}

/// How a strategic merge patch changes a field that it mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PatchRule {
    /// Whether lists are merged rather than replaced.
    pub(crate) merges: bool,
    /// The field by which the items of a list are told apart.
    pub(crate) key: Option<&'static str>,
}

/// How appliers share a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ApplyRule {
    /// Lists as a whole, structs and maps field by field.
    #[default]
    Plain,
    /// As a whole.
    Atomic,
    /// Field by field, whatever its struct says.
    Granular,
    /// Each value of a list by itself.
    Set,
    /// Each item of a list by itself; these fields tell them apart.
    Keyed(Box<[&'static str]>),
}

/// What is written for a field without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The zero value: `""`, `0`, `null` for lists and maps, a struct of zero values.
    Always,
    /// Nothing, and nothing either if the value sent is the zero value.
    WhenNotZero,
    /// Nothing; a zero value that was sent stays.
    WhenSet,
    /// `null`.
    OrNull,
}

/// How a field's values nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One(Leaf),
    List(Leaf),
    Map(Leaf),
    MapOfLists(Leaf),
}

/// What a single value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaf {
    String,
    Int32,
    Int64,
    Bool,
    Float,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    Any,
    Struct(StructId),
    StructOrList(StructId),
    StructOrBool(StructId),
    StructOrStrings(StructId),
}

impl Structs {
    /// The structs of the built-in kinds.
    pub(crate) fn get() -> &'static Structs {
        static STRUCTS: OnceLock<Structs> = OnceLock::new();
        STRUCTS.get_or_init(|| Structs::parse(include_str!("../../data/types.txt")))
    }

    /// The metadata of every object, built-in or custom.
    pub(crate) fn object_meta() -> &'static Struct {
        Structs::get().at(StructId(0))
    }

    /// The struct of that name, `group/version/Kind`.
    pub(crate) fn of_kind(&self, name: &str) -> Option<&Struct> {
        self.kinds.get(name).map(|id| self.at(*id))
    }

    /// All structs that have a name of their own, `group/version/Kind`.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&'static str, StructId)> {
        self.kinds.iter().map(|(name, id)| (*name, *id))
    }

    pub(crate) fn at(&self, id: StructId) -> &Struct {
        &self.structs[usize::from(id.0)]
    }

    fn parse(text: &'static str) -> Structs {
        let mut structs = Vec::with_capacity(600);
        let mut kinds = HashMap::with_capacity(80);
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix('@') {
                let (name, id) = kind.split_once('\t').expect("a kind's line has two parts");
                kinds.insert(name, StructId::parse(id));
            } else {
                structs.push(Struct::parse(line));
            }
        }
        for line in include_str!("../../data/merging.txt").lines() {
            merging(&mut structs, line);
        }
        Structs { structs, kinds }
    }
}

/// Reads what a line of merging.txt says about a struct.
fn merging(structs: &mut [Struct], line: &'static str) {
    let mut parts = line.split('\t');
    let number = parts.next().expect("split gives at least one part");
    let of = &mut structs[usize::from(StructId::parse(number.trim_end_matches('!')).0)];
    of.atomic = number.ends_with('!');
    for part in parts {
        let (name, rules) = part.split_once('=').expect("a field has rules");
        let (patch, apply) = rules.split_once('/').expect("there are two rules");
        let at = of.field(name).map(|(at, _)| usize::from(at)).expect("a rule is about a field of the struct");
        let field = &mut of.fields[at];
        // retainKeys alone is what clients send with it; here it changes nothing.
        let (strategy, key) = patch.split_once(':').map_or((patch, None), |(strategy, key)| (strategy, Some(key)));
        field.patch = PatchRule { merges: matches!(strategy, "m" | "b"), key };
        field.apply = match apply.split_once(':') {
            Some((_, keys)) => ApplyRule::Keyed(keys.split(',').collect()),
            None if apply == "a" => ApplyRule::Atomic,
            None if apply == "g" => ApplyRule::Granular,
            None if apply == "s" => ApplyRule::Set,
            None => ApplyRule::Plain,
        };
    }
}

impl StructId {
    fn parse(digits: &str) -> StructId {
        StructId(digits.parse().expect("a struct's number is a number"))
    }

    pub(crate) fn resolve(self) -> &'static Struct {
        Structs::get().at(self)
    }
}

impl Struct {
    /// The Go type with its package, `v1.ObjectMeta`.
    pub(crate) fn go_type(&self) -> &'static str {
        self.go_type
    }

    /// The Go type without its package.
    pub(crate) fn name(&self) -> &'static str {
        self.go_type.rsplit('.').next().unwrap_or(self.go_type)
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of that JSON name and its place.
    pub(crate) fn field(&self, name: &str) -> Option<(u16, &Field)> {
        let mut slot = hash(name);
        loop {
            slot &= self.by_name.len() - 1;
            let at = usize::from(self.by_name[slot]).checked_sub(1)?;
            let field = &self.fields[at];
            if field.name == name {
                return Some((u16::from(self.by_name[slot]) - 1, field));
            }
            slot += 1;
        }
    }

    /// What Go writes for a struct nobody has filled.
    pub(crate) fn zero(&self) -> Value {
        let mut object = Map::new();
        for field in &self.fields {
            if let Some(zero) = field.zero() {
                object.insert(field.name.to_owned(), zero);
            }
        }
        Value::Object(object)
    }

    fn parse(line: &'static str) -> Struct {
        let mut parts = line.split('\t');
        let go_type = parts.next().expect("split gives at least one part");
        let fields: Box<[Field]> = parts.map(Field::parse).collect();
        let mut by_name = vec![0; (fields.len() * 2 + 1).next_power_of_two()].into_boxed_slice();
        for (at, field) in fields.iter().enumerate() {
            let mut slot = hash(field.name) & (by_name.len() - 1);
            while by_name[slot] != 0 {
                slot = (slot + 1) & (by_name.len() - 1);
            }
            by_name[slot] = u8::try_from(at + 1).expect("no struct has that many fields");
        }
        Struct { go_type, fields, by_name, atomic: false }
    }
}

/// Tells the names of one struct's fields apart well enough; a few bytes of each are plenty.
fn hash(name: &str) -> usize {
    let bytes = name.as_bytes();
    let byte = |at: usize| usize::from(bytes.get(at).copied().unwrap_or_default());
    let length = bytes.len();
    let mix = [length, byte(0), byte(length / 2), byte(length.wrapping_sub(2)), byte(length.wrapping_sub(1))];
    mix.into_iter().fold(0, |hash: usize, part| hash.wrapping_mul(31).wrapping_add(part))
}

impl Field {
    /// What is written when the field has no value: `None` is nothing.
    pub(crate) fn zero(&self) -> Option<Value> {
        match self.presence {
            Presence::WhenNotZero | Presence::WhenSet => None,
            Presence::OrNull => Some(Value::Null),
            Presence::Always => Some(match self.shape {
                Shape::One(leaf) => leaf.zero(),
                Shape::List(_) | Shape::Map(_) | Shape::MapOfLists(_) => Value::Null,
            }),
        }
    }

    /// The field's Go type, as error messages name it.
    pub(crate) fn go_type(&self) -> String {
        match (self.go_type, self.shape) {
            (Some(named), _) => named.to_owned(),
            (None, Shape::One(leaf)) => leaf.go_type().to_owned(),
            (None, Shape::List(leaf)) => format!("[]{}", leaf.go_type()),
            (None, Shape::Map(leaf)) => format!("map[string]{}", leaf.go_type()),
            (None, Shape::MapOfLists(leaf)) => format!("map[string][]{}", leaf.go_type()),
        }
    }

    /// The Go type of one element, where the field is a list or a map.
    pub(crate) fn element_go_type(&self) -> String {
        let all = self.go_type();
        match all.strip_prefix("[]").or_else(|| all.strip_prefix("map[string]")) {
            Some(element) => element.to_owned(),
            None => match self.shape {
                Shape::One(leaf) | Shape::List(leaf) | Shape::Map(leaf) => leaf.go_type().to_owned(),
                Shape::MapOfLists(leaf) => format!("[]{}", leaf.go_type()),
            },
        }
    }

    fn parse(text: &'static str) -> Field {
        let mark = text.find(['!', '?', '*', '+']).expect("a field says when it is present");
        let presence = match text.as_bytes()[mark] {
            b'!' => Presence::Always,
            b'?' => Presence::WhenNotZero,
            b'*' => Presence::WhenSet,
            _ => Presence::OrNull,
        };
        let rest = &text[mark + 1..];
        let (shape, go_type) = match rest.split_once('~') {
            Some((shape, go_type)) => (shape, Some(go_type)),
            None => (rest, None),
        };
        let (patch, apply) = Default::default();
        Field { name: &text[..mark], presence, shape: Shape::parse(shape), go_type, patch, apply }
    }
}

impl Shape {
    /// The struct that a value, or each element of a list, is.
    pub(crate) fn structure(self) -> Option<&'static Struct> {
        match self {
            Shape::One(Leaf::Struct(id)) | Shape::List(Leaf::Struct(id)) => Some(id.resolve()),
            _ => None,
        }
    }

    /// The shape of one element of a list or a map.
    pub(crate) fn element(self) -> Shape {
        match self {
            Shape::One(leaf) | Shape::List(leaf) | Shape::Map(leaf) => Shape::One(leaf),
            Shape::MapOfLists(leaf) => Shape::List(leaf),
        }
    }

    fn parse(text: &str) -> Shape {
        if let Some(list) = text.strip_prefix("{[") {
            Shape::MapOfLists(Leaf::parse(list))
        } else if let Some(element) = text.strip_prefix('{') {
            Shape::Map(Leaf::parse(element))
        } else if let Some(element) = text.strip_prefix('[') {
            Shape::List(Leaf::parse(element))
        } else {
            Shape::One(Leaf::parse(text))
        }
    }
}

impl Leaf {
    pub(crate) fn zero(self) -> Value {
        match self {
            Leaf::String => Value::from(""),
            Leaf::Duration => Value::from("0s"),
            Leaf::Int32 | Leaf::Int64 | Leaf::Float | Leaf::IntOrString => Value::from(0),
            Leaf::Bool => Value::from(false),
            Leaf::Quantity => Value::from("0"),
            Leaf::Bytes
            | Leaf::Time
            | Leaf::MicroTime
            | Leaf::Any
            | Leaf::StructOrList(_)
            | Leaf::StructOrBool(_)
            | Leaf::StructOrStrings(_) => Value::Null,
            Leaf::Struct(id) => id.resolve().zero(),
        }
    }

    fn go_type(self) -> &'static str {
        match self {
            Leaf::String => "string",
            Leaf::Int32 => "int32",
            Leaf::Int64 => "int64",
            Leaf::Bool => "bool",
            Leaf::Float => "float64",
            Leaf::Bytes => "[]uint8",
            Leaf::Time => "v1.Time",
            Leaf::MicroTime => "v1.MicroTime",
            Leaf::Duration => "v1.Duration",
            Leaf::Quantity => "resource.Quantity",
            Leaf::IntOrString => "intstr.IntOrString",
            Leaf::Any => "runtime.RawExtension",
            Leaf::Struct(id) => id.resolve().go_type(),
            Leaf::StructOrList(_) => "v1.JSONSchemaPropsOrArray",
            Leaf::StructOrBool(_) => "v1.JSONSchemaPropsOrBool",
            Leaf::StructOrStrings(_) => "v1.JSONSchemaPropsOrStringArray",
        }
    }

    fn parse(text: &str) -> Leaf {
        let (letter, number) = text.split_at(1);
        match letter {
            "s" => Leaf::String,
            "i" => Leaf::Int32,
            "l" => Leaf::Int64,
            "b" => Leaf::Bool,
            "f" => Leaf::Float,
            "y" => Leaf::Bytes,
            "t" => Leaf::Time,
            "u" => Leaf::MicroTime,
            "d" => Leaf::Duration,
            "q" => Leaf::Quantity,
            "x" => Leaf::IntOrString,
            "o" => Leaf::StructOrList(StructId::parse(number)),
            "p" => Leaf::StructOrBool(StructId::parse(number)),
            "a" => Leaf::StructOrStrings(StructId::parse(number)),
            "#" => Leaf::Struct(StructId::parse(number)),
            _ => Leaf::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_struct_finds_each_of_its_fields_by_name() {
        for each in &Structs::get().structs {
            for (at, field) in each.fields().iter().enumerate() {
                let (found, _) = each.field(field.name).unwrap();
                assert_eq!(usize::from(found), at, "{}.{}", each.go_type(), field.name);
            }
            assert!(each.field("noSuchField").is_none());
        }
    }

    #[test]
    fn every_kind_is_written_with_its_type_first_and_metadata_next() {
        let structs = Structs::get();
        let heads = structs.kinds.values().map(|id| {
            let names: Vec<_> = structs.at(*id).fields().iter().take(3).map(|field| field.name).collect();
            names.join(" ")
        });
        // 64 kinds, and 10 structs of requests and answers.
        assert_eq!(heads.filter(|head| head == "kind apiVersion metadata").count(), 64 + 10);
    }

    #[test]
    fn metadata_is_written_in_the_servers_order() {
        let names: Vec<_> = Structs::object_meta().fields().iter().map(|field| field.name).collect();
        let expected = "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp \
                        deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields";
        assert_eq!(names.join(" "), expected);
    }
}
