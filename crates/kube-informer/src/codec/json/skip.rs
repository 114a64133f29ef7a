//! Skipping of values in 64-byte blocks.

use wide::u8x16;

use super::cursor::Broken;
use crate::codec::MAX_DEPTH;

const BLOCK: usize = 64;

/// Skips the rest of an object or array after its opening bracket, across any chunk boundaries.
///
/// Each block of 64 bytes is converted to bit masks of quotes, backslashes and brackets; a prefix
/// xor over the quotes yields the bytes inside strings, and counting the brackets outside of
/// strings yields the depth. Whether brackets match in kind is not checked here; decoding the value
/// detects it.
#[derive(Debug, Clone)]
pub struct Skip {
    depth: u32,
    /// All ones inside a string, zero outside.
    inside: u64,
    /// One if the next byte is escaped.
    escaped: u64,
}

impl Default for Skip {
    fn default() -> Self {
        Self { depth: 1, inside: 0, escaped: 0 }
    }
}

impl Skip {
    /// Consumes more bytes. Returns where in them the value ends (one past its closing bracket), or
    /// none if it continues.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let (blocks, tail) = bytes.as_chunks::<BLOCK>();
        let mut at = 0;
        for block in blocks {
            if let Some(end) = self.block(block, BLOCK)? {
                return Ok(Some(at + end));
            }
            at += BLOCK;
        }
        if !tail.is_empty() {
            let mut block = [b' '; BLOCK];
            for (to, from) in block.iter_mut().zip(tail) {
                *to = *from;
            }
            return Ok(self.block(&block, tail.len())?.map(|end| at + end));
        }
        Ok(None)
    }

    #[inline]
    fn block(&mut self, block: &[u8; BLOCK], len: usize) -> Result<Option<usize>, Broken> {
        let masks = Masks::of(block);
        let escaped = self.escape(masks.backslashes, len);
        let inside = prefix_xor(masks.quotes & !escaped) ^ self.inside;
        // Broadcast of the highest bit.
        self.inside = ((inside as i64) >> 63) as u64;

        let (opens, closes) = (masks.opens & !inside, masks.closes & !inside);
        let closing = closes.count_ones();
        if closing < self.depth {
            self.depth += opens.count_ones();
            if self.depth > MAX_DEPTH {
                return Err(Broken::Deep);
            }
            self.depth -= closing;
            return Ok(None);
        }
        self.by_bracket(opens, closes)
    }

    /// The mask of escaped bytes. Stores whether the first byte of the next block is escaped.
    #[inline]
    fn escape(&mut self, backslashes: u64, len: usize) -> u64 {
        let mut escaped = self.escaped;
        self.escaped = 0;
        let mut rest = backslashes & !escaped;
        while rest != 0 {
            let at = rest.trailing_zeros();
            if at as usize + 1 == len {
                self.escaped = 1;
                break;
            }
            let next = 2 << at;
            escaped |= next;
            rest &= !(next | (next >> 1));
        }
        escaped
    }

    /// Handles a block in which the value may end, bracket by bracket.
    fn by_bracket(&mut self, opens: u64, closes: u64) -> Result<Option<usize>, Broken> {
        let mut brackets = opens | closes;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            if closes >> at & 1 == 1 {
                self.depth -= 1;
                if self.depth == 0 {
                    return Ok(Some(at as usize + 1));
                }
            } else {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Broken::Deep);
                }
            }
            brackets &= brackets - 1;
        }
        Ok(None)
    }
}

/// Bit masks of the special bytes in a block.
struct Masks {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

impl Masks {
    #[inline]
    fn of(block: &[u8; BLOCK]) -> Self {
        let mut masks = Self { quotes: 0, backslashes: 0, opens: 0, closes: 0 };
        for (i, lane) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*lane);
            // `[` and `{` differ only in bit 0x20, and so do `]` and `}`.
            let folded = bytes | u8x16::splat(0x20);
            let bits = |mask: u8x16| u64::from(mask.to_bitmask()) << (16 * i);
            masks.quotes |= bits(bytes.simd_eq(u8x16::splat(b'"')));
            masks.backslashes |= bits(bytes.simd_eq(u8x16::splat(b'\\')));
            masks.opens |= bits(folded.simd_eq(u8x16::splat(b'{')));
            masks.closes |= bits(folded.simd_eq(u8x16::splat(b'}')));
        }
        masks
    }
}

/// Prefix xor: each bit becomes the xor of itself and all lower bits.
#[inline]
fn prefix_xor(mut bits: u64) -> u64 {
    for step in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << step;
    }
    bits
}

/// Index of the closing quote of the string whose contents `bytes` begins with, and whether the
/// string contains escapes.
#[inline]
pub(super) fn string_end(bytes: &[u8]) -> Option<(usize, bool)> {
    let (mut at, mut escapes) = (0, false);
    loop {
        at += first_special(bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some((at, escapes));
        }
        escapes = true;
        at += 2;
    }
}

/// Index of the first quote or backslash.
#[inline]
fn first_special(bytes: &[u8]) -> Option<usize> {
    let (lanes, tail) = bytes.as_chunks::<16>();
    for (i, lane) in lanes.iter().enumerate() {
        let lane = u8x16::new(*lane);
        let found = (lane.simd_eq(u8x16::splat(b'"')) | lane.simd_eq(u8x16::splat(b'\\'))).to_bitmask();
        if found != 0 {
            return Some(i * 16 + found.trailing_zeros() as usize);
        }
    }
    let at = tail.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    Some(lanes.len() * 16 + at)
}
