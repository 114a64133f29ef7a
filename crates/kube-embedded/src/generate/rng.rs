//! Deterministic random numbers: the same seed, domain and index give the same sequence.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// The purpose of a sequence. Objects with the same index but different kinds must not share it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Domain {
    Block = 1,
    Workload,
    Pod,
    Container,
    Node,
    Namespace,
    DaemonSet,
    Event,
    CustomResource,
    ConfigMap,
}

#[derive(Debug, Clone)]
pub(super) struct SampleRng {
    rng: Pcg64Mcg,
}

impl SampleRng {
    pub(super) fn new(seed: u64, domain: Domain, index: u64) -> Self {
        let high = mix(seed ^ mix(domain as u64));
        let low = mix(high ^ mix(index));
        Self { rng: Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)) }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// A number in `0..limit`; 0 if the limit is 0.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        // The high half of a widening multiplication: no division, and a negligible bias.
        let product = u128::from(self.next()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A number in `from..=to`.
    pub(super) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let position = self.below(of.len() as u64) as usize;
        of[position]
    }

    /// Like [`SampleRng::pick`], but prefers the first elements.
    pub(super) fn pick_skewed<T: Copy>(&mut self, of: &[T]) -> T {
        let ceiling = self.below(of.len() as u64) + 1;
        of[self.below(ceiling) as usize]
    }

    pub(super) fn uuid(&mut self) -> String {
        let high = self.next();
        let low = self.next();
        uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
            .into_uuid()
            .hyphenated()
            .to_string()
    }

    pub(super) fn hex(&mut self, digits: usize) -> String {
        self.letters(b"0123456789abcdef", digits)
    }

    /// A random SHA-256 digest in hexadecimal.
    pub(super) fn sha256(&mut self) -> String {
        self.hex(64)
    }

    /// A name suffix as the API server and its controllers generate it; without vowels, to avoid
    /// words.
    pub(super) fn suffix(&mut self, length: usize) -> String {
        self.letters(b"bcdfghjklmnpqrstvwxz2456789", length)
    }

    fn letters(&mut self, alphabet: &[u8], length: usize) -> String {
        let mut out = String::with_capacity(length);
        let mut bits = 0;
        for position in 0..length {
            if position % 8 == 0 {
                bits = self.next();
            }
            let byte = bits & 0xff;
            bits >>= 8;
            out.push(char::from(alphabet[(byte as usize * alphabet.len()) >> 8]));
        }
        out
    }
}

/// The finalizer of splitmix64: consecutive numbers give unrelated results.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
