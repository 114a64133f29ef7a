//! Field selectors.

use std::fmt;
use std::str::FromStr;

use crate::object::ObjectKey;
use crate::object::ParseError;

/// A field selector: `metadata.name=web,status.phase!=Running`. The empty one selects everything.
///
/// The server defines which fields of a kind can be selected; only `metadata.name` and
/// `metadata.namespace` can be evaluated locally.
///
/// ```
/// use kube_informer::FieldSelector;
///
/// let selector: FieldSelector = r"metadata.name==a,spec.nodeName!=x\,y".parse()?;
/// assert_eq!(selector.to_string(), r"metadata.name=a,spec.nodeName!=x\,y");
/// assert!("spec.nodeName".parse::<FieldSelector>().is_err());
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Term {
    field: Box<str>,
    operator: Operator,
    value: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operator {
    Equal,
    NotEqual,
}

impl FieldSelector {
    /// The selector that selects everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector of objects with this name, of which there is one per namespace.
    #[must_use]
    pub fn named(name: impl Into<Box<str>>) -> Self {
        Self { terms: vec![Term { field: "metadata.name".into(), operator: Operator::Equal, value: name.into() }] }
    }

    /// Whether this selects everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an object with this key is selected: `None` if that depends on other fields.
    ///
    /// ```
    /// use kube_informer::{FieldSelector, ObjectKey};
    ///
    /// let key = ObjectKey::namespaced("default", "a");
    /// assert_eq!("metadata.name=a".parse::<FieldSelector>()?.matches(&key), Some(true));
    /// assert_eq!("metadata.name=a,spec.nodeName=n1".parse::<FieldSelector>()?.matches(&key), None);
    /// assert_eq!("metadata.name=b,spec.nodeName=n1".parse::<FieldSelector>()?.matches(&key), Some(false));
    /// # Ok::<_, kube_informer::object::ParseError>(())
    /// ```
    #[must_use]
    pub fn matches(&self, key: &ObjectKey) -> Option<bool> {
        let mut unknown = false;
        for term in &self.terms {
            let value = match &*term.field {
                "metadata.name" => key.name(),
                "metadata.namespace" => key.namespace().unwrap_or_default(),
                _ => {
                    unknown = true;
                    continue;
                }
            };
            if (*term.value == *value) != (term.operator == Operator::Equal) {
                return Some(false);
            }
        }
        (!unknown).then_some(true)
    }
}

impl FromStr for FieldSelector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parts = unescaped_parts(text).into_iter().filter(|part| !part.is_empty());
        let terms = parts.map(|part| {
            let found = part.char_indices().find_map(|(at, _)| {
                let operators = [("!=", Operator::NotEqual), ("==", Operator::Equal), ("=", Operator::Equal)];
                let found =
                    operators.into_iter().find_map(|(op, operator)| Some((part[at..].strip_prefix(op)?, operator)));
                found.map(|(value, operator)| (&part[..at], operator, value))
            });
            let Some((field, operator, value)) = found else {
                return Err(ParseError::new(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            Ok(Term { field: field.into(), operator, value: unescape(value)?.into() })
        });
        Ok(Self { terms: terms.collect::<Result<_, _>>()? })
    }
}

fn unescaped_parts(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let is_separator = |c: char| {
        let separates = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separates
    };
    text.split(is_separator).collect()
}

fn unescape(value: &str) -> Result<String, ParseError> {
    let reject = |why: String| Err(ParseError::new(format!("invalid field selector: {why}")));
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    return reject(format!("invalid escape sequence: \\{}", other.map_or(String::new(), String::from)));
                }
            },
            ',' | '=' => return reject(format!("unescaped character in value: {c}")),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Term { field, operator, value }) in self.terms.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let sign = if *operator == Operator::Equal { "=" } else { "!=" };
            let value = value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{field}{sign}{value}")?;
        }
        Ok(())
    }
}
