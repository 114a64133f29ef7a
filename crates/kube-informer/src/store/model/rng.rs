//! Seeded random numbers.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// A seeded generator with the shapes of choice that the model makes.
#[derive(Debug)]
pub(super) struct Rng(Pcg64Mcg);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A number from 0 to `bound`, exclusive.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.random_range(0..bound)
    }

    pub(super) fn between(&mut self, first: u64, last: u64) -> u64 {
        self.0.random_range(first..=last)
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.0.random_range(0..all.len())]
    }
}
