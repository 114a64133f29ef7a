//! Interning of label sets, so that a selector is evaluated once per distinct set and not once per
//! object.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::label_bloom::{LabelBloom, LabelBlooms};
use super::state::Hashing;
use crate::object::Strings;

/// The number of the empty set.
const NONE: u32 = 0;

/// The distinct label sets of the objects in a store, numbered and reference counted. Owners are
/// stored with the labels and count as part of the set. A number is reused once no object has its
/// set.
#[derive(Debug)]
pub(super) struct LabelSets {
    numbers: HashTable<LabelSet>,
    free: Vec<u32>,
    blooms: LabelBlooms,
    hashing: Hashing,
}

#[derive(Debug)]
struct LabelSet {
    set: Strings,
    number: u32,
    objects: u32,
}

impl LabelSets {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self { numbers: HashTable::new(), free: Vec::new(), blooms: LabelBlooms::default(), hashing }
    }

    /// The number of a set; increments its reference count.
    pub(super) fn take(&mut self, labels_and_owners: Option<&Strings>) -> u32 {
        let Some(set) = labels_and_owners else { return NONE };
        let hash = self.hashing.hash_one(set);
        if let Some(label_set) = self.numbers.find_mut(hash, |label_set| label_set.set == *set) {
            label_set.objects += 1;
            return label_set.number;
        }
        let number = self.free.pop().unwrap_or_else(|| u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX));
        self.blooms.set(number, LabelBloom::of(&self.hashing, set.labels()));
        let label_set = LabelSet { set: set.clone(), number, objects: 1 };
        self.numbers.insert_unique(hash, label_set, |label_set| self.hashing.hash_one(&label_set.set));
        number
    }

    /// Decrements the reference count of a set.
    pub(super) fn put_back(&mut self, labels_and_owners: Option<&Strings>) {
        let Some(set) = labels_and_owners else { return };
        let hash = self.hashing.hash_one(set);
        let Ok(mut held) = self.numbers.find_entry(hash, |label_set| label_set.set == *set) else { return };
        held.get_mut().objects -= 1;
        if held.get().objects == 0 {
            let (label_set, _) = held.remove();
            self.free.push(label_set.number);
        }
    }

    pub(super) fn blooms(&self) -> &LabelBlooms {
        &self.blooms
    }
}
