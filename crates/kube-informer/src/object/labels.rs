//! A borrowed view of the labels of an object.

use std::fmt;

use super::strings;

/// The labels of an object.
///
/// ```
/// use kube_informer::Obj;
///
/// let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a","labels":{"app":"web","tier":"front"}}}"#)?;
/// assert_eq!(object.labels().get("app"), Some("web"));
/// assert_eq!(object.labels().iter().map(|(key, _)| key).collect::<Vec<_>>(), ["app", "tier"]);
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Labels<'a> {
    /// Keys and values alternating, followed by strings that are not labels.
    strings: &'a str,
    count: usize,
}

impl<'a> Labels<'a> {
    pub(super) fn new(strings: &strings::Iter<'a>, count: usize) -> Self {
        Self { strings: strings.rest(), count }
    }

    /// The value of the label `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// Iterates over the labels, in the order of the server, which is by key.
    #[must_use]
    pub fn iter(&self) -> LabelsIter<'a> {
        LabelsIter { strings: strings::Iter::over(self.strings), left: self.count }
    }

    /// Number of labels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
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

/// Iterator over [`Labels`] as pairs of key and value.
#[derive(Debug, Clone)]
pub struct LabelsIter<'a> {
    strings: strings::Iter<'a>,
    left: usize,
}

impl<'a> Iterator for LabelsIter<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((self.strings.next()?, self.strings.next()?))
    }
}
