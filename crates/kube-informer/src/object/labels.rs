//! Labels, borrowed from an object.

use std::fmt;

use super::strings::{self, Strings};

/// The labels of an object.
#[derive(Clone, Copy)]
pub struct Labels<'a>(Option<&'a Strings>);

impl<'a> Labels<'a> {
    pub(super) fn new(set: Option<&'a Strings>) -> Self {
        Self(set)
    }

    /// The value of the label `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// All of them, in the server's order, which is by key.
    #[must_use]
    pub fn iter(&self) -> LabelsIter<'a> {
        LabelsIter(self.0.map(Strings::iter))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl<'a> IntoIterator for Labels<'a> {
    type Item = (&'a str, &'a str);
    type IntoIter = LabelsIter<'a>;

    fn into_iter(self) -> LabelsIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Walks [`Labels`] as pairs of key and value.
#[derive(Debug, Clone)]
pub struct LabelsIter<'a>(Option<strings::Iter<'a>>);

impl<'a> Iterator for LabelsIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let strings = self.0.as_mut()?;
        Some((strings.next()?, strings.next()?))
    }
}
