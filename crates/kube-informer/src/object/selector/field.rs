//! Field selectors.

use std::fmt;
use std::str::FromStr;

use crate::object::ObjectKey;
use crate::object::ParseError;

/// A field selector: `metadata.name=web,status.phase!=Running`. The empty one selects everything.
///
/// Which fields a kind can be selected by is for the server to say; only `metadata.name` and `metadata.namespace` can be
/// judged here.
///
/// ```
/// use kube_informer::FieldSelector;
///
/// let selector: FieldSelector = r"metadata.name==a,spec.nodeName!=x\,y".parse()?;
/// assert_eq!(selector.to_string(), r"metadata.name=a,spec.nodeName!=x\,y");
/// assert!("spec.nodeName".parse::<FieldSelector>().is_err());
/// # Ok::<_, kube_informer::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Term {
    field: Box<str>,
    wanted: Wanted,
    value: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wanted {
    Equal,
    Different,
}

impl FieldSelector {
    /// The selector that selects everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector of the objects of this name, of which there is one in a namespace.
    #[must_use]
    pub fn named(name: impl Into<Box<str>>) -> Self {
        Self { terms: vec![Term { field: "metadata.name".into(), wanted: Wanted::Equal, value: name.into() }] }
    }

    /// Whether this selects everything there is.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an object of this key is selected, as far as names tell: `None` if that hangs on other fields as well.
    ///
    /// ```
    /// use kube_informer::{FieldSelector, ObjectKey};
    ///
    /// let key = ObjectKey::namespaced("default", "a");
    /// assert_eq!("metadata.name=a".parse::<FieldSelector>()?.matches(&key), Some(true));
    /// assert_eq!("metadata.name=a,spec.nodeName=n1".parse::<FieldSelector>()?.matches(&key), None);
    /// assert_eq!("metadata.name=b,spec.nodeName=n1".parse::<FieldSelector>()?.matches(&key), Some(false));
    /// # Ok::<_, kube_informer::ParseError>(())
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
            if (*term.value == *value) != (term.wanted == Wanted::Equal) {
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
                let operators = [("!=", Wanted::Different), ("==", Wanted::Equal), ("=", Wanted::Equal)];
                let found = operators.into_iter().find_map(|(op, wanted)| Some((part[at..].strip_prefix(op)?, wanted)));
                found.map(|(value, wanted)| (&part[..at], wanted, value))
            });
            let Some((field, wanted, value)) = found else {
                return Err(ParseError::new(format!("invalid selector: '{text}'; can't understand '{part}'")));
            };
            Ok(Term { field: field.into(), wanted, value: unescape(value)?.into() })
        });
        Ok(Self { terms: terms.collect::<Result<_, _>>()? })
    }
}

fn unescaped_parts(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let part_ends = |c: char| {
        let ends = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    };
    text.split(part_ends).collect()
}

fn unescape(value: &str) -> Result<String, ParseError> {
    let refuse = |why: String| Err(ParseError::new(format!("invalid field selector: {why}")));
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    return refuse(format!("invalid escape sequence: \\{}", other.map_or(String::new(), String::from)));
                }
            },
            ',' | '=' => return refuse(format!("unescaped character in value: {c}")),
            c => plain.push(c),
        }
    }
    Ok(plain)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Term { field, wanted, value }) in self.terms.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let operator = if *wanted == Wanted::Equal { "=" } else { "!=" };
            let value = value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{field}{operator}{value}")?;
        }
        Ok(())
    }
}
