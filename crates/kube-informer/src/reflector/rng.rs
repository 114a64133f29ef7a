//! Chance, which can be fixed.

use std::hash::{BuildHasher, RandomState};

/// Numbers that nobody can foresee, or the same ones each time from a seed. Nothing depends on how good they are.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn random() -> Self {
        Self(RandomState::new().hash_one(()))
    }

    /// Between 0 and 1 (splitmix64).
    pub(crate) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        f64::from(u32::try_from(mixed >> 32).unwrap_or(0)) / f64::from(u32::MAX)
    }
}
