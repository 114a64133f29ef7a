//! Table keys and key ranges.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// The key of an object in its table: `namespace/name`, or only the name for cluster-scoped
/// objects.
///
/// Keys are ordered bytewise, as in etcd: namespace `ord-x` comes before `ord`, because `-` is less
/// than `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(Arc<str>);

impl Key {
    pub(crate) fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace {
            Some(namespace) => Self(format!("{namespace}/{name}").into()),
            None => Self(name.into()),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(namespace, _)| namespace)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys that a list reads: all or those of one namespace, from an optional start key on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    prefix: String,
    from: Option<String>,
}

impl KeyRange {
    pub(crate) fn everything() -> Self {
        Self { prefix: String::new(), from: None }
    }

    pub(crate) fn of(namespace: Option<&str>) -> Self {
        Self { prefix: namespace.map(|n| format!("{n}/")).unwrap_or_default(), from: None }
    }

    /// Restricts the range to keys from `key` on, which is relative to the range, as in a continue
    /// token.
    pub(crate) fn starting_at(mut self, key: &str) -> Self {
        self.from = Some(format!("{}{key}", self.prefix));
        self
    }

    /// The key as a continue token contains it: without the namespace that the range already fixes.
    pub(crate) fn relative<'k>(&self, key: &'k Key) -> &'k str {
        key.as_str().strip_prefix(&*self.prefix).unwrap_or(key.as_str())
    }

    pub(crate) fn start(&self) -> Bound<&str> {
        Bound::Included(self.from.as_deref().unwrap_or(&self.prefix))
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        key.as_str().starts_with(&self.prefix)
    }
}
