//! A set of hashes, as ranges.

use std::fmt;

use super::hash_range::HashRange;

/// A set of hashes: sorted ranges that neither overlap nor touch, so that equal sets are equal.
///
/// ```
/// use kube_informer::shard::{HashRange, HashRanges};
///
/// let quarters = HashRanges::parts(4);
/// let half = quarters[0].union(&quarters[1]);
/// assert_eq!(half, HashRange::new(0, 1 << 63).unwrap().into());
/// assert_eq!(half.difference(&quarters[0]), quarters[1]);
/// assert_eq!(quarters.into_iter().fold(HashRanges::NONE, |all, part| all.union(&part)), HashRanges::all());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HashRanges(Vec<HashRange>);

impl HashRanges {
    /// No hashes.
    pub const NONE: Self = Self(Vec::new());

    /// All hashes.
    #[must_use]
    pub fn all() -> Self {
        HashRange::ALL.into()
    }

    /// All hashes in this many parts of the same size, but for rounding; none for zero.
    #[must_use]
    pub fn parts(count: u32) -> Vec<Self> {
        let bound = |nth: u32| (u128::from(nth) << 64) / u128::from(count);
        (0..count)
            .map(|nth| u64::try_from(bound(nth)).ok().and_then(|start| HashRange::new(start, bound(nth + 1))))
            .map(|range| range.into_iter().collect())
            .collect()
    }

    /// Whether there are no hashes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many hashes there are, at most 2^64.
    #[must_use]
    pub fn size(&self) -> u128 {
        self.iter().map(HashRange::size).sum()
    }

    /// The ranges, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = HashRange> + '_ {
        self.0.iter().copied()
    }

    /// Whether a hash is in the set.
    #[must_use]
    pub fn contains(&self, hash: u64) -> bool {
        let at = self.0.partition_point(|range| range.last() < hash);
        self.0.get(at).is_some_and(|range| range.contains(hash))
    }

    /// The hashes of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// The hashes of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            let (last_a, last_b) = (a.last(), b.last());
            both.extend(HashRange::inclusive(a.start().max(b.start()), last_a.min(last_b)));
            if last_a <= last_b {
                ours.next();
            } else {
                theirs.next();
            }
        }
        Self(both)
    }

    /// The hashes that are in this set and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// The hashes that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut next = Some(0);
        for range in self.iter() {
            let before = range.start().checked_sub(1);
            gaps.extend(next.zip(before).and_then(|(start, last)| HashRange::inclusive(start, last)));
            next = range.last().checked_add(1);
        }
        gaps.extend(next.and_then(|start| HashRange::inclusive(start, u64::MAX)));
        Self(gaps)
    }

    /// Whether all hashes of this set are in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.intersection(other) == *self
    }

    /// Whether no hash is in both sets.
    #[must_use]
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.intersection(other).is_empty()
    }
}

impl From<HashRange> for HashRanges {
    fn from(range: HashRange) -> Self {
        Self(vec![range])
    }
}

/// In any order; ranges may overlap.
impl FromIterator<HashRange> for HashRanges {
    fn from_iter<I: IntoIterator<Item = HashRange>>(ranges: I) -> Self {
        let mut sorted: Vec<HashRange> = ranges.into_iter().collect();
        sorted.sort_unstable();
        let mut joined: Vec<HashRange> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match joined.last_mut() {
                Some(last) if u128::from(range.start()) <= last.end() => {
                    *last = HashRange::inclusive(last.start(), last.last().max(range.last())).unwrap_or(*last);
                }
                _ => joined.push(range),
            }
        }
        Self(joined)
    }
}

/// The ranges, separated by commas.
impl fmt::Display for HashRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{range}")?;
        }
        Ok(())
    }
}
