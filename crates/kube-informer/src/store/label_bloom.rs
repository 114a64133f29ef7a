//! What labels a set may have, at a glance.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::state::Hashing;
use crate::object::Labels;
use crate::object::Selector;

/// Two bits for each label of a set. A set without the bits of a label does not have the label; one with them may.
///
/// So a selector looks at the text of a few sets only, which lie all over memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LabelBloom(u64);

impl LabelBloom {
    fn of_label(hashing: &Hashing, key: &str, value: &str) -> Self {
        let hash = hashing.hash_one((key, value));
        Self(1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }

    pub(super) fn of(hashing: &Hashing, labels: Labels<'_>) -> Self {
        labels.iter().fold(Self::default(), |mark, (key, value)| mark.and(Self::of_label(hashing, key, value)))
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How many marks lie together.
const PAGE: usize = 512;

/// The marks of all label sets, by their numbers. A clone is a snapshot: the first write after it copies the list of pages and one page.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabelBlooms(Arc<Vec<Arc<[LabelBloom; PAGE]>>>);

impl LabelBlooms {
    pub(super) fn set(&mut self, number: u32, mark: LabelBloom) {
        let (page, at) = (number as usize / PAGE, number as usize % PAGE);
        let pages = Arc::make_mut(&mut self.0);
        while pages.len() <= page {
            pages.push(Arc::new([LabelBloom::default(); PAGE]));
        }
        Arc::make_mut(&mut pages[page])[at] = mark;
    }

    /// All numbers that were given are below this.
    pub(crate) fn bound(&self) -> usize {
        self.0.len() * PAGE
    }

    fn get(&self, number: u32) -> LabelBloom {
        self.0.get(number as usize / PAGE).map_or(LabelBloom::default(), |page| page[number as usize % PAGE])
    }
}

/// The marks that a set must have for a selector to take it.
#[derive(Debug)]
pub(crate) struct BloomQuery {
    every: LabelBloom,
    /// One of each.
    either: Vec<Vec<LabelBloom>>,
}

impl BloomQuery {
    pub(crate) fn by(selector: &Selector, hashing: &Hashing) -> Self {
        let (mut every, mut either) = (LabelBloom::default(), Vec::new());
        for (key, values) in selector.wanted() {
            let marks: Vec<LabelBloom> = values.iter().map(|value| LabelBloom::of_label(hashing, key, value)).collect();
            match marks[..] {
                [mark] => every = every.and(mark),
                _ => either.push(marks),
            }
        }
        Self { every, either }
    }

    /// Whether the set of this number may be one.
    pub(crate) fn may_be(&self, marks: &LabelBlooms, number: u32) -> bool {
        let mark = marks.get(number);
        mark.has(self.every) && self.either.iter().all(|either| either.iter().any(|one| mark.has(*one)))
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
        let mut marks = LabelBlooms::default();
        for (number, set) in (1..).zip(&sets) {
            marks.set(number, LabelBloom::of(&hashing, set.labels()));
        }
        let before = marks.clone();
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
            let sought = BloomQuery::by(&selector, &hashing);
            let mut looked_at = 0;
            for (number, set) in (1..).zip(&sets) {
                let may_be = sought.may_be(&marks, number);
                assert!(may_be || !selector.matches(&set.labels()), "{text}: {:?}", set.labels());
                looked_at += usize::from(may_be);
            }
            assert!(looked_at <= most, "{text}: {looked_at}");
        }
        marks.set(1, LabelBloom::default());
        assert_ne!(before.get(1), marks.get(1), "a snapshot stays as it is");
    }
}
