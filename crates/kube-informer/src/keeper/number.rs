//! Numbers in as few bytes as they need.

/// Seven bits a byte, lowest first.
#[inline]
pub(super) fn write_number(mut number: usize, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The number, and what stands behind it.
#[inline]
pub(super) fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        number |= usize::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        for number in [0, 1, 127, 128, 300, 16_383, 16_384, usize::MAX >> 4] {
            let mut bytes = Vec::new();
            write_number(number, &mut bytes);
            bytes.push(7);
            assert_eq!(read_number(&bytes), Some((number, &[7][..])));
        }
        assert_eq!(read_number(&[0xff; 20]), None);
    }
}
