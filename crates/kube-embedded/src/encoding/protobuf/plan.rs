//! Encoding plans: the message descriptor and the Go struct of each kind, combined once per
//! process.

use std::collections::HashMap;
use std::sync::OnceLock;

pub(super) use super::messages::Repeats;
use super::messages::{self, Messages};
use crate::kinds::schema::{Field, Leaf, Presence, Shape, StructId, Structs};

/// The plans of all kinds, built once per process.
#[derive(Debug)]
pub(super) struct Plans {
    all: Vec<Plan>,
    by_name: HashMap<&'static str, PlanId>,
}

/// Index of a plan in [`Plans`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlanId(usize);

/// A message and the JSON names and types of its fields.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Sorted by field number, which is also the order on the wire.
    parts: Box<[Part]>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) number: u32,
    /// The JSON name.
    pub(super) name: &'static str,
    pub(super) written: Written,
    pub(super) repeats: Repeats,
    pub(super) of: Of,
}

/// When a singular field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Even if it is empty: the Go field is not a pointer.
    Always,
    WhenSet,
}

/// The type of a field or of its elements.
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
    /// Arbitrary JSON, encoded as text.
    Json,
    /// A list of strings wrapped in a message.
    Texts,
    /// `JSONSchemaPropsOr…`: a schema or its alternative.
    Either(Other, PlanId),
    Message(PlanId),
    /// An embedded Go struct, whose fields are inlined into the surrounding JSON object.
    Embedded(PlanId),
}

/// The alternative to a schema in a `JSONSchemaPropsOr…` message.
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

    /// The plan of a kind, or of another top-level message such as `Status`.
    pub(super) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Plan> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let found = match (group, kind) {
            // Served in every group.
            (_, "DeleteOptions" | "Status") => self.by_name.get(format!("/v1/{kind}").as_str()),
            // Discovery documents may omit their apiVersion.
            ("", _) if version.is_empty() => self.by_name.get(format!("/v1/{kind}").as_str()),
            ("meta.k8s.io", _) => self.by_name.get(format!("meta.k8s.io/v1/{kind}").as_str()),
            _ => self.by_name.get(format!("{group}/{version}/{kind}").as_str()),
        };
        found.map(|id| self.at(*id))
    }

    /// The names of all plans, `group/version/Kind`.
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

    /// The field with that number.
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
    /// Builds the plan of a message whose JSON field names are those of a struct.
    fn plan(&mut self, message: usize, of: StructId) -> PlanId {
        if let Some(made) = self.made.get(&(message, of)) {
            return *made;
        }
        let id = PlanId(self.all.len());
        // Inserted before its fields are planned, because messages can be recursive.
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
            // Go slices can be nil without being pointers.
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

    /// The plan of the schema inside a `JSONSchemaPropsOr…` message.
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

/// The struct field for a message field: the same name, or the name with different case, a leading
/// `$` or in kebab case.
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
        // All but three structs, which objects contain as text.
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

    /// All plans by their message and struct.
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
