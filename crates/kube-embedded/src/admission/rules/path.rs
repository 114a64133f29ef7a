//! Paths of fields, relative to a struct.

use serde_json::Value;

use crate::kinds::schema::{Leaf, Shape, Struct};

/// A path such as `spec.containers[].name`; `.` is the value itself.
#[derive(Debug)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug)]
enum Step {
    Member(String),
    /// One item of a list.
    Item(usize),
    EachItem,
    /// Each value of a map.
    EachValue,
}

impl Path {
    pub(super) fn parse(text: &str) -> Path {
        let mut steps = Vec::new();
        // A dot in a name is written as `\.`.
        let text = text.replace("\\.", "\0");
        for part in text.split('.').filter(|part| !part.is_empty()) {
            let (name, suffix) = part.find(['[', '{']).map_or((part, ""), |at| part.split_at(at));
            steps.push(Step::Member(name.replace('\0', ".")));
            match suffix {
                "" => {}
                "[]" => steps.push(Step::EachItem),
                "{}" => steps.push(Step::EachValue),
                item => steps.push(Step::Item(item.trim_matches(['[', ']']).parse().expect("an index"))),
            }
        }
        Path(steps)
    }

    /// Calls `found` with the path, value and old value of each field. A missing field has the
    /// value null.
    pub(super) fn visit(
        &self,
        value: &Value,
        old: Option<&Value>,
        found: &mut dyn FnMut(&str, &Value, Option<&Value>),
    ) {
        visit(&self.0, "", value, old, found);
    }

    /// The first field of the path.
    pub(super) fn first<'v>(&self, value: &'v Value) -> &'v Value {
        self.0.iter().fold(value, |value, step| match step {
            Step::Member(name) => &value[name.as_str()],
            Step::Item(at) => &value[*at],
            Step::EachItem => &value[0],
            Step::EachValue => value.as_object().and_then(|map| map.values().next()).unwrap_or(&Value::Null),
        })
    }

    /// The shape of the field in a struct, as far as it is typed.
    pub(super) fn shape(&self, of: &'static Struct) -> Option<Shape> {
        let mut shape = None;
        let mut of = Some(of);
        for step in &self.0 {
            shape = match step {
                Step::Member(name) => of.and_then(|of| of.field(name)).map(|(_, field)| field.shape),
                _ => shape.map(Shape::element),
            };
            of = match shape {
                Some(Shape::One(Leaf::Struct(id))) => Some(id.resolve()),
                _ => None,
            };
        }
        shape
    }

    /// Whether the path exists in the struct, up to a key of a map.
    #[cfg(test)]
    pub(super) fn leads_somewhere(&self, of: &'static Struct) -> bool {
        let Some(Step::Member(first)) = self.0.first() else { return self.0.is_empty() };
        let is_map = matches!(of.field(first), Some((_, field)) if matches!(field.shape, Shape::Map(_)));
        // The entries of maps are not typed.
        let entry = self
            .0
            .iter()
            .position(|step| matches!(step, Step::Member(name) if matches!(&**name, "requests" | "annotations")));
        is_map || entry.is_some() || self.shape(of).is_some()
    }
}

fn visit(
    steps: &[Step],
    place: &str,
    value: &Value,
    old: Option<&Value>,
    found: &mut dyn FnMut(&str, &Value, Option<&Value>),
) {
    let Some((step, rest)) = steps.split_first() else { return found(place, value, old) };
    match step {
        Step::Member(name) => {
            let old = old.map(|old| &old[name.as_str()]);
            visit(rest, &join(place, name), &value[name.as_str()], old, found);
        }
        Step::Item(at) => visit(rest, &format!("{place}[{at}]"), &value[*at], old.map(|old| &old[*at]), found),
        Step::EachItem => {
            for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                visit(rest, &format!("{place}[{at}]"), item, old.map(|old| &old[at]), found);
            }
        }
        Step::EachValue => {
            for (key, item) in value.as_object().into_iter().flatten() {
                visit(rest, &format!("{place}[{key}]"), item, old.map(|old| &old[key]), found);
            }
        }
    }
}

/// The path of a field in another.
pub(super) fn join(path: &str, field: &str) -> String {
    match (path, field) {
        ("", field) => field.to_owned(),
        (path, "") => path.to_owned(),
        (path, field) if field.starts_with('[') => format!("{path}{field}"),
        (path, field) => format!("{path}.{field}"),
    }
}
