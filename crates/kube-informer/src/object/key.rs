//! Object keys.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use super::ParseError;
use super::with_scratch;

/// Namespace and name of an object: the key of the store.
///
/// Printed and parsed as by the key functions of client-go: `namespace/name`, or `name` alone
/// without a namespace. Ordered by namespace, then by name. One allocation, shared by clones.
///
/// ```
/// use kube_informer::ObjectKey;
///
/// let key: ObjectKey = "kube-system/coredns".parse()?;
/// assert_eq!(key, ObjectKey::namespaced("kube-system", "coredns"));
/// assert_eq!((key.namespace(), key.name()), (Some("kube-system"), "coredns"));
/// assert_eq!(ObjectKey::cluster("node-1").to_string(), "node-1");
/// assert!("a/b/c".parse::<ObjectKey>().is_err());
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
#[derive(Clone)]
#[doc(alias = "MetaNamespaceKeyFunc")]
#[doc(alias = "ObjectName")]
#[doc(alias("ParseObjectName", "SplitMetaNamespaceKey"))]
pub struct ObjectKey {
    text: Arc<str>,
    /// Start of the name: 0 without a namespace, else one past the slash.
    name_at: usize,
}

impl ObjectKey {
    /// Creates the key of an object in a namespace. An empty namespace is none.
    #[must_use]
    #[doc(alias("NewObjectName"))]
    pub fn namespaced(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        Self::from_parts(namespace.as_ref(), name.as_ref())
    }

    /// Creates the key of a cluster-scoped object.
    #[must_use]
    pub fn cluster(name: impl AsRef<str>) -> Self {
        Self { text: name.as_ref().into(), name_at: 0 }
    }

    /// The key of a decoded object, if it has a name.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::ObjectKey;
    ///
    /// let mut map = ConfigMap::default();
    /// assert_eq!(ObjectKey::of(&map), None, "it has no name yet");
    /// map.metadata.name = Some("a".to_owned());
    /// map.metadata.namespace = Some("b".to_owned());
    /// assert_eq!(ObjectKey::of(&map).unwrap().to_string(), "b/a");
    /// ```
    #[must_use]
    pub fn of(object: &impl kube::Resource) -> Option<Self> {
        let meta = object.meta();
        let name = meta.name.as_deref().filter(|name| !name.is_empty())?;
        Some(Self::from_parts(meta.namespace.as_deref().unwrap_or_default(), name))
    }

    /// The namespace, if there is one.
    #[must_use]
    #[doc(alias("Parts"))]
    pub fn namespace(&self) -> Option<&str> {
        self.text.get(..self.name_at.checked_sub(1)?)
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.get(self.name_at..).unwrap_or_default()
    }

    /// The key as text.
    #[must_use]
    #[doc(alias("String"))]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn from_parts(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        with_scratch(|text| {
            text.push_str(namespace);
            text.push('/');
            text.push_str(name);
            Self { text: text.as_str().into(), name_at: namespace.len() + 1 }
        })
    }
}

impl FromStr for ObjectKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parts = text.split('/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), None, _) => Ok(Self::cluster(name)),
            (Some(namespace), Some(name), None) => Ok(Self::from_parts(namespace, name)),
            _ => Err(ParseError::new(format!("unexpected key format: {text:?}"))),
        }
    }
}

impl PartialEq for ObjectKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.name_at == other.name_at && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String) {
        let key: ObjectKey = text.parse().unwrap();
        (key.namespace().unwrap_or_default().to_owned(), key.name().to_owned())
    }

    #[test]
    fn keys_are_parsed_as_client_go_parses_them() {
        assert_eq!(parsed("name"), (String::new(), "name".to_owned()));
        assert_eq!(parsed("ns/name"), ("ns".to_owned(), "name".to_owned()));
        assert_eq!(parsed("/name"), (String::new(), "name".to_owned()));
        assert_eq!(parsed("ns/"), ("ns".to_owned(), String::new()));
        assert_eq!(parsed(""), (String::new(), String::new()));
        assert!("a/b/c".parse::<ObjectKey>().is_err());
    }

    #[test]
    fn an_empty_namespace_is_no_namespace() {
        assert_eq!(ObjectKey::namespaced("", "a"), ObjectKey::cluster("a"));
        assert_eq!("/a".parse::<ObjectKey>().unwrap(), ObjectKey::cluster("a"));
    }

    #[test]
    fn a_name_with_a_slash_never_passes_for_a_namespace() {
        let odd = ObjectKey::cluster("a/b");
        assert_ne!(odd, ObjectKey::namespaced("a", "b"));
        assert_eq!((odd.namespace(), odd.name()), (None, "a/b"));
    }

    #[test]
    fn order_is_by_namespace_and_then_by_name() {
        let mut keys = ["b/a", "a-b/z", "a/z", "a/b", "c"].map(|k| k.parse::<ObjectKey>().unwrap());
        keys.sort();
        assert_eq!(keys.map(|k| k.to_string()), ["c", "a/b", "a/z", "a-b/z", "b/a"]);
    }

    #[test]
    fn a_key_is_three_words() {
        assert_eq!(size_of::<ObjectKey>(), 24);
        assert_eq!(size_of::<Option<ObjectKey>>(), 24);
    }
}
