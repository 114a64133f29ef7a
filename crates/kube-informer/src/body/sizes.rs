//! Estimates sizes of objects: compressed, to decide whether a delta is worth it, and as received.

/// Plain and compressed bytes of objects compressed with the dictionary; recent ones weigh more.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    plain: u64,
    packed: u64,
}

/// The mean size of the objects received; recent ones weigh more.
#[derive(Debug, Default)]
pub(super) struct MeanSize {
    bytes: u64,
    objects: u64,
}

/// Both sums are halved at this many objects.
const DECAY_OBJECTS: u64 = 1 << 14;

impl MeanSize {
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.objects += 1;
        if self.objects >= DECAY_OBJECTS {
            self.bytes /= 2;
            self.objects /= 2;
        }
    }

    /// 0 before any object was received.
    pub(super) fn mean(&self) -> usize {
        self.bytes.checked_div(self.objects).unwrap_or(0) as usize
    }
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
