//! How the objects of each kind go over the wire: what their messages and their Go structs say, put together once.

use std::collections::HashMap;
use std::sync::OnceLock;

pub(super) use super::messages::Repeats;
use super::messages::{self, Messages};
use crate::kinds::schema::{Field, Leaf, Presence, Shape, StructId, Structs};

/// The plans of all kinds, made once per process.
#[derive(Debug)]
pub(super) struct Plans {
    all: Vec<Plan>,
    by_name: HashMap<&'static str, PlanId>,
}

/// A plan's place among [`Plans`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlanId(usize);

/// One message with the JSON that it stands for.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// In the order of their numbers, which is the order on the wire.
    parts: Box<[Part]>,
}

/// One field of a message.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) number: u32,
    /// The name in JSON.
    pub(super) name: &'static str,
    pub(super) written: Written,
    pub(super) repeats: Repeats,
    pub(super) of: Of,
}

/// When a field that is there once is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Even if it is empty: Go has no pointer there.
    Always,
    WhenSet,
}

/// What a field, or each part of it, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Int32,
    Int64,
    Bool,
    Double,
    Text,
    Bytes,
    Time,
    MicroTime,
    Duration,
    Quantity,
    IntOrString,
    /// Any JSON, as text.
    Json,
    /// A list of texts with a message around it.
    Texts,
    /// A schema, or the other thing that may stand in its place.
    Either(Other, PlanId),
    Message(PlanId),
    /// A struct within a struct whose fields stand in JSON among those around it.
    Embedded(PlanId),
}

/// What may stand in the place of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    Schemas,
    Bool,
    Texts,
}

impl Plans {
    pub(super) fn get() -> &'static Plans {
        static PLANS: OnceLock<Plans> = OnceLock::new();
        PLANS.get_or_init(Plans::make)
    }

    pub(super) fn at(&self, id: PlanId) -> &Plan {
        &self.all[id.0]
    }

    /// The plan of a kind, or of something else that goes over the wire under its own name.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Plan> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = match (group, kind) {
            // They belong to every group.
            (_, "DeleteOptions" | "Status") => self.by_name.get(format!("/v1/{kind}").as_str()),
            // These documents may leave their version out.
            ("", _) if version.is_empty() => self.by_name.get(format!("/v1/{kind}").as_str()),
            ("meta.k8s.io", _) => self.by_name.get(format!("meta.k8s.io/v1/{kind}").as_str()),
            _ => self.by_name.get(format!("{group}/{version}/{kind}").as_str()),
        };
        found.map(|id| self.at(*id))
    }

    /// The names of all kinds, `group/version/Kind`.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }

    fn make() -> Plans {
        let mut maker = Maker { messages: Messages::get(), all: Vec::new(), made: HashMap::new() };
        let mut by_name = HashMap::new();
        for (name, of) in Structs::get().named() {
            if let Some(message) = maker.messages.named(name) {
                by_name.insert(name, maker.plan(message, of));
            }
        }
        Plans { all: maker.all, by_name }
    }
}

impl Plan {
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The part of that number.
    pub(super) fn part(&self, number: u32) -> Option<&Part> {
        self.parts.binary_search_by_key(&number, |part| part.number).ok().map(|at| &self.parts[at])
    }
}

struct Maker {
    messages: &'static Messages,
    all: Vec<Plan>,
    made: HashMap<(usize, StructId), PlanId>,
}

impl Maker {
    /// The plan of a message whose fields stand in JSON under the names of a struct.
    fn plan(&mut self, message: usize, of: StructId) -> PlanId {
        if let Some(made) = self.made.get(&(message, of)) {
            return *made;
        }
        let id = PlanId(self.all.len());
        // A message may contain itself, so its place is taken first.
        self.all.push(Plan::default());
        self.made.insert((message, of), id);
        let mut parts: Vec<Part> =
            self.messages.at(message).fields().iter().map(|field| self.part(field, of)).collect();
        parts.sort_unstable_by_key(|part| part.number);
        self.all[id.0] = Plan { parts: parts.into() };
        id
    }

    fn part(&mut self, field: &messages::Field, within: StructId) -> Part {
        let messages::Field { number, name, repeats, of } = *field;
        let Some(known) = json_field(within, name) else {
            let of = match of {
                messages::Of::Message(inner) => Of::Embedded(self.plan(inner, within)),
                scalar => plain(scalar),
            };
            return Part { number, name, written: Written::Always, repeats, of };
        };
        let leaf = match known.shape {
            Shape::One(leaf) | Shape::List(leaf) | Shape::Map(leaf) | Shape::MapOfLists(leaf) => leaf,
        };
        let of = match of {
            messages::Of::Message(inner) => self.message(inner, leaf),
            messages::Of::Whole if leaf == Leaf::Int32 => Of::Int32,
            scalar => plain(scalar),
        };
        let written = match (known.presence, of) {
            // Slices may be nil although there is no pointer.
            (_, Of::Bytes | Of::Texts) | (Presence::WhenSet | Presence::OrNull, _) => Written::WhenSet,
            (Presence::Always | Presence::WhenNotZero, _) => Written::Always,
        };
        Part { number, name: known.name, written, repeats, of }
    }

    fn message(&mut self, message: usize, leaf: Leaf) -> Of {
        match leaf {
            Leaf::Time => Of::Time,
            Leaf::MicroTime => Of::MicroTime,
            Leaf::Duration => Of::Duration,
            Leaf::Quantity => Of::Quantity,
            Leaf::IntOrString => Of::IntOrString,
            Leaf::Any => Of::Json,
            Leaf::Struct(of) => Of::Message(self.plan(message, of)),
            Leaf::StructOrList(of) => Of::Either(Other::Schemas, self.schema(message, of)),
            Leaf::StructOrBool(of) => Of::Either(Other::Bool, self.schema(message, of)),
            Leaf::StructOrStrings(of) => Of::Either(Other::Texts, self.schema(message, of)),
            Leaf::String | Leaf::Int32 | Leaf::Int64 | Leaf::Bool | Leaf::Float | Leaf::Bytes => Of::Texts,
        }
    }

    /// The plan of the schema within a message that may have something else in its place.
    fn schema(&mut self, message: usize, of: StructId) -> PlanId {
        let inner = self.messages.at(message).fields().iter().find_map(|field| match field.of {
            messages::Of::Message(inner) => Some(inner),
            _ => None,
        });
        self.plan(inner.unwrap_or(message), of)
    }
}

fn plain(of: messages::Of) -> Of {
    match of {
        messages::Of::Bool => Of::Bool,
        messages::Of::Float => Of::Double,
        messages::Of::Text => Of::Text,
        messages::Of::Bytes => Of::Bytes,
        messages::Of::Whole | messages::Of::Message(_) => Of::Int64,
    }
}

/// The field of a struct that a message has under this name, or nearly this name.
fn json_field(within: StructId, name: &str) -> Option<&'static Field> {
    let of = within.resolve();
    let field = |name: &str| of.field(name).map(|(_, field)| field);
    field(name).or_else(|| of.fields().iter().find(|field| field.name.eq_ignore_ascii_case(name))).or_else(|| {
        let mut kebab = String::new();
        for character in name.chars() {
            if character.is_ascii_uppercase() {
                kebab.push('-');
            }
            kebab.push(character.to_ascii_lowercase());
        }
        field(&format!("${name}")).or_else(|| field(&kebab))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_plan() {
        let kinds = Structs::get().named().filter(|(name, _)| Plans::get().by_name.contains_key(name)).count();
        // All but three structs that objects carry as text.
        assert_eq!(kinds, Structs::get().named().count() - 3);
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("", "APIVersions"),
            ("apps/v1", "DeleteOptions"),
            ("meta.k8s.io/v1beta1", "PartialObjectMetadata"),
        ] {
            assert!(Plans::get().of_kind(api_version, kind).is_some(), "{api_version} {kind}");
        }
        assert!(Plans::get().of_kind("v1", "Table").is_none());
    }

    #[test]
    fn nothing_but_embedded_structs_is_without_a_name_in_json() {
        let structs = Structs::get();
        for ((message, of), id) in made() {
            for part in Plans::get().at(id).parts() {
                if !matches!(part.of, Of::Embedded(_)) {
                    let found = of.resolve().field(part.name);
                    assert!(found.is_some(), "{}.{}", Messages::get().at(message).name, part.name);
                }
            }
        }
        assert!(structs.named().count() > 64);
    }

    #[test]
    fn metadata_is_the_first_part_of_every_object() {
        for name in Plans::get().names() {
            let plan = Plans::get().at(Plans::get().by_name[name]);
            if plan.parts().iter().any(|part| part.name == "metadata") {
                assert_eq!((plan.parts()[0].name, plan.parts()[0].number), ("metadata", 1), "{name}");
            }
        }
    }

    /// All plans with what they were made of.
    fn made() -> HashMap<(usize, StructId), PlanId> {
        let mut maker = Maker { messages: Messages::get(), all: Vec::new(), made: HashMap::new() };
        for (name, of) in Structs::get().named() {
            if let Some(message) = maker.messages.named(name) {
                maker.plan(message, of);
            }
        }
        assert_eq!(maker.all.len(), Plans::get().all.len());
        maker.made
    }
}
