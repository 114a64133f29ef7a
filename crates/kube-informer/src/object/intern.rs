//! Interning of strings that many objects of one store share.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Holds one copy of each label set and owner list, shared by all objects that have it.
///
/// Unused strings are removed whenever the table has doubled.
#[derive(Debug)]
pub(crate) struct Interner {
    strings: HashTable<Arc<str>>,
    hasher: DefaultHashBuilder,
    sweep_at: usize,
}

const MIN_SWEEP: usize = 64;

impl Default for Interner {
    fn default() -> Self {
        Self { strings: HashTable::new(), hasher: DefaultHashBuilder::default(), sweep_at: MIN_SWEEP }
    }
}

impl Interner {
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        let hash = self.hasher.hash_one(text);
        if let Some(held) = self.strings.find(hash, |held| **held == *text) {
            return Arc::clone(held);
        }
        if self.strings.len() >= self.sweep_at {
            self.sweep();
        }
        let new: Arc<str> = text.into();
        self.strings.insert_unique(hash, Arc::clone(&new), |held| self.hasher.hash_one(&**held));
        new
    }

    fn sweep(&mut self) {
        self.strings.retain(|held| Arc::strong_count(held) > 1);
        self.sweep_at = (self.strings.len() * 2).max(MIN_SWEEP);
        self.strings.shrink_to(self.sweep_at, |held| self.hasher.hash_one(&**held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_held_once() {
        let mut interner = Interner::default();
        let (a, b) = (interner.intern("x"), interner.intern("x"));
        assert!(Arc::ptr_eq(&a, &b));
    }

    #[test]
    fn unused_entries_are_removed() {
        let mut interner = Interner::default();
        let kept = interner.intern("kept");
        for n in 0..10_000 {
            interner.intern(&n.to_string());
        }
        assert!(interner.strings.len() <= 2 * MIN_SWEEP, "{}", interner.strings.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
    }
}
