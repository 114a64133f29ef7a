//! Whether a server obeys shard selectors.

use super::Shard;

/// Whether a server sends only the objects of the shard that it is asked for.
///
/// The cache has only these objects in any case; a server that sends the others as well costs
/// bandwidth and CPU.
///
/// ```
/// use kube_informer::Health;
/// use kube_informer::shard::ShardSupport;
///
/// fn advice(health: &Health) -> Option<&str> {
///     match health.shard? {
///         ShardSupport::Ignored => Some("every member receives everything: enable ShardedListAndWatch"),
///         _ => None,
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShardSupport {
    /// The server has not shown it yet.
    #[default]
    Unknown,
    /// It sends only the objects of the shard.
    Honoured,
    /// It sends other objects as well: its version is too old, or the feature is off.
    Ignored,
}

impl ShardSupport {
    /// What holds for both of two servers, or of two requests.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Ignored, _) | (_, Self::Ignored) => Self::Ignored,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Honoured, Self::Honoured) => Self::Honoured,
        }
    }
}

/// What the selector in a list's `metadata.shardInfo` says of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    /// The server has applied the shard that was requested.
    Same,
    /// It has applied another one: the list may lack objects.
    Other,
    /// There is none, or it cannot be read.
    Unclear,
}

impl Echo {
    /// Compares by meaning: the server renders the selector anew.
    pub(crate) fn of(applied: Option<&str>, requested: &Shard) -> Self {
        match applied.map(str::parse::<Shard>) {
            Some(Ok(applied)) if applied.query() == requested.query() => Self::Same,
            Some(Ok(_)) => Self::Other,
            Some(Err(_)) | None => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{HashRanges, ShardKey};

    #[test]
    fn an_echo_is_compared_by_meaning() {
        let [first, second] = HashRanges::parts(2).try_into().unwrap();
        let shard = |ranges| Shard::new(ShardKey::Uid, ranges);
        let quarters: Vec<String> =
            HashRanges::parts(4).into_iter().take(2).rev().map(|quarter| shard(quarter).to_string()).collect();
        assert_eq!(Echo::of(Some(&quarters.join("||")), &shard(first.clone())), Echo::Same);
        assert_eq!(Echo::of(Some(&shard(second).to_string()), &shard(first.clone())), Echo::Other);
        assert_eq!(Echo::of(Some("(a)"), &shard(first.clone())), Echo::Unclear);
        assert_eq!(Echo::of(None, &shard(first)), Echo::Unclear);
        let none = shard(HashRanges::NONE);
        assert_eq!(Echo::of(Some(&none.query()), &none), Echo::Same);
    }

    #[test]
    fn of_several_servers_the_worst_is_known() {
        use ShardSupport::{Honoured, Ignored, Unknown};
        for (one, other, both) in [
            (Honoured, Honoured, Honoured),
            (Honoured, Unknown, Unknown),
            (Unknown, Ignored, Ignored),
            (Honoured, Ignored, Ignored),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both));
        }
    }
}
