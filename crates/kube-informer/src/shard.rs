//! Shards: the objects of a resource whose uid or namespace hashes into given ranges.
//!
//! Several processes can divide a resource between them: each holds the objects of its own
//! [`Shard`], and shards whose ranges do not overlap hold different objects. A server with
//! KEP-5866 (`ShardedListAndWatch`) sends only the objects of the shard; the ranges, their hash and
//! the text of the selector are those of that server.

// Pure: no async, clock or I/O. It may use `object`, and nothing else.

use std::fmt;
use std::str::FromStr;

pub use self::hash::fnv_1a;
pub use self::hash_range::HashRange;
pub use self::hash_ranges::HashRanges;

use crate::body::Obj;
use crate::object::{ParseError, Uid};

mod hash;
mod hash_range;
mod hash_ranges;
mod selector;

/// Ranges of the hash of a field: the objects that one process holds.
///
/// ```
/// use kube_informer::Uid;
/// use kube_informer::shard::{HashRanges, Shard, ShardKey};
///
/// let [first, second] = HashRanges::parts(2).try_into().unwrap();
/// let (first, second) = (Shard::new(ShardKey::Uid, first), Shard::new(ShardKey::Uid, second));
/// let uid = Uid::new("b7a3c5de-0000-4000-8000-0123456789ab");
/// assert_ne!(first.contains_uid(&uid), second.contains_uid(&uid));
///
/// let selector = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
/// assert_eq!(first.to_string(), selector);
/// assert_eq!(selector.parse::<Shard>()?, first);
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shard {
    /// The field whose hash decides.
    pub key: ShardKey,
    /// The hashes that belong to the shard.
    pub ranges: HashRanges,
}

/// The field whose value is hashed.
///
/// ```
/// use kube_informer::shard::ShardKey;
///
/// assert_eq!(ShardKey::Namespace.path(), "object.metadata.namespace");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShardKey {
    /// `metadata.uid`: objects are spread evenly. A name that is created anew has a new uid, and
    /// may belong to another shard.
    Uid,
    /// `metadata.namespace`: all objects of a namespace are in one shard, those of every kind.
    /// Objects without a namespace hash as the empty text.
    Namespace,
}

impl ShardKey {
    /// The path of the field, as in shard selectors.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

impl Shard {
    /// The shard of these hashes of this field.
    #[must_use]
    pub fn new(key: ShardKey, ranges: impl Into<HashRanges>) -> Self {
        Self { key, ranges: ranges.into() }
    }

    /// Whether an object belongs to the shard.
    ///
    /// ```
    /// use kube_informer::Obj;
    /// use kube_informer::shard::{HashRanges, Shard, ShardKey};
    ///
    /// let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a","namespace":"default","uid":"1"}}"#)?;
    /// let parts = HashRanges::parts(5).into_iter().map(|part| Shard::new(ShardKey::Namespace, part));
    /// assert_eq!(parts.filter(|shard| shard.contains(&object)).count(), 1);
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn contains<K>(&self, object: &Obj<K>) -> bool {
        self.ranges.contains(match self.key {
            ShardKey::Uid => object.uid().map_or(fnv_1a(""), Uid::fnv_1a),
            ShardKey::Namespace => fnv_1a(object.key().namespace().unwrap_or_default()),
        })
    }

    /// Whether the object with this uid belongs to the shard, which must be one by uid: a shard by
    /// namespace contains none.
    #[must_use]
    pub fn contains_uid(&self, uid: &Uid) -> bool {
        self.key == ShardKey::Uid && self.ranges.contains(uid.fnv_1a())
    }

    /// Whether the objects of this namespace belong to the shard, which must be one by namespace: a
    /// shard by uid contains no whole namespace.
    #[must_use]
    pub fn contains_namespace(&self, namespace: &str) -> bool {
        self.key == ShardKey::Namespace && self.ranges.contains(fnv_1a(namespace))
    }

    /// The text of `shardSelector`; `None` without ranges, which no selector can express.
    #[must_use]
    pub fn selector(&self) -> Option<String> {
        (!self.ranges.is_empty()).then(|| self.to_string())
    }
}

/// The selector; empty without ranges.
impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.key.path();
        for (at, range) in self.ranges.iter().enumerate() {
            let or = if at > 0 { " || " } else { "" };
            let (start, end) = (range.start(), range.end());
            write!(f, "{or}shardRange({path}, '{start:#018x}', '{end:#018x}')")?;
        }
        Ok(())
    }
}

/// Parses a selector of calls of `shardRange` joined by `||`, as servers return it. Other
/// expressions that a server may accept, such as parentheses, are errors.
impl FromStr for Shard {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        selector::parse(text)
    }
}

#[cfg(test)]
mod tests;
