//! The hash of shards.

use crate::object::Uid;

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The 64-bit FNV-1a hash of a text.
///
/// ```
/// use kube_informer::shard::fnv_1a;
///
/// assert_eq!(fnv_1a("a"), 0xaf63_dc4c_8601_ec8c);
/// ```
#[must_use]
pub fn fnv_1a(text: impl AsRef<[u8]>) -> u64 {
    continued(OFFSET_BASIS, text.as_ref())
}

fn continued(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

impl Uid {
    /// The 64-bit FNV-1a hash of the text, by which shards by uid are divided.
    ///
    /// ```
    /// use kube_informer::Uid;
    /// use kube_informer::shard::fnv_1a;
    ///
    /// let text = "b7a3c5de-0000-4000-8000-0123456789ab";
    /// assert_eq!(Uid::new(text).fnv_1a(), fnv_1a(text));
    /// ```
    #[must_use]
    pub fn fnv_1a(&self) -> u64 {
        let mut hash = OFFSET_BASIS;
        self.for_each_part(|bytes| hash = continued(hash, bytes));
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_published_vectors() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(fnv_1a(text), hash, "{text}");
        }
    }

    #[test]
    fn a_uid_hashes_as_its_text_however_it_is_stored() {
        for text in ["", "a", "0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f809", "0B2F3C4D-5E6F-7081-92A3-B4C5D6E7F809"] {
            assert_eq!(Uid::new(text).fnv_1a(), fnv_1a(text), "{text}");
        }
    }
}
