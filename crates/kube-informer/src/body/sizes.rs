//! What objects come to when they are packed by themselves.

/// Plain and packed bytes, the later ones counting more.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    plain: u64,
    packed: u64,
}

/// Both are halved here, so that what was packed long ago is forgotten.
const DECAY_AT: u64 = 1 << 24;

/// As long as nothing is known, a difference may be so much shorter than what it stands for.
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

    /// How long a difference may be to be worth keeping: three quarters of what the object would come to by itself, and at most
    /// a quarter of what it is.
    pub(super) fn delta_limit(&self, plain: usize) -> usize {
        let plain = plain as u64;
        let expected = (plain * self.packed).checked_div(self.plain).unwrap_or(plain / DEFAULT_RATIO);
        (expected * 3 / 4).min(plain / 4) as usize
    }
}
