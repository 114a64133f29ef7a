//! Strings that many objects of one store have in common.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Holds one copy of each label set and owner list, however many objects have it.
///
/// What no object has any more is swept out whenever the table has doubled.
#[derive(Debug)]
pub(crate) struct Interner {
    held: HashTable<Arc<str>>,
    hasher: DefaultHashBuilder,
    sweep_at: usize,
}

const SMALLEST_SWEEP: usize = 64;

impl Default for Interner {
    fn default() -> Self {
        Self { held: HashTable::new(), hasher: DefaultHashBuilder::default(), sweep_at: SMALLEST_SWEEP }
    }
}

impl Interner {
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        let hash = self.hasher.hash_one(text);
        if let Some(held) = self.held.find(hash, |held| **held == *text) {
            return Arc::clone(held);
        }
        if self.held.len() >= self.sweep_at {
            self.sweep();
        }
        let new: Arc<str> = text.into();
        self.held.insert_unique(hash, Arc::clone(&new), |held| self.hasher.hash_one(&**held));
        new
    }

    fn sweep(&mut self) {
        self.held.retain(|held| Arc::strong_count(held) > 1);
        self.sweep_at = (self.held.len() * 2).max(SMALLEST_SWEEP);
        self.held.shrink_to(self.sweep_at, |held| self.hasher.hash_one(&**held));
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
    fn what_nobody_holds_does_not_pile_up() {
        let mut interner = Interner::default();
        let kept = interner.intern("kept");
        for n in 0..10_000 {
            interner.intern(&n.to_string());
        }
        assert!(interner.held.len() <= 2 * SMALLEST_SWEEP, "{}", interner.held.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
    }
}
