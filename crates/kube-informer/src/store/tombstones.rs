//! Objects that have left, so that late news of them do not bring them back.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::WatchScope;
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::object::Uid;
use crate::object::Version;

/// The last objects that have left the store, and as of which version.
///
/// A watch that is taken up again may repeat what was heard. For an object in the store its version tells; for one that has left,
/// this does. It is bounded, because a watch repeats little if anything.
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
    /// How many there were before.
    nth: u64,
}

const REMEMBERED: usize = 1024;

impl Tombstones {
    pub(super) fn note(&mut self, key: &ObjectKey, uid: Option<&Uid>, version: &Version) {
        let Some(uid) = uid else { return };
        let departure = Tombstone { key: key.clone(), version: version.clone(), nth: self.count };
        self.count += 1;
        if self.last.insert(uid.clone(), departure).is_none() {
            self.order.push_back(uid.clone());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.last.remove(&oldest);
        }
    }

    /// How many there have been.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// As of which version an object has left, if this is a state of it from before that.
    pub(super) fn old_news(&self, object: &Obj<Untyped>) -> Option<&Version> {
        let left = object.uid().and_then(|uid| self.last.get(uid))?;
        (*object.version() <= left.version).then_some(&left.version)
    }

    /// Whether it has left before there were so many departures.
    pub(super) fn left_before(&self, object: &Obj<Untyped>, count: u64) -> bool {
        object.uid().and_then(|uid| self.last.get(uid)).is_some_and(|left| left.nth < count)
    }

    /// Nobody listens there any more. Whoever begins to listen again knows nothing, and may find a server that went back.
    pub(super) fn forget(&mut self, scope: &WatchScope) {
        self.last.retain(|_, left| !scope.covers(&left.key));
        self.order.retain(|uid| self.last.contains_key(uid));
    }

    pub(super) fn clear(&mut self) {
        *self = Self { count: self.count, ..Self::default() };
    }
}
