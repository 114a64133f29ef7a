//! Numbers for label sets, so that a selector is evaluated once for each set and not for each object.

use std::hash::BuildHasher;

use hashbrown::HashTable;

use super::label_bloom::{LabelBloom, LabelBlooms};
use super::state::Hashing;
use crate::object::Strings;

/// The number of the empty set.
const NONE: u32 = 0;

/// All label sets of the objects in a store, numbered; what is held with the labels (owners) counts as part of the set. Numbers are used again when no object has the set any more.
#[derive(Debug)]
pub(super) struct LabelSets {
    numbers: HashTable<Numbered>,
    free: Vec<u32>,
    marks: LabelBlooms,
    hashing: Hashing,
}

#[derive(Debug)]
struct Numbered {
    set: Strings,
    number: u32,
    objects: u32,
}

impl LabelSets {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self { numbers: HashTable::new(), free: Vec::new(), marks: LabelBlooms::default(), hashing }
    }

    /// The number of a set that one more object has.
    pub(super) fn take(&mut self, facts: Option<&Strings>) -> u32 {
        let Some(set) = facts else { return NONE };
        let hash = self.hashing.hash_one(set);
        if let Some(numbered) = self.numbers.find_mut(hash, |numbered| numbered.set == *set) {
            numbered.objects += 1;
            return numbered.number;
        }
        let number = self.free.pop().unwrap_or_else(|| u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX));
        self.marks.set(number, LabelBloom::of(&self.hashing, set.labels()));
        let numbered = Numbered { set: set.clone(), number, objects: 1 };
        self.numbers.insert_unique(hash, numbered, |numbered| self.hashing.hash_one(&numbered.set));
        number
    }

    /// One object fewer has this set.
    pub(super) fn put_back(&mut self, facts: Option<&Strings>) {
        let Some(set) = facts else { return };
        let hash = self.hashing.hash_one(set);
        let Ok(mut held) = self.numbers.find_entry(hash, |numbered| numbered.set == *set) else { return };
        held.get_mut().objects -= 1;
        if held.get().objects == 0 {
            let (numbered, _) = held.remove();
            self.free.push(numbered.number);
        }
    }

    pub(super) fn marks(&self) -> &LabelBlooms {
        &self.marks
    }
}
