//! Objects that have left, so that late news of them do not bring them back.

use std::collections::VecDeque;

use hashbrown::HashMap;

use crate::delta::Scope;
use crate::key::ObjectKey;
use crate::object::{Obj, Uid, Untyped};
use crate::version::Version;

/// The last objects that have left the store, and as of which version.
///
/// A watch that is taken up again may repeat what was heard. For an object in the store its version tells; for one that has left,
/// this does. It is bounded, because a watch repeats little if anything.
#[derive(Debug, Default)]
pub(super) struct Departed {
    versions: HashMap<Uid, (ObjectKey, Version)>,
    /// Oldest first.
    order: VecDeque<Uid>,
}

const REMEMBERED: usize = 1024;

impl Departed {
    pub(super) fn note(&mut self, key: &ObjectKey, uid: Option<&Uid>, version: &Version) {
        let Some(uid) = uid else { return };
        if self.versions.insert(uid.clone(), (key.clone(), version.clone())).is_none() {
            self.order.push_back(uid.clone());
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
        }
    }

    /// Whether this is a state of an object from before it left.
    pub(super) fn is_old_news(&self, object: &Obj<Untyped>) -> bool {
        let left = object.uid().and_then(|uid| self.versions.get(uid));
        left.is_some_and(|(_, left)| object.version() <= left)
    }

    /// Nobody listens there any more. Whoever begins to listen again knows nothing, and may find a server that went back.
    pub(super) fn forget(&mut self, scope: &Scope) {
        self.versions.retain(|_, (key, _)| !scope.covers(key));
        self.order.retain(|uid| self.versions.contains_key(uid));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
