//! Objects that are likely to be much alike.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use hashbrown::HashTable;

use super::Raw;
use super::shared::{Common, Home};
use crate::object::ObjectKey;
use crate::object::{Meta, Owner};

/// Which of the objects of one owner the others are packed as differences from. Objects without an owner are one family.
///
/// What nobody holds any more is swept out whenever the table has doubled.
#[derive(Debug)]
pub(super) struct Families {
    table: HashTable<Family>,
    sweep_at: usize,
}

/// The name of a family: two that happen to have the same pack worse, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u64);

#[derive(Debug)]
struct Family {
    name: Name,
    pattern: Weak<Raw>,
    /// Where those live that are packed as differences from it, if there are any.
    home: Weak<Home>,
    /// How often in a row a difference was not worth it, ...
    misses: u8,
    /// ... and how many are not tried because of that.
    pass_over: u8,
}

const SMALLEST_SWEEP: usize = 64;
/// Further ones do not count: one of 63 objects is always tried.
const MOST_MISSES: u32 = 6;

impl Default for Families {
    fn default() -> Self {
        Self { table: HashTable::new(), sweep_at: SMALLEST_SWEEP }
    }
}

impl Name {
    /// The owner's: the one that controls the object, else the first.
    pub(super) fn of(meta: &Meta) -> Self {
        let owner = meta.owners().find(Owner::is_controller).or_else(|| meta.owners().next());
        let mut hasher = DefaultHasher::new();
        owner.map(|owner| owner.uid()).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Families {
    /// Where an object of this family, with this key, may be told as a difference.
    pub(super) fn home(&mut self, name: Name, key: &ObjectKey, common: &Arc<Common>) -> Option<Arc<Home>> {
        let family = self.family(name)?;
        if family.pass_over > 0 {
            family.pass_over -= 1;
            return None;
        }
        if let Some(home) = family.home.upgrade() {
            return Some(home);
        }
        // An object that is alone would keep its own past alive.
        let pattern = family.pattern.upgrade().filter(|pattern| pattern.meta().key != *key)?;
        let home = Arc::new(Home::of_pattern(pattern, Arc::clone(common)));
        family.home = Arc::downgrade(&home);
        Some(home)
    }

    /// A difference was worth it.
    pub(super) fn hit(&mut self, name: Name) {
        if let Some(family) = self.family(name) {
            family.misses = 0;
        }
    }

    /// A difference was not worth it.
    pub(super) fn missed(&mut self, name: Name) {
        if let Some(family) = self.family(name) {
            family.misses = family.misses.saturating_add(1);
            family.pass_over = ((1_u32 << u32::from(family.misses).min(MOST_MISSES)) - 2) as u8;
        }
    }

    /// An object that is packed by itself: the pattern for those that follow, because lists and changes have neighbours in time.
    pub(super) fn pattern(&mut self, name: Name, raw: &Arc<Raw>) {
        let (pattern, home) = (Arc::downgrade(raw), Weak::new());
        if let Some(family) = self.family(name) {
            (family.pattern, family.home) = (pattern, home);
            return;
        }
        if self.table.len() >= self.sweep_at {
            self.sweep();
        }
        let family = Family { name, pattern, home, misses: 0, pass_over: 0 };
        self.table.insert_unique(name.0, family, |family| family.name.0);
    }

    fn family(&mut self, name: Name) -> Option<&mut Family> {
        self.table.find_mut(name.0, |family| family.name == name)
    }

    fn sweep(&mut self) {
        self.table.retain(|family| family.pattern.strong_count() > 0);
        self.sweep_at = (self.table.len() * 2).max(SMALLEST_SWEEP);
        self.table.shrink_to(self.sweep_at, |family| family.name.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::body::{Dictionary, Keep};
    use crate::codec::{Extent, scan};

    fn common() -> Arc<Common> {
        Arc::new(Common::new(Keep::Compact, 0))
    }

    fn raw(name: &str, owner: usize, common: &Arc<Common>) -> Arc<Raw> {
        let json = format!(r#"{{"metadata":{{"name":"{name}","ownerReferences":[{{"name":"o","uid":"{owner}"}}]}}}}"#);
        let meta = Meta::of(&scan(json.as_bytes(), Extent::Metadata).unwrap(), None).unwrap();
        let home = Arc::new(Home::new(Dictionary::none(), Arc::clone(common)));
        Arc::new(Raw::new(meta, home, Body::plain(json.as_bytes())))
    }

    #[test]
    fn a_pattern_lives_as_long_as_those_that_are_told_from_it() {
        let (common, mut families) = (common(), Families::default());
        let (pattern, sibling) = (raw("a", 1, &common), raw("b", 1, &common));
        let (name, key) = (Name::of(pattern.meta()), &sibling.meta().key);
        assert!(families.home(name, key, &common).is_none());
        families.pattern(name, &pattern);
        let home = families.home(name, key, &common).unwrap();
        let gone = Arc::downgrade(&pattern);
        drop(pattern);
        assert!(Arc::ptr_eq(&home, &families.home(name, key, &common).unwrap()));
        drop(home);
        assert_eq!(gone.strong_count(), 0);
        assert!(families.home(name, key, &common).is_none());
    }

    #[test]
    fn an_object_is_told_from_its_own_past_only_if_others_are() {
        let (common, mut families) = (common(), Families::default());
        let (pattern, sibling) = (raw("a", 1, &common), raw("b", 1, &common));
        let name = Name::of(pattern.meta());
        families.pattern(name, &pattern);
        assert!(families.home(name, &pattern.meta().key, &common).is_none());
        let _home = families.home(name, &sibling.meta().key, &common).unwrap();
        assert!(families.home(name, &pattern.meta().key, &common).is_some());
    }

    #[test]
    fn families_that_have_died_out_do_not_pile_up() {
        let (common, mut families) = (common(), Families::default());
        for owner in 0..10_000 {
            let raw = raw("a", owner, &common);
            families.pattern(Name::of(raw.meta()), &raw);
        }
        assert!(families.table.len() <= 2 * SMALLEST_SWEEP, "{}", families.table.len());
    }

    #[test]
    fn the_more_often_it_was_in_vain_the_more_seldom_it_is_tried() {
        let (common, mut families) = (common(), Families::default());
        let (pattern, sibling) = (raw("a", 1, &common), raw("b", 1, &common));
        let (name, key) = (Name::of(pattern.meta()), &sibling.meta().key);
        let mut tried = 0;
        for _ in 0..1000 {
            if families.home(name, key, &common).is_some() {
                tried += 1;
                families.missed(name);
            }
            families.pattern(name, &pattern);
        }
        assert!((15..30).contains(&tried), "{tried}");
        while families.home(name, key, &common).is_none() {}
        families.hit(name);
        assert!((0..10).all(|_| families.home(name, key, &common).is_some()));
    }
}
