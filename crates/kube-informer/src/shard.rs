//! Shards: the objects of a resource whose uid or namespace hashes into given ranges.
//!
//! Several processes can divide a resource between them: each holds the objects of its own
//! [`Shard`], and shards whose ranges do not overlap hold different objects. An informer is [built
//! with a shard](crate::InformerBuilder::shard), whose ranges [can
//! move](crate::Informer::set_shard). A server with KEP-5866 (`ShardedListAndWatch`) sends only the
//! objects of the shard; the ranges, their hash and the text of the selector are those of that
//! server. Other servers send everything, and the informer drops what is outside: see
//! [`ShardSupport`].
//!
//! Who holds which ranges is not decided here.
//!
//! # Which key
//!
//! | | [`ShardKey::Uid`] | [`ShardKey::Namespace`] |
//! |---|---|---|
//! | balance | even | as even as the namespaces: the largest one is in one shard as a whole |
//! | unit | the incarnation of an object: a name that is created anew may change shards | the namespace, and so the key |
//! | owner and children | in different shards | in the same shard, if children live in the namespace of their owner |
//!
//! By uid, two members may act on one key, one after the other: on the object that was deleted, and
//! on the one that was created under the same name. Writes name the uid as a precondition.
//!
//! # Owners and children
//!
//! A child has a uid of its own, so a shard by uid has only 1/n of the children of its owners. A
//! controller whose children live in the namespace of their owner uses a shard by namespace for
//! both. Where that is too uneven, the owners are in a shard by uid and the informer of the
//! children has no shard: each member receives all children, and finds those of its owners by an
//! index of owners ([`Informer::index`](crate::Informer::index) and [`Obj::owners`]). The price is
//! the children's bandwidth, CPU and memory times the number of members. It is least if the
//! informer of the children keeps only metadata ([`MetadataOnly`](crate::MetadataOnly)), or only
//! those objects whose owner is in the shard: [`keep_if`](crate::InformerBuilder::keep_if) with
//! [`Shard::contains_uid`] of the owner's uid, as long as the ranges do not move, because `keep_if`
//! must depend on nothing but the object.

// Pure: no async, clock or I/O. It may use `object`, `codec` and `Obj`, and nothing else.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

pub use self::hash::fnv_1a;
pub use self::hash_range::HashRange;
pub use self::hash_ranges::HashRanges;
pub use self::sharded::Sharded;
pub(crate) use self::support::Echo;
pub use self::support::ShardSupport;

use crate::body::Obj;
use crate::codec::{Broken, ScannedObject};
use crate::object::{ObjectKey, ParseError, Uid};

mod hash;
mod hash_range;
mod hash_ranges;
mod selector;
mod sharded;
mod support;

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
        self.has(object.uid(), object.key())
    }

    /// Whether an object with this uid and key belongs to the shard.
    pub(crate) fn has(&self, uid: Option<&Uid>, key: &ObjectKey) -> bool {
        self.ranges.contains(match self.key {
            ShardKey::Uid => uid.map_or_else(|| fnv_1a(""), Uid::fnv_1a),
            ShardKey::Namespace => fnv_1a(key.namespace().unwrap_or_default()),
        })
    }

    /// Whether the object of this scan belongs to the shard.
    pub(crate) fn has_scanned(&self, found: &ScannedObject<'_>) -> Result<bool, Broken> {
        let field = match self.key {
            ShardKey::Uid => found.uid,
            ShardKey::Namespace => found.namespace,
        };
        let text = field.map_or(Ok(Cow::Borrowed("")), |text| text.read())?;
        Ok(self.ranges.contains(fnv_1a(&*text)))
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

    /// The value of `shardSelector` in requests. Without ranges it is one hash, whose objects are
    /// not used.
    pub(crate) fn query(&self) -> String {
        self.selector().unwrap_or_else(|| Self::new(self.key, HashRange::FIRST).to_string())
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
