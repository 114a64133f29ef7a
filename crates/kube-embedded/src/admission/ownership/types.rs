//! The schema at a position in an object, as far as field ownership needs it.

use serde_json::Value;

use crate::kinds::schema::{ApplyRule, Field, Leaf, Shape, Struct, Structs};
use crate::kinds::{Kind, Schema};

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'s> {
    Struct(&'static Struct),
    Field(&'static Field),
    /// One element of a list or a map.
    Element(Shape),
    /// A whole custom resource, by its schema.
    Custom(&'s Value),
    /// A part of a custom resource, by its schema.
    Schema(&'s Value),
    /// No schema: the value itself shows its type.
    Any,
}

/// The granularity of ownership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Granularity<'s> {
    /// Atomic: the whole value has one set of owners.
    Atomic,
    /// Ownership per field.
    Fields,
    /// Ownership per value: `listType: set`.
    Set,
    /// Ownership per item, identified by these key fields: `listType: map`.
    Map(Vec<&'s str>),
}

impl<'s> Type<'s> {
    pub(crate) fn of(kind: &'s Kind) -> Self {
        match (kind.schema, &kind.structure) {
            (Schema::Typed(of), _) => Self::Struct(of),
            (Schema::Custom, Some(structure)) => Self::Custom(structure.schema()),
            (Schema::Custom, None) => Self::Any,
        }
    }

    /// The granularity of ownership of a value. A value that does not match its type is atomic.
    pub(super) fn sharing(self, value: &Value) -> Granularity<'s> {
        match self {
            Self::Custom(_) => Granularity::Fields,
            Self::Struct(of) => whole_if(of.atomic),
            Self::Field(field) => match (field.shape, &field.apply) {
                (_, ApplyRule::Atomic) => Granularity::Atomic,
                (_, ApplyRule::Granular) => Granularity::Fields,
                (Shape::List(_), ApplyRule::Set) => Granularity::Set,
                (Shape::List(_), ApplyRule::Keyed(keys)) => Granularity::Map(keys.to_vec()),
                (Shape::List(_), ApplyRule::Plain) => Granularity::Atomic,
                (shape, _) => Self::Element(shape).sharing(value),
            },
            Self::Element(Shape::One(Leaf::Struct(id))) => whole_if(id.resolve().atomic),
            Self::Element(Shape::One(
                Leaf::Any | Leaf::StructOrBool(_) | Leaf::StructOrList(_) | Leaf::StructOrStrings(_),
            ))
            | Self::Any => whole_if(!value.is_object()),
            Self::Element(Shape::Map(_) | Shape::MapOfLists(_)) => Granularity::Fields,
            Self::Element(Shape::One(_) | Shape::List(_)) => Granularity::Atomic,
            Self::Schema(schema) => match schema["type"].as_str() {
                Some("array") => match schema["x-kubernetes-list-type"].as_str() {
                    Some("set") => Granularity::Set,
                    Some("map") => {
                        let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                        Granularity::Map(keys.filter_map(Value::as_str).collect())
                    }
                    _ => Granularity::Atomic,
                },
                Some("object") => whole_if(schema["x-kubernetes-map-type"] == "atomic"),
                _ => whole_if(!value.is_object()),
            },
        }
    }

    /// The type of a field; `None` if there is no such field.
    pub(super) fn field(self, name: &str) -> Option<Type<'s>> {
        match self {
            Self::Struct(of) => of.field(name).map(|(_, field)| Self::Field(field)),
            Self::Field(field) => Self::Element(field.shape).field(name),
            Self::Element(Shape::One(Leaf::Struct(id))) => Self::Struct(id.resolve()).field(name),
            Self::Element(shape @ (Shape::Map(_) | Shape::MapOfLists(_))) => Some(Self::Element(shape.element())),
            Self::Custom(schema) => match name {
                "apiVersion" | "kind" => Some(Self::Any),
                "metadata" => Some(Self::Struct(Structs::object_meta())),
                name => Self::Schema(schema).field(name),
            },
            Self::Schema(schema) => {
                let known = schema["properties"].get(name);
                let additional = &schema["additionalProperties"];
                match (known, additional.is_object(), schema["x-kubernetes-preserve-unknown-fields"] == true) {
                    (Some(known), _, _) => Some(Self::Schema(known)),
                    (None, true, _) => Some(Self::Schema(additional)),
                    (None, false, true) => Some(Self::Any),
                    (None, false, false) => None,
                }
            }
            Self::Element(_) | Self::Any => Some(Self::Any),
        }
    }

    /// Whether a field belongs to a struct, as opposed to a key of a map.
    pub(super) fn is_named(self, name: &str) -> bool {
        match self {
            Self::Struct(_) | Self::Custom(_) | Self::Element(Shape::One(Leaf::Struct(_))) => true,
            Self::Field(field) => Self::Element(field.shape).is_named(name),
            Self::Schema(schema) => schema["properties"].get(name).is_some(),
            Self::Element(_) | Self::Any => false,
        }
    }

    /// The type of the items of a list.
    pub(super) fn item(self) -> Type<'s> {
        match self {
            Self::Field(field) => Self::Element(field.shape.element()),
            Self::Element(shape) => Self::Element(shape.element()),
            Self::Schema(schema) => Self::Schema(&schema["items"]),
            Self::Struct(_) | Self::Custom(_) | Self::Any => Self::Any,
        }
    }

    /// Whether only strings are valid.
    pub(super) fn is_text(self) -> bool {
        match self {
            Self::Field(field) => field.shape == Shape::One(Leaf::String),
            Self::Element(shape) => shape == Shape::One(Leaf::String),
            _ => false,
        }
    }
}

fn whole_if<'s>(whole: bool) -> Granularity<'s> {
    if whole { Granularity::Atomic } else { Granularity::Fields }
}

/// The path element of an item that is identified by these key fields.
pub(super) fn keyed(keys: &[&str], item: &Value) -> String {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    let members: Vec<String> = keys
        .iter()
        .map(|key| match item.get(*key) {
            Some(value) => format!("\"{key}\":{value}"),
            // `protocol` is the only key with a default.
            None if *key == "protocol" => "\"protocol\":\"TCP\"".to_owned(),
            None => format!("\"{key}\":null"),
        })
        .collect();
    format!("k:{{{}}}", members.join(","))
}

/// The path element of a value in a set.
pub(super) fn valued(value: &Value) -> String {
    format!("v:{value}")
}
