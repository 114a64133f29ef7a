//! Objects inside and outside of a shard.

use crate::body::{Obj, Untyped};
use crate::object::Version;
use crate::shard::Shard;

/// A received object, seen from one shard.
///
/// ```
/// use kube_informer::Obj;
/// use kube_informer::shard::{HashRanges, Shard, ShardKey, Sharded};
///
/// let none = Shard::new(ShardKey::Uid, HashRanges::NONE);
/// let object = Obj::from_json(r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#)?;
/// assert!(matches!(Sharded::new(object, &none), Sharded::Outside(version) if version.number() == Some(7)));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug)]
pub enum Sharded {
    /// The object belongs to the shard.
    Inside(Obj<Untyped>),
    /// It does not, and is not used: this is its version.
    Outside(Version),
}

impl Sharded {
    /// Whether an object belongs to a shard.
    #[must_use]
    pub fn new(object: Obj<Untyped>, shard: &Shard) -> Self {
        if shard.contains(&object) { Self::Inside(object) } else { Self::Outside(object.version().clone()) }
    }
}
