//! Deltas: the input of the store.

use std::sync::Arc;

use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::object::Version;
use crate::shard::Shard;

/// One change that the reflector passes to the store.
#[derive(Debug, Clone)]
pub enum Delta {
    /// The watch reported this object as added or modified; the store decides which of the two.
    Changed(Obj<Untyped>),
    /// The watch reported this object as deleted; this is its final state.
    Deleted(Obj<Untyped>),
    /// A list begins. Objects in the store that it does not contain are deleted when it ends.
    RelistBegun(Relist),
    /// An object of the list.
    Listed(Obj<Untyped>),
    /// An object that has entered the shard, in the state of a list of what has entered. Says
    /// nothing about other objects.
    Entered(Obj<Untyped>),
    /// The list is complete.
    RelistEnded {
        /// The listed scope.
        scope: WatchScope,
        /// The resource version of the list.
        version: Version,
    },
    /// The list will not be completed; the watch continues from its last resource version.
    RelistAbandoned(WatchScope),
    /// The list will not be completed, and its objects that have not been reported yet leave the
    /// store. Another list must follow: the watch may have passed over them.
    RelistDropped(WatchScope),
    /// This scope is no longer watched; its objects are removed from the store.
    ScopeLeft(WatchScope),
    /// The shard has moved: objects of the scope outside of it are removed from the store.
    ShardLeft {
        /// The watched scope.
        scope: WatchScope,
        /// The new shard.
        shard: Arc<Shard>,
    },
    /// All objects of this shard have been delivered, in states at least as new as when the shard
    /// was requested.
    ShardHeld {
        /// The watched scope.
        scope: WatchScope,
        /// The shard.
        shard: Arc<Shard>,
    },
    /// Report all objects to handlers again, except for those with a queued delta.
    Resync {
        /// The keys with a queued delta.
        except: Vec<ObjectKey>,
    },
    /// Nothing else has changed up to this resource version.
    Bookmark {
        /// The watched scope.
        scope: WatchScope,
        /// The resource version reached.
        version: Version,
    },
}

/// The scope and history of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relist {
    /// The listed scope.
    pub scope: WatchScope,
    /// How its resource versions relate to those in the store.
    pub history: History,
}

/// How the resource versions of a list relate to those received before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// Resource versions only grow, as far as is known: an object older than the stored one is
    /// stale, unless the complete list turns out not to be older.
    Continues,
    /// The server went back in time (a restored backup): the list is authoritative, whatever its
    /// resource versions.
    WentBack,
}

/// A part of a resource that is listed and watched separately.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WatchScope {
    /// The whole resource.
    Everything,
    /// One namespace.
    Namespace(Arc<str>),
}

impl WatchScope {
    /// The namespace; `None` for the whole resource.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Everything => None,
            Self::Namespace(namespace) => Some(namespace),
        }
    }

    /// Whether an object with this key belongs to the scope.
    #[must_use]
    pub fn covers(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Everything => true,
            Self::Namespace(namespace) => key.namespace() == Some(namespace),
        }
    }
}

impl Delta {
    /// The object of the delta, if it has one.
    #[must_use]
    pub fn object(&self) -> Option<&Obj<Untyped>> {
        match self {
            Self::Changed(object) | Self::Deleted(object) | Self::Listed(object) | Self::Entered(object) => {
                Some(object)
            }
            Self::RelistBegun(_)
            | Self::RelistEnded { .. }
            | Self::RelistAbandoned(_)
            | Self::RelistDropped(_)
            | Self::ScopeLeft(_)
            | Self::ShardLeft { .. }
            | Self::ShardHeld { .. }
            | Self::Resync { .. }
            | Self::Bookmark { .. } => None,
        }
    }

    /// The key of the object, if the delta has one.
    #[must_use]
    pub fn key(&self) -> Option<&ObjectKey> {
        self.object().map(Obj::key)
    }

    /// Approximate memory use in bytes.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.object().map_or(0, Obj::weight)
    }
}
