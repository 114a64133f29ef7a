//! What the server told us.

use std::sync::Arc;

use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::object::Version;

/// One thing that the reflector heard, on its way to the store.
#[derive(Debug, Clone)]
pub enum Delta {
    /// The watch says that this object is new or has changed. Which of the two, the store decides.
    Changed(Obj<Untyped>),
    /// The watch says that this object is gone; this is its final state.
    Deleted(Obj<Untyped>),
    /// A list begins. What is in the store and not in the list will be gone when it ends.
    RelistBegun(Relist),
    /// An object of the list.
    Listed(Obj<Untyped>),
    /// The list is complete, as of this version.
    RelistEnded {
        /// What was listed.
        scope: WatchScope,
        /// As of when.
        version: Version,
    },
    /// The list will not be completed: the watch goes on from where it was.
    RelistAbandoned(WatchScope),
    /// These namespaces or everything are no longer wanted: their objects leave the store.
    ScopeLeft(WatchScope),
    /// All objects are to be told again, but for those that have something else queued.
    Resync {
        /// The keys with something queued.
        except: Vec<ObjectKey>,
    },
    /// Nothing changed up to this version.
    Bookmark {
        /// Where.
        scope: WatchScope,
        /// Up to when.
        version: Version,
    },
}

/// Which list it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relist {
    /// What is listed.
    pub scope: WatchScope,
    /// How it stands to what is in the store.
    pub history: History,
}

/// How a list stands to what was heard before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The server's versions only ever grow, as far as is known: what is older than the store's is stale, unless the whole list turns
    /// out not to be.
    Continues,
    /// The server went back in time (a restored backup): the list is right, whatever its versions.
    WentBack,
}

/// A part of a resource that is listed and watched on its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WatchScope {
    /// All of it.
    Everything,
    /// One namespace.
    Namespace(Arc<str>),
}

impl WatchScope {
    /// Whether an object of this key belongs to it.
    #[must_use]
    pub fn covers(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Everything => true,
            Self::Namespace(namespace) => key.namespace() == Some(namespace),
        }
    }
}

impl Delta {
    /// The object that this is about, if it is about one.
    #[must_use]
    pub fn object(&self) -> Option<&Obj<Untyped>> {
        match self {
            Self::Changed(object) | Self::Deleted(object) | Self::Listed(object) => Some(object),
            Self::RelistBegun(_)
            | Self::RelistEnded { .. }
            | Self::RelistAbandoned(_)
            | Self::ScopeLeft(_)
            | Self::Resync { .. }
            | Self::Bookmark { .. } => None,
        }
    }

    /// The key of that object.
    #[must_use]
    pub fn key(&self) -> Option<&ObjectKey> {
        self.object().map(Obj::key)
    }

    /// What holding this costs, in bytes, roughly.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.object().map_or(0, Obj::weight)
    }
}
