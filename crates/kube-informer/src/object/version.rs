//! Resource versions.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A `resourceVersion`.
///
/// Numeric versions of one server are ordered (those of every kube-apiserver are numeric); others
/// can only be compared for equality.
///
/// ```
/// use kube_informer::Version;
///
/// assert!(Version::new("9") < Version::new("10"));
/// assert_eq!(Version::new("abc").partial_cmp(&Version::new("abd")), None);
/// assert_eq!(Version::new("10").to_string(), "10");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[doc(alias = "ResourceVersion")]
pub struct Version(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Number(u64),
    /// Boxed twice to keep a version at two words: no known server sends these.
    Text(Arc<Box<str>>),
}

impl Version {
    /// Creates a version from its text.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        // Stored as a number only if it prints back unchanged.
        let plain = text == "0" || (!text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit()));
        match text.parse() {
            Ok(number) if plain => Self(Repr::Number(number)),
            _ => Self(Repr::Text(Arc::new(text.into()))),
        }
    }

    /// The version of a decoded object, if it has one.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Version;
    ///
    /// let mut map = ConfigMap::default();
    /// assert_eq!(Version::of(&map), None, "no server has seen it");
    /// map.metadata.resource_version = Some("7".to_owned());
    /// assert_eq!(Version::of(&map), Some(Version::from(7)));
    /// ```
    #[must_use]
    pub fn of(object: &impl kube::Resource) -> Option<Self> {
        object.meta().resource_version.as_deref().filter(|version| !version.is_empty()).map(Self::new)
    }

    /// The version as a number, if it is one.
    ///
    /// ```
    /// use kube_informer::Version;
    ///
    /// assert_eq!(Version::new("7").number(), Some(7));
    /// assert_eq!(Version::new("abc").number(), None);
    /// ```
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Text(_) => None,
        }
    }

    /// Whether there is no version, as in an object that was never sent to a server.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_empty())
    }

    /// Whether a watch that has reached `known` may advance to this version: it is of its form and
    /// not older.
    pub(crate) fn may_follow(&self, known: &Self) -> bool {
        let is_older = self < known;
        self.has_form_of(known) && !is_older
    }

    /// Whether a server that has sent `known` may send this version: it is not empty, and not text
    /// after a number, which no server of numbers sends.
    pub(crate) fn has_form_of(&self, known: &Self) -> bool {
        !self.is_empty() && (self.number().is_some() || known.number().is_none())
    }

    /// Appends the text as the server wrote it.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match &self.0 {
            Repr::Text(text) => to.extend_from_slice(text.as_bytes()),
            Repr::Number(number) => {
                let (mut number, mut digits) = (*number, [0; 20]);
                let mut at = digits.len();
                loop {
                    at -= 1;
                    digits[at] = b'0' + (number % 10) as u8;
                    number /= 10;
                    if number == 0 {
                        break;
                    }
                }
                to.extend_from_slice(&digits[at..]);
            }
        }
    }
}

impl From<u64> for Version {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            (Repr::Text(a), Repr::Text(b)) if a == b => Some(Ordering::Equal),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Number(number) => fmt::Display::fmt(number, f),
            Repr::Text(text) => f.pad(text),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_prints_as_it_came() {
        for text in ["", "0", "1", "007", "+5", "-1", "18446744073709551615", "18446744073709551616", "v1", "1 "] {
            assert_eq!(Version::new(text).to_string(), text);
            let mut written = Vec::new();
            Version::new(text).write(&mut written);
            assert_eq!(written, text.as_bytes());
        }
    }

    #[test]
    fn only_plain_numbers_have_an_order() {
        assert!(Version::new("99") < Version::new("100"));
        assert_eq!(Version::new("007").partial_cmp(&Version::new("8")), None);
        assert_eq!(Version::new("x").partial_cmp(&Version::new("x")), Some(Ordering::Equal));
    }

    #[test]
    fn text_follows_text_but_never_a_number() {
        let follows = |version: &str, known: &str| Version::new(version).may_follow(&Version::new(known));
        assert!(follows("11", "10") && follows("10", "10") && follows("b", "a") && follows("10", "x"));
        assert!(!follows("9", "10") && !follows("x", "10") && !follows("99999999999999999999", "10"));
        assert!(!follows("", "10") && !follows("", "x"));
    }

    #[test]
    fn a_version_is_two_words() {
        assert_eq!(size_of::<Version>(), 16);
    }
}
