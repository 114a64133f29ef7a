//! Chooses the reference objects of delta encoding.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use hashbrown::HashTable;

use super::Raw;
use super::shared::{PackContext, StoreContext};
use crate::object::ObjectKey;
use crate::object::{Meta, Owner};

/// The reference of each group: the objects with the same owner. Objects without an owner form one
/// group.
///
/// Groups whose reference was dropped are removed whenever the table has doubled.
#[derive(Debug)]
pub(super) struct ReferenceTable {
    table: HashTable<ReferenceGroup>,
    sweep_at: usize,
}

/// Identifies a group by hash. A collision only worsens compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupId(u64);

#[derive(Debug)]
struct ReferenceGroup {
    id: GroupId,
    reference: Weak<Raw>,
    /// Context of the objects encoded against it, if there are any.
    context: Weak<PackContext>,
    /// Consecutive rejected deltas, ...
    misses: u8,
    /// ... and how many further objects skip delta encoding because of them.
    skip: u8,
}

const MIN_SWEEP: usize = 64;
/// Limits the exponential backoff: at least one of 63 objects is tried.
const MAX_MISSES: u32 = 6;

impl Default for ReferenceTable {
    fn default() -> Self {
        Self { table: HashTable::new(), sweep_at: MIN_SWEEP }
    }
}

impl GroupId {
    /// By the controller of the object, else by its first owner.
    pub(super) fn of(meta: &Meta) -> Self {
        let owner = meta.owners().find(Owner::is_controller).or_else(|| meta.owners().next());
        let mut hasher = DefaultHasher::new();
        owner.map(|owner| owner.uid_text()).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl ReferenceTable {
    /// The context to delta-encode an object of this group and key in, if it should be tried. If
    /// not, the reference may be returned in `own`: the caller holds a lock, and the reference may
    /// be the last handle of an object, whose decoded body is the user's.
    pub(super) fn context(
        &mut self,
        id: GroupId,
        key: &ObjectKey,
        store: &Arc<StoreContext>,
        own: &mut Option<Arc<Raw>>,
    ) -> Option<Arc<PackContext>> {
        let group = self.group(id)?;
        if group.skip > 0 {
            group.skip -= 1;
            return None;
        }
        if let Some(context) = group.context.upgrade() {
            return Some(context);
        }
        let reference = group.reference.upgrade()?;
        if reference.meta().key == *key {
            // An object without siblings would keep its own previous version alive.
            *own = Some(reference);
            return None;
        }
        let context = Arc::new(PackContext::with_reference(reference, Arc::clone(store)));
        group.context = Arc::downgrade(&context);
        Some(context)
    }

    /// Records an accepted delta.
    pub(super) fn hit(&mut self, id: GroupId) {
        if let Some(group) = self.group(id) {
            group.misses = 0;
        }
    }

    /// Records a rejected delta.
    pub(super) fn missed(&mut self, id: GroupId) {
        if let Some(group) = self.group(id) {
            group.misses = group.misses.saturating_add(1);
            group.skip = ((1_u32 << u32::from(group.misses).min(MAX_MISSES)) - 2) as u8;
        }
    }

    /// Makes a dictionary-compressed object the reference of its group: objects that arrive one
    /// after the other in lists and changes tend to be similar.
    pub(super) fn set_reference(&mut self, id: GroupId, raw: &Arc<Raw>) {
        let (reference, context) = (Arc::downgrade(raw), Weak::new());
        if let Some(group) = self.group(id) {
            (group.reference, group.context) = (reference, context);
            return;
        }
        if self.table.len() >= self.sweep_at {
            self.sweep();
        }
        let group = ReferenceGroup { id, reference, context, misses: 0, skip: 0 };
        self.table.insert_unique(id.0, group, |group| group.id.0);
    }

    fn group(&mut self, id: GroupId) -> Option<&mut ReferenceGroup> {
        self.table.find_mut(id.0, |group| group.id == id)
    }

    fn sweep(&mut self) {
        self.table.retain(|group| group.reference.strong_count() > 0);
        self.sweep_at = (self.table.len() * 2).max(MIN_SWEEP);
        self.table.shrink_to(self.sweep_at, |group| group.id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::body::Dictionary;
    use crate::codec::{Extent, scan};

    fn store() -> Arc<StoreContext> {
        Arc::new(StoreContext::new(&crate::body::BodyEncoderSettings::default()))
    }

    fn raw(name: &str, owner: usize, store: &Arc<StoreContext>) -> Arc<Raw> {
        let json = format!(r#"{{"metadata":{{"name":"{name}","ownerReferences":[{{"name":"o","uid":"{owner}"}}]}}}}"#);
        let meta = Meta::of(&scan(json.as_bytes(), Extent::Metadata).unwrap(), None).unwrap();
        let context = Arc::new(PackContext::new(Dictionary::none(), Arc::clone(store)));
        Arc::new(Raw::new(meta, context, Body::plain(json.as_bytes())))
    }

    #[test]
    fn a_reference_lives_as_long_as_the_bodies_encoded_against_it() {
        let (store, mut references) = (store(), ReferenceTable::default());
        let (reference, sibling) = (raw("a", 1, &store), raw("b", 1, &store));
        let (id, key) = (GroupId::of(reference.meta()), &sibling.meta().key);
        assert!(references.context(id, key, &store, &mut None).is_none());
        references.set_reference(id, &reference);
        let context = references.context(id, key, &store, &mut None).unwrap();
        let weak = Arc::downgrade(&reference);
        drop(reference);
        assert!(Arc::ptr_eq(&context, &references.context(id, key, &store, &mut None).unwrap()));
        drop(context);
        assert_eq!(weak.strong_count(), 0);
        assert!(references.context(id, key, &store, &mut None).is_none());
    }

    #[test]
    fn an_object_is_encoded_against_its_own_past_only_if_others_are() {
        let (store, mut references) = (store(), ReferenceTable::default());
        let (reference, sibling) = (raw("a", 1, &store), raw("b", 1, &store));
        let id = GroupId::of(reference.meta());
        references.set_reference(id, &reference);
        assert!(references.context(id, &reference.meta().key, &store, &mut None).is_none());
        let _context = references.context(id, &sibling.meta().key, &store, &mut None).unwrap();
        assert!(references.context(id, &reference.meta().key, &store, &mut None).is_some());
    }

    #[test]
    fn families_that_have_died_out_do_not_pile_up() {
        let (store, mut references) = (store(), ReferenceTable::default());
        for owner in 0..10_000 {
            let raw = raw("a", owner, &store);
            references.set_reference(GroupId::of(raw.meta()), &raw);
        }
        assert!(references.table.len() <= 2 * MIN_SWEEP, "{}", references.table.len());
    }

    #[test]
    fn the_more_often_it_was_in_vain_the_more_seldom_it_is_tried() {
        let (store, mut references) = (store(), ReferenceTable::default());
        let (reference, sibling) = (raw("a", 1, &store), raw("b", 1, &store));
        let (id, key) = (GroupId::of(reference.meta()), &sibling.meta().key);
        let mut tried = 0;
        for _ in 0..1000 {
            if references.context(id, key, &store, &mut None).is_some() {
                tried += 1;
                references.missed(id);
            }
            references.set_reference(id, &reference);
        }
        assert!((15..30).contains(&tried), "{tried}");
        while references.context(id, key, &store, &mut None).is_none() {}
        references.hit(id);
        assert!((0..10).all(|_| references.context(id, key, &store, &mut None).is_some()));
    }
}
