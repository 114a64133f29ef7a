//! Paths to fields.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// The way to a field, as in `metadata.managedFields`, `spec.containers[*].env` or `metadata.labels['app.kubernetes.io/name']`.
///
/// A part of the JSONPath that the server's own printer columns use: names after dots, names in quotes in brackets, one element
/// by number, all elements with `*`. A leading `$`, a leading dot and surrounding braces may be there or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath {
    steps: Box<[Step]>,
}

/// One step down.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The field of this name.
    Field(Box<str>),
    /// The element at this place.
    Element(usize),
    /// Every element of a list.
    Every,
}

impl FieldPath {
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn find(&self, json: &[u8]) -> Option<String> {
        let value: serde_json::Value = serde_json::from_slice(json).ok()?;
        fn walk(value: &serde_json::Value, steps: &[Step]) -> Option<String> {
            use serde_json::Value;
            let Some((step, rest)) = steps.split_first() else {
                return match value {
                    Value::String(text) => Some(text.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
                    _ => None,
                };
            };
            match step {
                Step::Field(name) => walk(value.get(&**name)?, rest),
                Step::Element(at) => walk(value.get(*at)?, rest),
                Step::Every => value.as_array()?.iter().find_map(|value| walk(value, rest)),
            }
        }
        walk(&value, &self.steps)
    }
}

impl FromStr for FieldPath {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let steps = text.trim_matches(['{', '}']).trim_start_matches(['$', '.']);
        if steps.is_empty() {
            return Err(ParseError::new(format!("a path needs at least one field: {text:?}")));
        }
        Ok(Self { steps: steps.split('.').map(|name| Step::Field(name.into())).collect() })
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => write!(f, "{name}")?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Element(index) => write!(f, "[{index}]")?,
                Step::Every => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}
