//! A range of hashes.

use std::fmt;
use std::str::FromStr;

use crate::object::ParseError;

/// The hashes from a start to before an end, which is at most 2^64. Never empty.
///
/// ```
/// use kube_informer::shard::HashRange;
///
/// let half = HashRange::new(0, 1 << 63).unwrap();
/// assert!(half.contains(0));
/// assert!(!half.contains(1 << 63));
/// assert_eq!(half.to_string(), "0x0000000000000000..0x8000000000000000");
/// assert_eq!("0x0000000000000000..0x10000000000000000".parse::<HashRange>(), Ok(HashRange::ALL));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashRange {
    start: u64,
    /// Inclusive, so that 64 bits suffice.
    last: u64,
}

impl HashRange {
    /// All hashes.
    pub const ALL: Self = Self { start: 0, last: u64::MAX };
    /// The first hash only.
    pub(super) const FIRST: Self = Self { start: 0, last: 0 };

    /// The hashes from `start` to before `end`; `None` if there are none, or if `end` is above
    /// 2^64.
    #[must_use]
    pub fn new(start: u64, end: u128) -> Option<Self> {
        let last = u64::try_from(end.checked_sub(1)?).ok()?;
        Self::inclusive(start, last)
    }

    /// The hashes from `start` to `last`; `None` if there are none.
    pub(super) fn inclusive(start: u64, last: u64) -> Option<Self> {
        (start <= last).then_some(Self { start, last })
    }

    /// The first hash.
    #[must_use]
    pub fn start(self) -> u64 {
        self.start
    }

    /// The end, which does not belong to the range: at most 2^64.
    #[must_use]
    pub fn end(self) -> u128 {
        u128::from(self.last) + 1
    }

    /// The last hash.
    pub(super) fn last(self) -> u64 {
        self.last
    }

    /// How many hashes the range has.
    #[must_use]
    pub fn size(self) -> u128 {
        self.end() - u128::from(self.start)
    }

    /// Whether a hash is in the range.
    #[must_use]
    pub fn contains(self, hash: u64) -> bool {
        (self.start..=self.last).contains(&hash)
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}..{:#018x}", self.start, self.end())
    }
}

impl FromStr for HashRange {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refused = || {
            let example = Self::ALL;
            ParseError::new(format!("not a range of hashes: {text:?}; write it as {example}"))
        };
        let (start, end) = text.split_once("..").ok_or_else(refused)?;
        let (start, end) = (bound(start).ok_or_else(refused)?, bound(end).ok_or_else(refused)?);
        u64::try_from(start).ok().and_then(|start| Self::new(start, end)).ok_or_else(refused)
    }
}

/// A bound as servers write it: `0x` and 16 lowercase hexadecimal digits, or 2^64.
pub(super) fn bound(text: &str) -> Option<u128> {
    let digits = text.strip_prefix("0x")?;
    let is_bound = digits.len() == 16 || digits == "10000000000000000";
    let are_digits = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    (is_bound && are_digits).then(|| u128::from_str_radix(digits, 16).ok())?
}
