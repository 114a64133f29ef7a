//! Random numbers for jitter and names.

use std::hash::{BuildHasher, RandomState};

/// A pseudo-random generator, randomly or explicitly seeded. Not cryptographic.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(()))
    }

    /// The next number (splitmix64).
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number between 0 and 1, inclusive.
    pub(crate) fn next_fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.next_u64() >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }
}
