//! Rules about one field.

use std::collections::HashSet;

use serde_json::Value;

use super::condition::is_set;
use super::formats::{self, Format};
use super::{Site, checks};
use crate::encoding::json;
use crate::http::status::Cause;
use crate::kinds::quantity;
use crate::kinds::schema::{Leaf, Presence, Shape, Struct};

const IMMUTABLE: &str = "field is immutable";

/// A field that a rule is about.
pub(super) struct Field<'f> {
    pub(super) path: &'f str,
    pub(super) value: &'f Value,
    pub(super) old: Option<&'f Value>,
    pub(super) shape: Option<Shape>,
}

/// What a field must be. A message follows the word, up to the end of the column.
#[derive(Debug)]
pub(super) enum Rule {
    /// `required`: it must not be empty.
    Required(&'static str),
    /// `present`: it may be empty, but must be there.
    Present,
    /// `missing`: the condition says that a value is missing.
    Missing(&'static str),
    /// `forbidden`: it must not be set.
    Forbidden(&'static str),
    /// `invalid`: the condition says that the value is invalid.
    Invalid(&'static str),
    /// `in a,b`: one of these, if set. `in! a,b`: also if it is empty.
    In {
        values: Vec<&'static str>,
        also_empty: bool,
    },
    /// `one-of message: a,b`: one of these, if set, with this message. `one-of! message: a,b`: also
    /// if it is empty.
    OneOf {
        values: Vec<&'static str>,
        message: &'static str,
        also_empty: bool,
    },
    /// `min n`: at least this, if set.
    Min(i64),
    /// `positive`: greater than zero, if set.
    Positive,
    /// `between a b`: in this range, if set.
    Between(i64, i64),
    /// `exactly n`, if set.
    Exactly(i64),
    /// `port`: a port number, if not 0. `port!`: also if it is 0.
    Port {
        also_zero: bool,
    },
    /// `port-or-name`: a port number, or the name of a port.
    PortOrName,
    /// `percent`: a number or a percentage, not negative.
    Percent,
    /// `at-most-all`: not more than 100 %.
    AtMostAll,
    /// `quantity`, `positive-quantity`.
    Quantity {
        positive: bool,
    },
    /// `unique name`: no two items have the same value of this field.
    Unique(&'static str),
    /// `immutable`, `immutable-as-go`, `immutable-as-null`: the value must not change.
    Immutable(Shown),
    /// `unchangeable message`: the same in other words.
    Unchangeable(&'static str),
    /// `labels`, `annotations`: a map of labels, or annotations.
    Labels,
    Annotations,
    /// `keys`: the keys of data.
    Keys,
    /// `trimmed`: without spaces around it.
    Trimmed,
    /// `longest n`: at most this many characters.
    Longest(usize),
    /// A string in this format, if it is not empty.
    Format(Format),
    /// `check name argument`: a function.
    Check(checks::Check, &'static str),
}

/// How a message shows the value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown {
    Json,
    /// With the names of Go fields.
    Go,
    Null,
}

impl Rule {
    pub(super) fn parse(text: &'static str) -> Rule {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let number = |text: &str| text.parse().expect("a number");
        let values = |text: &'static str| text.split(',').collect();
        match word {
            "required" => Rule::Required(rest),
            "present" => Rule::Present,
            "missing" => Rule::Missing(rest),
            "forbidden" => Rule::Forbidden(rest),
            "invalid" => Rule::Invalid(rest),
            "in" | "in!" => Rule::In { values: values(rest), also_empty: word == "in!" },
            "one-of" | "one-of!" => {
                let (message, list) = rest.rsplit_once(": ").expect("a message and values");
                Rule::OneOf { values: values(list), message, also_empty: word == "one-of!" }
            }
            "min" => Rule::Min(number(rest)),
            "positive" => Rule::Positive,
            "between" => {
                let (low, high) = rest.split_once(' ').expect("two numbers");
                Rule::Between(number(low), number(high))
            }
            "exactly" => Rule::Exactly(number(rest)),
            "port" | "port!" => Rule::Port { also_zero: word == "port!" },
            "port-or-name" => Rule::PortOrName,
            "percent" => Rule::Percent,
            "at-most-all" => Rule::AtMostAll,
            "quantity" | "positive-quantity" => Rule::Quantity { positive: word != "quantity" },
            "unique" => Rule::Unique(rest),
            "immutable" => Rule::Immutable(Shown::Json),
            "immutable-as-go" => Rule::Immutable(Shown::Go),
            "immutable-as-null" => Rule::Immutable(Shown::Null),
            "unchangeable" => Rule::Unchangeable(rest),
            "labels" => Rule::Labels,
            "annotations" => Rule::Annotations,
            "keys" => Rule::Keys,
            "trimmed" => Rule::Trimmed,
            "longest" => Rule::Longest(rest.parse().expect("a number")),
            "check" => {
                let (name, argument) = rest.split_once(' ').unwrap_or((rest, ""));
                Rule::Check(checks::named(name), argument)
            }
            format => Rule::Format(formats::named(format)),
        }
    }

    pub(super) fn evaluate(&self, site: &Site<'_>, field: &Field<'_>, causes: &mut Vec<Cause>) {
        let Field { path, value, old, .. } = *field;
        let number = value.as_i64();
        let text = value.as_str().unwrap_or_default();
        let invalid = |why: &str| Cause::invalid(path, field.shown(), why);
        match self {
            Rule::Required(why) if is_empty(value) => causes.push(Cause::required(path, why)),
            Rule::Present if value.is_null() => causes.push(Cause::required(path, "")),
            Rule::Missing(why) => causes.push(Cause::required(path, why)),
            Rule::Forbidden(why) if is_set(value) && number != Some(0) => causes.push(Cause::forbidden(path, why)),
            Rule::Invalid(why) => causes.push(invalid(why)),
            Rule::In { values, also_empty } if (*also_empty || is_set(value)) && !values.contains(&text) => {
                causes.push(unsupported(path, text, values));
            }
            Rule::OneOf { values, message, also_empty }
                if !values.contains(&text) && (*also_empty || is_set(value)) =>
            {
                causes.push(invalid(message));
            }
            Rule::Min(least) if number.is_some_and(|number| number < *least) => {
                causes.push(invalid(&format!("must be greater than or equal to {least}")));
            }
            Rule::Positive if number.is_some_and(|number| number <= 0) => {
                causes.push(invalid("must be greater than 0"));
            }
            Rule::Between(low, high) if number.is_some_and(|number| !(*low..=*high).contains(&number)) => {
                causes.push(invalid(&format!("must be between {low} and {high}, inclusive")));
            }
            Rule::Exactly(only) if number.is_some_and(|number| number != *only) => {
                causes.push(invalid(&format!("must be {only}")));
            }
            Rule::Port { also_zero } => {
                let number = number.unwrap_or(0);
                if (number != 0 || *also_zero) && !formats::is_port(number) {
                    causes.push(Cause::invalid(path, number, formats::NO_PORT));
                }
            }
            Rule::PortOrName => match value {
                Value::String(name) => causes.extend(formats::port_name(name).iter().map(|why| invalid(why))),
                Value::Number(_) if !number.is_some_and(formats::is_port) => causes.push(invalid(formats::NO_PORT)),
                _ => {}
            },
            Rule::Percent => match value {
                Value::String(text) if !formats::is_percent(text) => causes.push(invalid(formats::NO_PERCENT)),
                Value::Number(_) if number.is_some_and(|number| number < 0) => {
                    causes.push(invalid("must be greater than or equal to 0"));
                }
                _ => {}
            },
            Rule::AtMostAll => {
                let digits = text.strip_suffix('%').filter(|_| formats::is_percent(text));
                // Digits that do not fit are a great number.
                if digits.is_some_and(|digits| digits.parse().unwrap_or(i64::MAX) > 100) {
                    causes.push(invalid("must not be greater than 100%"));
                }
            }
            Rule::Quantity { positive } => match (quantity::nanos_of(text), positive) {
                (Some(amount), true) if amount <= 0 => causes.push(invalid("must be greater than zero")),
                (Some(amount), false) if amount < 0 => causes.push(invalid("must be greater than or equal to 0")),
                _ => {}
            },
            Rule::Unique(key) => unique(path, value, key, causes),
            Rule::Immutable(_) | Rule::Unchangeable(_) if old.is_none_or(|old| same(old, value)) => {}
            Rule::Unchangeable(_) if !old.is_some_and(is_set) => {}
            Rule::Unchangeable(why) => causes.push(Cause::forbidden(path, why)),
            Rule::Immutable(shown) => {
                let shown = match (shown, field.shape) {
                    (Shown::Go, Some(Shape::One(Leaf::Struct(of)))) => as_in_go(of.resolve(), value),
                    (Shown::Null, _) => "null".to_owned(),
                    _ => field.shown(),
                };
                causes.push(Cause::invalid(path, shown, IMMUTABLE));
            }
            Rule::Labels => formats::labels(path, value, causes),
            Rule::Annotations => formats::annotations(path, value, causes),
            Rule::Keys => formats::keys(path, value, causes),
            Rule::Trimmed if text.trim() != text => {
                causes.push(invalid("must not have leading or trailing whitespace"));
            }
            Rule::Longest(most) if text.len() > *most => {
                causes.push(invalid(&format!("must be no more than {most} characters")));
            }
            Rule::Format(problems) if !text.is_empty() => causes.extend(problems(text).iter().map(|why| invalid(why))),
            Rule::Check(check, argument) => {
                let (place, of) = (path.to_owned(), field.shape.and_then(Shape::inner).unwrap_or(site.of));
                check(&Site { field: &place, value, old, of, ..*site }, argument, causes);
            }
            _ => {}
        }
    }
}

impl Field<'_> {
    /// The value in a message: that of the Go type, which is not null for strings and numbers.
    pub(super) fn shown(&self) -> String {
        let value = match (self.value, self.shape) {
            (Value::Null, Some(Shape::One(leaf @ (Leaf::String | Leaf::Int32 | Leaf::Int64)))) => &leaf.zero(),
            (value, _) => value,
        };
        let encoded = match self.shape {
            Some(shape) if !value.is_null() => json::encode_shaped(shape, value),
            _ => json::encode_sorted(value),
        };
        String::from_utf8_lossy(&encoded).into_owned()
    }
}

pub(super) fn unsupported(path: &str, value: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    Cause::unsupported(path, formats::quoted(value), &supported.join(", "))
}

fn is_empty(value: &Value) -> bool {
    !is_set(value) || value.as_i64() == Some(0) || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Whether two values are the same, where what is empty is missing.
fn same(one: &Value, other: &Value) -> bool {
    one == other || !is_set(one) && !is_set(other)
}

fn unique(path: &str, list: &Value, key: &str, causes: &mut Vec<Cause>) {
    let mut seen = HashSet::new();
    for (at, item) in list.as_array().into_iter().flatten().enumerate() {
        let name = &item[key];
        if !seen.insert(name) && is_set(name) {
            causes.push(Cause::duplicate(&format!("{path}[{at}].{key}"), name));
        }
    }
}

/// A value with the names of its Go fields, as the real server shows those of types without JSON
/// names.
pub(super) fn as_in_go(of: &'static Struct, value: &Value) -> String {
    let members = of.fields().iter().map(|field| {
        let mut name = field.name.to_owned();
        name[..1].make_ascii_uppercase();
        let (name, value) = (name.replace("Api", "API"), &value[field.name]);
        let shown = match (field.shape, value) {
            // A type with JSON names.
            (shape, value) if shape.inner().is_some_and(|inner| inner.name() == "LabelSelector") => {
                String::from_utf8_lossy(&json::encode_shaped(shape, value)).into_owned()
            }
            (Shape::One(Leaf::Struct(inner)), value) if value.is_object() => as_in_go(inner.resolve(), value),
            (Shape::One(leaf), Value::Null) if field.presence != Presence::WhenSet => leaf.zero().to_string(),
            (_, value) => value.to_string(),
        };
        format!("\"{name}\":{shown}")
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
