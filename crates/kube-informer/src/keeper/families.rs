//! Objects that are likely to be much alike.

use std::hash::BuildHasher;
use std::sync::{Arc, Weak};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::home::{Common, Home};
use crate::object::{Meta, Owner, Raw};

/// Which of the objects of one owner the others are packed as differences from. Objects without an owner are one family.
///
/// What nobody holds any more is swept out whenever the table has doubled.
#[derive(Debug)]
pub(super) struct Families {
    table: HashTable<Family>,
    hasher: DefaultHashBuilder,
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
/// At least one of so many objects is tried.
const MOST_PASSED_OVER: u32 = 6;

impl Default for Families {
    fn default() -> Self {
        Self { table: HashTable::new(), hasher: DefaultHashBuilder::default(), sweep_at: SMALLEST_SWEEP }
    }
}

impl Families {
    pub(super) fn name(&self, meta: &Meta) -> Name {
        let owner = meta.owners().find(Owner::is_controller).or_else(|| meta.owners().next());
        Name(self.hasher.hash_one(owner.map(|owner| owner.uid())))
    }

    /// Where an object of this family may be packed as a difference.
    pub(super) fn home(&mut self, name: Name, common: &Arc<Common>) -> Option<Arc<Home>> {
        let family = self.table.find_mut(name.0, |family| family.name == name)?;
        if family.pass_over > 0 {
            family.pass_over -= 1;
            return None;
        }
        family.home.upgrade().or_else(|| {
            let home = Arc::new(Home::of_pattern(family.pattern.upgrade()?, Arc::clone(common)));
            family.home = Arc::downgrade(&home);
            Some(home)
        })
    }

    /// A difference was worth it.
    pub(super) fn hit(&mut self, name: Name) {
        if let Some(family) = self.table.find_mut(name.0, |family| family.name == name) {
            family.misses = 0;
        }
    }

    /// An object was packed by itself: it is the pattern for those that follow, because lists and changes have neighbours in time.
    pub(super) fn whole(&mut self, name: Name, raw: &Arc<Raw>, missed: bool) {
        let (pattern, home) = (Arc::downgrade(raw), Weak::new());
        if let Some(family) = self.table.find_mut(name.0, |family| family.name == name) {
            if missed {
                family.misses = family.misses.saturating_add(1);
                family.pass_over = ((1_u32 << u32::from(family.misses).min(MOST_PASSED_OVER)) - 2) as u8;
            }
            (family.pattern, family.home) = (pattern, home);
            return;
        }
        if self.table.len() >= self.sweep_at {
            self.sweep();
        }
        let family = Family { name, pattern, home, misses: 0, pass_over: 0 };
        self.table.insert_unique(name.0, family, |family| family.name.0);
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
    use crate::codec::{Extent, scan};
    use crate::keeper::{Dictionary, Keep};
    use crate::object::Body;

    fn common() -> Arc<Common> {
        Arc::new(Common::new(Keep::Compact, 0))
    }

    fn raw(owner: usize, common: &Arc<Common>) -> Arc<Raw> {
        let json = format!(r#"{{"metadata":{{"name":"a","ownerReferences":[{{"name":"o","uid":"{owner}"}}]}}}}"#);
        let meta = Meta::of(&scan(json.as_bytes(), Extent::Metadata).unwrap(), None).unwrap();
        let home = Arc::new(Home::new(Dictionary::none(), Arc::clone(common)));
        Arc::new(Raw::new(meta, home, Body::plain(json.as_bytes())))
    }

    #[test]
    fn a_pattern_lives_as_long_as_those_that_are_told_from_it() {
        let (common, mut families) = (common(), Families::default());
        let pattern = raw(1, &common);
        let name = families.name(pattern.meta());
        assert!(families.home(name, &common).is_none());
        families.whole(name, &pattern, false);
        let sibling = families.home(name, &common).unwrap();
        let gone = Arc::downgrade(&pattern);
        drop(pattern);
        assert!(Arc::ptr_eq(&sibling, &families.home(name, &common).unwrap()));
        drop(sibling);
        assert_eq!(gone.strong_count(), 0);
        assert!(families.home(name, &common).is_none());
    }

    #[test]
    fn families_that_have_died_out_do_not_pile_up() {
        let (common, mut families) = (common(), Families::default());
        for owner in 0..10_000 {
            let raw = raw(owner, &common);
            families.whole(families.name(raw.meta()), &raw, false);
        }
        assert!(families.table.len() <= 2 * SMALLEST_SWEEP, "{}", families.table.len());
    }

    #[test]
    fn the_more_often_it_was_in_vain_the_more_seldom_it_is_tried() {
        let (common, mut families) = (common(), Families::default());
        let pattern = raw(1, &common);
        let name = families.name(pattern.meta());
        let mut tried = 0;
        for _ in 0..1000 {
            let missed = families.home(name, &common).is_some();
            tried += usize::from(missed);
            families.whole(name, &pattern, missed);
        }
        assert!((15..30).contains(&tried), "{tried}");
        while families.home(name, &common).is_none() {}
        families.hit(name);
        assert!((0..10).all(|_| families.home(name, &common).is_some()));
    }
}
