//! Estimates the compressed size of objects, to decide whether a delta is worth it.

/// Plain and compressed bytes of objects compressed with the dictionary; recent ones weigh more.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    plain: u64,
    packed: u64,
}

/// Both sums are halved at this limit, so that old values decay.
const DECAY_AT: u64 = 1 << 24;

/// Assumed compression ratio before anything was measured.
const DEFAULT_RATIO: u64 = 8;

impl Sizes {
    pub(super) fn add(&mut self, plain: usize, packed: usize) {
        self.plain += plain as u64;
        self.packed += packed as u64;
        if self.plain >= DECAY_AT {
            self.plain /= 2;
            self.packed /= 2;
        }
    }

    /// Maximum length of a delta: three quarters of the estimated compressed size, and at most a
    /// quarter of the plain size.
    pub(super) fn delta_limit(&self, plain: usize) -> usize {
        let plain = plain as u64;
        let expected = (plain * self.packed).checked_div(self.plain).unwrap_or(plain / DEFAULT_RATIO);
        (expected * 3 / 4).min(plain / 4) as usize
    }
}
