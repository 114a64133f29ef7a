//! The table behind an index, kept in step by the store.

use std::any::Any;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};

use super::{Hamt, Hashing, SlotRef, guarded};
use crate::body::{Obj, Untyped};

/// What values an object has.
pub(crate) type Function<V> = dyn Fn(&Obj<Untyped>) -> Vec<V> + Send + Sync;

/// A table of any type of values, as the store sees it.
pub(crate) trait AnyTable: Send + Sync + fmt::Debug {
    /// This object is new or has changed.
    fn put(&mut self, place: SlotRef, object: &Obj<Untyped>);
    /// What was there is gone.
    fn remove(&mut self, place: SlotRef);
    /// Makes the present contents the ones to be published. Whether they differ from the last.
    fn freeze(&mut self) -> bool;
    /// What to publish; nothing if the table had to be given up.
    fn frozen(&self) -> Option<Arc<dyn Any + Send + Sync>>;
    /// Whether anybody still asks.
    fn is_wanted(&self) -> bool;
}

/// All objects that have one value.
#[derive(Debug)]
pub(crate) struct Bucket<V> {
    pub(crate) value: Arc<V>,
    /// By the hash of the name.
    pub(crate) members: Hamt<SlotRef>,
}

/// Values to places, and for the writer alone places to values: so that an old body need never be read again.
pub(crate) struct Table<V> {
    function: Arc<Function<V>>,
    buckets: Hamt<Bucket<V>>,
    /// By slot.
    values: Vec<Box<[Arc<V>]>>,
    frozen: Option<Arc<Hamt<Bucket<V>>>>,
    /// Whether the buckets have changed since they were frozen.
    changed: bool,
    /// A value's own `Eq` or `Hash` has panicked: answers come from looking at every object from now on.
    given_up: bool,
    wanted: Weak<()>,
    hashing: Hashing,
}

impl<V: Hash + Eq> Table<V> {
    pub(crate) fn new(function: Arc<Function<V>>, wanted: Weak<()>, hashing: Hashing) -> Self {
        let (buckets, values) = (Hamt::new(), Vec::new());
        Self { function, buckets, values, frozen: None, changed: true, given_up: false, wanted, hashing }
    }

    fn update(&mut self, place: SlotRef, object: Option<&Obj<Untyped>>) {
        let found = object.map(|object| (self.function)(object)).unwrap_or_default();
        let slot = place.slot as usize;
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
            new.push(kept.map_or_else(|| self.add(value, place), Arc::clone));
        }
        for value in old.iter().filter(|old| !new.iter().any(|new| Arc::ptr_eq(new, old))) {
            self.drop_from(value, place);
        }
        self.values[slot] = new.into();
    }

    fn add(&mut self, value: V, place: SlotRef) -> Arc<V> {
        let hash = self.hashing.hash_one(&value) as u32;
        let same = |member: &SlotRef| member.slot == place.slot;
        if let Some(bucket) = self.buckets.get_mut(hash, |bucket| *bucket.value == value) {
            bucket.members.insert(place.name, place, same);
            return Arc::clone(&bucket.value);
        }
        let value = Arc::new(value);
        let mut members = Hamt::new();
        members.insert(place.name, place, same);
        self.buckets.insert(hash, Bucket { value: Arc::clone(&value), members }, |_| false);
        value
    }

    fn drop_from(&mut self, value: &Arc<V>, place: SlotRef) {
        let hash = self.hashing.hash_one(&**value) as u32;
        let same = |bucket: &Bucket<V>| bucket.value == *value;
        let Some(bucket) = self.buckets.get_mut(hash, same) else { return };
        bucket.members.remove(place.name, |member| member.slot == place.slot);
        if bucket.members.is_empty() {
            self.buckets.remove(hash, same);
        }
    }

    fn guarded_update(&mut self, place: SlotRef, object: Option<&Obj<Untyped>>) {
        if !self.given_up && guarded("index value", || self.update(place, object)).is_none() {
            self.given_up = true;
            self.changed = true;
            self.values = Vec::new();
            self.frozen = None;
        }
    }
}

impl<V: Hash + Eq + Send + Sync + 'static> AnyTable for Table<V> {
    fn put(&mut self, place: SlotRef, object: &Obj<Untyped>) {
        self.guarded_update(place, Some(object));
    }

    fn remove(&mut self, place: SlotRef) {
        self.guarded_update(place, None);
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

// By hand, because a derive would ask for `V: Clone`.
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
