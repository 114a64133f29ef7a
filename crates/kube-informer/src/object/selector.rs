//! Label and field selectors.

use std::fmt;
use std::str::FromStr;

pub use self::field::FieldSelector;

use super::Labels;
use super::ParseError;

mod field;
mod parse;
mod rules;

/// A label selector: `app=web,tier in (a,b),!canary`.
///
/// Parsed as by the API server, rejected with the error messages of the server and printed in its
/// canonical form. The empty selector selects everything.
///
/// ```
/// use kube_informer::{Obj, Selector, Untyped};
///
/// let selector: Selector = "app = web, tier in (b,a), !canary".parse()?;
/// assert_eq!(selector.to_string(), "app=web,!canary,tier in (a,b)");
///
/// let pod = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a","labels":{"app":"web","tier":"a"}}}"#).unwrap();
/// assert!(selector.matches(&pod.labels()));
///
/// let refused = "app web".parse::<Selector>().unwrap_err();
/// assert_eq!(refused.to_string(), "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt");
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Sorted by key.
    requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Requirement {
    key: Box<str>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Test {
    Exists,
    Missing,
    Equal(Box<str>),
    NotEqual(Box<str>),
    /// Sorted, without duplicates.
    In(Vec<Box<str>>),
    NotIn(Vec<Box<str>>),
    GreaterThan(i64),
    LessThan(i64),
}

impl Selector {
    /// The selector that selects everything.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// Whether this selects everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &Labels<'_>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.passes(labels.get(&requirement.key)))
    }

    /// The labels every selected object has: each key with one of these values.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = (&str, &[Box<str>])> {
        self.requirements.iter().filter_map(|Requirement { key, test }| match test {
            Test::Equal(value) => Some((&**key, std::slice::from_ref(value))),
            Test::In(values) => Some((&**key, values.as_slice())),
            _ => None,
        })
    }
}

impl Test {
    fn passes(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(parse::integer);
        match self {
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::Equal(wanted) => value == Some(wanted),
            Self::NotEqual(other) => value != Some(other),
            Self::In(values) => value.is_some_and(|value| values.iter().any(|wanted| **wanted == *value)),
            Self::NotIn(values) => value.is_none_or(|value| values.iter().all(|other| **other != *value)),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FromStr for Selector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut requirements = parse::requirements(text).map_err(ParseError::new)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            fmt::Display::fmt(requirement, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Exists => write!(f, "{key}"),
            Test::Missing => write!(f, "!{key}"),
            Test::Equal(value) => write!(f, "{key}={value}"),
            Test::NotEqual(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", values.join(",")),
            Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(",")),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

#[cfg(test)]
mod tests;
