//! Index tables, updated by the store with every change.

use std::any::Any;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};

use super::{Hamt, Hashing, SlotRef, guarded};
use crate::body::{Obj, Untyped};

/// An index function: the values under which an object is indexed.
pub(crate) type Function<V> = dyn Fn(&Obj<Untyped>) -> Vec<V> + Send + Sync;

/// An index table with its value type erased.
pub(crate) trait AnyTable: Send + Sync + fmt::Debug {
    /// Indexes an object that is new or has changed.
    fn put(&mut self, slot_ref: SlotRef, object: &Obj<Untyped>);
    /// Removes the object of this slot.
    fn remove(&mut self, slot_ref: SlotRef);
    /// Takes a snapshot of the contents for publication. Returns whether they have changed since
    /// the last one.
    fn freeze(&mut self) -> bool;
    /// The snapshot to publish; none if the table has been given up.
    fn frozen(&self) -> Option<Arc<dyn Any + Send + Sync>>;
    /// Whether the index is still in use.
    fn is_wanted(&self) -> bool;
}

/// All objects with one value.
#[derive(Debug)]
pub(crate) struct Bucket<V> {
    pub(crate) value: Arc<V>,
    /// Keyed by the hash of the name.
    pub(crate) members: Hamt<SlotRef>,
}

/// Maps values to objects, and for the writer also objects to values, so that an update does not
/// decode the old body again.
pub(crate) struct Table<V> {
    function: Arc<Function<V>>,
    buckets: Hamt<Bucket<V>>,
    /// The values of each object, by slot.
    values: Vec<Box<[Arc<V>]>>,
    frozen: Option<Arc<Hamt<Bucket<V>>>>,
    /// Whether the buckets have changed since they were frozen.
    changed: bool,
    /// `Eq` or `Hash` of a value has panicked. From then on queries scan all objects.
    given_up: bool,
    wanted: Weak<()>,
    hashing: Hashing,
}

impl<V: Hash + Eq> Table<V> {
    pub(crate) fn new(function: Arc<Function<V>>, wanted: Weak<()>, hashing: Hashing) -> Self {
        let (buckets, values) = (Hamt::new(), Vec::new());
        Self { function, buckets, values, frozen: None, changed: true, given_up: false, wanted, hashing }
    }

    fn update(&mut self, slot_ref: SlotRef, object: Option<&Obj<Untyped>>) {
        let found = object.map(|object| (self.function)(object)).unwrap_or_default();
        let slot = slot_ref.slot as usize;
        if self.values.len() <= slot {
            self.values.resize_with(slot + 1, Default::default);
        }
        let old = &self.values[slot];
        if found.len() == old.len() && found.iter().zip(old).all(|(new, old)| *new == **old) {
            return;
        }
        self.changed = true;
        let old = std::mem::take(&mut self.values[slot]);
        let mut new: Vec<Arc<V>> = Vec::with_capacity(found.len());
        for value in found {
            if new.iter().any(|other| **other == value) {
                continue;
            }
            let kept = old.iter().find(|other| ***other == value);
            new.push(kept.map_or_else(|| self.add(value, slot_ref), Arc::clone));
        }
        for value in old.iter().filter(|old| !new.iter().any(|new| Arc::ptr_eq(new, old))) {
            self.drop_from(value, slot_ref);
        }
        self.values[slot] = new.into();
    }

    fn add(&mut self, value: V, slot_ref: SlotRef) -> Arc<V> {
        let hash = self.hashing.hash_one(&value) as u32;
        let same = |member: &SlotRef| member.slot == slot_ref.slot;
        if let Some(bucket) = self.buckets.get_mut(hash, |bucket| *bucket.value == value) {
            bucket.members.insert(slot_ref.name, slot_ref, same);
            return Arc::clone(&bucket.value);
        }
        let value = Arc::new(value);
        let mut members = Hamt::new();
        members.insert(slot_ref.name, slot_ref, same);
        self.buckets.insert(hash, Bucket { value: Arc::clone(&value), members }, |_| false);
        value
    }

    fn drop_from(&mut self, value: &Arc<V>, slot_ref: SlotRef) {
        let hash = self.hashing.hash_one(&**value) as u32;
        let same = |bucket: &Bucket<V>| bucket.value == *value;
        let Some(bucket) = self.buckets.get_mut(hash, same) else { return };
        bucket.members.remove(slot_ref.name, |member| member.slot == slot_ref.slot);
        if bucket.members.is_empty() {
            self.buckets.remove(hash, same);
        }
    }

    fn guarded_update(&mut self, slot_ref: SlotRef, object: Option<&Obj<Untyped>>) {
        if !self.given_up && guarded("index value", || self.update(slot_ref, object)).is_none() {
            self.given_up = true;
            self.changed = true;
            self.values = Vec::new();
            self.frozen = None;
        }
    }
}

impl<V: Hash + Eq + Send + Sync + 'static> AnyTable for Table<V> {
    fn put(&mut self, slot_ref: SlotRef, object: &Obj<Untyped>) {
        self.guarded_update(slot_ref, Some(object));
    }

    fn remove(&mut self, slot_ref: SlotRef) {
        self.guarded_update(slot_ref, None);
    }

    fn freeze(&mut self) -> bool {
        if self.changed && !self.given_up {
            self.frozen = Some(Arc::new(self.buckets.clone()));
        }
        std::mem::take(&mut self.changed)
    }

    fn frozen(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.frozen.clone().map(|frozen| frozen as _)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.strong_count() > 0
    }
}

// Not derived, because the derive would require `V: Clone`.
impl<V> Clone for Bucket<V> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), members: self.members.clone() }
    }
}

impl<V> fmt::Debug for Table<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("values", &self.buckets.len()).finish_non_exhaustive()
    }
}
