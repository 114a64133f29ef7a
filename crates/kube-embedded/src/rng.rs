//! Random numbers: uids, name suffixes, watch timeouts.

use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use uuid::Builder;

/// The server's random number generator. With a seed, the same requests in the same order get the
/// same names and uids.
#[derive(Debug)]
pub(crate) struct Rng(Mutex<Pcg64Mcg>);

impl Rng {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(Mutex::new(Pcg64Mcg::seed_from_u64(seed.unwrap_or_else(rand::random))))
    }

    /// A random uid (UUID version 4).
    pub(crate) fn uid(&self) -> String {
        Builder::from_random_bytes(self.0.lock().random()).into_uuid().to_string()
    }

    /// The random suffix of `metadata.generateName`: five characters of an alphabet without vowels,
    /// so that no words occur.
    pub(crate) fn suffix(&self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut rng = self.0.lock();
        (0..5).map(|_| LETTERS[rng.random_range(0..LETTERS.len())] as char).collect()
    }

    /// A random number in `0.0..1.0`.
    pub(crate) fn fraction(&self) -> f64 {
        self.0.lock().random_range(0.0..1.0)
    }
}
