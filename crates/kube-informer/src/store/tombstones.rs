//! Tombstones of removed objects, so that a late event does not restore them.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::WatchScope;
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::object::Uid;
use crate::object::Version;

/// The most recently removed objects, each with the resource version of its removal.
///
/// A resumed watch may repeat events. For an object in the store its resource version identifies
/// them, for a removed object its tombstone does. Bounded, because a watch repeats few events, if
/// any.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    last: HashMap<Uid, Tombstone>,
    /// Oldest first.
    order: VecDeque<Uid>,
    count: u64,
}

#[derive(Debug)]
struct Tombstone {
    key: ObjectKey,
    version: Version,
    /// Number of tombstones created before it.
    sequence: u64,
}

const MAX_TOMBSTONES: usize = 1024;

impl Tombstones {
    pub(super) fn insert(&mut self, key: &ObjectKey, uid: Option<&Uid>, version: &Version) {
        let Some(uid) = uid else { return };
        let tombstone = Tombstone { key: key.clone(), version: version.clone(), sequence: self.count };
        self.count += 1;
        if self.last.insert(uid.clone(), tombstone).is_none() {
            self.order.push_back(uid.clone());
        }
        if self.order.len() > MAX_TOMBSTONES
            && let Some(oldest) = self.order.pop_front()
        {
            self.last.remove(&oldest);
        }
    }

    /// Number of tombstones created so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The resource version of the object's removal, if this state of it is not newer.
    pub(super) fn removed_at(&self, object: &Obj<Untyped>) -> Option<&Version> {
        let left = object.uid().and_then(|uid| self.last.get(uid))?;
        (*object.version() <= left.version).then_some(&left.version)
    }

    /// Whether the object was removed before [`count`](Self::count) reached this value.
    pub(super) fn is_removed_before(&self, object: &Obj<Untyped>, count: u64) -> bool {
        object.uid().and_then(|uid| self.last.get(uid)).is_some_and(|left| left.sequence < count)
    }

    /// Drops the tombstones of a scope that is no longer watched. A later watch of it starts
    /// without prior knowledge, and the server may have gone back in time meanwhile.
    pub(super) fn forget(&mut self, scope: &WatchScope) {
        self.last.retain(|_, left| !scope.covers(&left.key));
        self.order.retain(|uid| self.last.contains_key(uid));
    }

    pub(super) fn clear(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }
}
