//! Bloom filters over label sets.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::state::Hashing;
use crate::object::Labels;
use crate::object::Selector;

/// 64-bit Bloom filter of a label set, two bits per label.
///
/// No false negatives, so a selector reads only the sets that may match; the strings of the sets
/// are scattered over memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LabelBloom(u64);

impl LabelBloom {
    fn of_label(hashing: &Hashing, key: &str, value: &str) -> Self {
        let hash = hashing.hash_one((key, value));
        Self(1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }

    pub(super) fn of(hashing: &Hashing, labels: Labels<'_>) -> Self {
        labels.iter().fold(Self::default(), |bloom, (key, value)| bloom.union(Self::of_label(hashing, key, value)))
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Filters per page, the unit of copy-on-write.
const PAGE: usize = 512;

/// The Bloom filters of all label sets, by set number. A clone is a snapshot: the first write after
/// it copies the list of pages and one page.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelBlooms(Arc<Vec<Arc<[LabelBloom; PAGE]>>>);

impl LabelBlooms {
    pub(super) fn set(&mut self, number: u32, bloom: LabelBloom) {
        let (page, at) = (number as usize / PAGE, number as usize % PAGE);
        let pages = Arc::make_mut(&mut self.0);
        while pages.len() <= page {
            pages.push(Arc::new([LabelBloom::default(); PAGE]));
        }
        Arc::make_mut(&mut pages[page])[at] = bloom;
    }

    /// Upper bound (exclusive) of all set numbers.
    pub(crate) fn bound(&self) -> usize {
        self.0.len() * PAGE
    }

    fn get(&self, number: u32) -> LabelBloom {
        self.0.get(number as usize / PAGE).map_or(LabelBloom::default(), |page| page[number as usize % PAGE])
    }
}

/// The filter bits that a label set must have to match a selector.
#[derive(Debug)]
pub(crate) struct BloomQuery {
    /// The bits of all labels that are required with one value.
    required: LabelBloom,
    /// For each requirement with several values, the bits of each value; one of them must be
    /// present.
    any_of: Vec<Vec<LabelBloom>>,
}

impl BloomQuery {
    pub(crate) fn by(selector: &Selector, hashing: &Hashing) -> Self {
        let (mut required, mut any_of) = (LabelBloom::default(), Vec::new());
        for (key, values) in selector.wanted() {
            let blooms: Vec<LabelBloom> =
                values.iter().map(|value| LabelBloom::of_label(hashing, key, value)).collect();
            match blooms[..] {
                [bloom] => required = required.union(bloom),
                _ => any_of.push(blooms),
            }
        }
        Self { required, any_of }
    }

    /// Whether the label set with this number may match.
    pub(crate) fn may_be(&self, blooms: &LabelBlooms, number: u32) -> bool {
        let bloom = blooms.get(number);
        bloom.contains(self.required) && self.any_of.iter().all(|any_of| any_of.iter().any(|one| bloom.contains(*one)))
    }
}

#[cfg(test)]
mod tests {
    use foldhash::SharedSeed;

    use super::*;
    use crate::body::Obj;

    fn object(labels: &str) -> Obj {
        Obj::from_json(format!(r#"{{"metadata":{{"name":"a","labels":{labels}}}}}"#)).unwrap()
    }

    #[test]
    fn no_set_that_a_selector_takes_is_passed_over() {
        let hashing = Hashing::with_seed(7, SharedSeed::global_fixed());
        let sets: Vec<Obj> = (0..2_000)
            .map(|n| object(&format!(r#"{{"app":"a{}","tier":"t{}","pod":"p{n}"}}"#, n % 17, n % 5)))
            .chain([object("{}")])
            .collect();
        let mut blooms = LabelBlooms::default();
        for (number, set) in (1..).zip(&sets) {
            blooms.set(number, LabelBloom::of(&hashing, set.labels()));
        }
        let before = blooms.clone();
        for (text, most) in [
            ("app=a3", 400),
            ("app=a3,tier=t1", 150),
            ("tier in (t1,t2),app in (a1)", 250),
            ("pod=p1234", 150),
            ("app=none", 300),
            ("app in (none,never)", 500),
            ("!app", 2_001),
            ("app!=a3,pod", 2_001),
            ("", 2_001),
        ] {
            let selector: Selector = text.parse().unwrap();
            let query = BloomQuery::by(&selector, &hashing);
            let mut candidates = 0;
            for (number, set) in (1..).zip(&sets) {
                let may_be = query.may_be(&blooms, number);
                assert!(may_be || !selector.matches(&set.labels()), "{text}: {:?}", set.labels());
                candidates += usize::from(may_be);
            }
            assert!(candidates <= most, "{text}: {candidates}");
        }
        blooms.set(1, LabelBloom::default());
        assert_ne!(before.get(1), blooms.get(1), "a snapshot stays as it is");
    }
}
