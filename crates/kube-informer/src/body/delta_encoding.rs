//! Delta encoding of an object against a reference: copy and literal instructions.
//!
//! Copies from the reference alternate with literals. A copy is its length. A literal is a token,
//! `length << 3 | form << 1 | moved`, and its bytes in that form. The next copy continues in the
//! reference after as many bytes as the literal has; if `moved` is set, a signed offset relative to
//! that follows. Numbers are varints.

use wide::u8x16;

use super::varint::{take_number, write_number};

/// Minimum length of a copy: a jump costs two or three bytes, and shorter matches are coincidental.
const SHORTEST_COPY: usize = 12;
/// Bytes compared at once (SIMD).
const WINDOW: usize = 64;
/// Shifts up to this distance are found without the index, e.g. an IP address of another length.
const MAX_SHIFT: usize = 4;
/// The index search visits this many candidates per hash, ...
const MAX_CHAIN: usize = 4;
/// ... indexes every eighth position of the reference, ...
const STEP: usize = 8;
/// ... and after a first match looks this many bytes further for a better one (lazy matching).
const LAZY_MATCH_BYTES: usize = 12;
/// A match of this length is taken without looking for a better one.
const GOOD_COPY: usize = 64;
/// Shorter tails are written as a literal without an index search.
const SHORT_TAIL: usize = 48;
/// Number of previous literals that can be repeated by number.
const HISTORY: usize = 32;
/// Shorter literals are neither repeated nor written with an alphabet.
const SHORTEST_REPEAT: usize = 3;

/// Maximum length of a reference: the index stores positions in 16 bits, in units of `STEP`.
pub(super) const LONGEST_REFERENCE: usize = STEP * NO_STEP as usize;
const NO_STEP: u16 = u16::MAX;
const HASH_BITS: u32 = 11;

/// Form of a literal. With an alphabet of sixteen characters, two fit into one byte.
const PLAIN: usize = 0;
const HEX: usize = 1;
const NUMBERS: usize = 2;
/// No bytes: repeats a previous literal.
const REPEAT: usize = 3;

static HEX_DIGITS: Alphabet = Alphabet::new(b"0123456789abcdef");
/// The characters of times, IP addresses and versions.
static NUMBER_CHARS: Alphabet = Alphabet::new(b"0123456789.-:TZ\"");

/// A reference and its match index.
#[derive(Debug)]
pub(super) struct Reference {
    bytes: Vec<u8>,
    /// The index is built on first use: most objects differ in place only.
    indexed: bool,
    /// Hash chains: by hash, the last step; by step, the previous one of the same hash.
    heads: Box<[u16; 1 << HASH_BITS]>,
    chain: Vec<u16>,
}

impl Default for Reference {
    fn default() -> Self {
        Self { bytes: Vec::new(), indexed: false, heads: Box::new([NO_STEP; 1 << HASH_BITS]), chain: Vec::new() }
    }
}

impl Reference {
    /// Clears the reference and returns the buffer for a new one.
    pub(super) fn reset(&mut self) -> &mut Vec<u8> {
        self.indexed = false;
        self.bytes.clear();
        &mut self.bytes
    }

    /// Approximate size in memory.
    pub(super) fn size(&self) -> usize {
        self.bytes.capacity() + 2 * self.chain.capacity()
    }

    /// Appends the delta of `new` to `out`. None if it exceeds `limit` bytes; `out` is then
    /// undefined.
    pub(super) fn encode(&mut self, new: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
        let end = out.len() + limit;
        let (mut at, mut ref_at) = (0, 0);
        let mut literals = LiteralHistory::default();
        loop {
            let copied = common_prefix(&new[at..], tail(&self.bytes, ref_at));
            (at, ref_at) = (at + copied, ref_at + copied);
            write_number(copied, out);
            if at == new.len() {
                return (out.len() <= end).then_some(());
            }
            // A literal takes at least half a byte per byte.
            let left = end.checked_sub(out.len())?.saturating_mul(2);
            let (len, to) =
                self.next_match(&new[at..], ref_at, left).unwrap_or((new.len() - at, ref_at + new.len() - at));
            let moved = to as isize - (ref_at + len) as isize;
            write_literal(new, at, len, moved != 0, &mut literals, out);
            if moved != 0 {
                write_number(((moved << 1) ^ (moved >> (isize::BITS - 1))).cast_unsigned(), out);
            }
            (at, ref_at) = (at + len, to);
            if out.len() > end {
                return None;
            }
            if at == new.len() {
                return Some(());
            }
        }
    }

    /// Finds the next match: how many bytes of `new` precede it, and its position in the reference.
    /// The first byte of `new` differs from that at `ref_at`.
    fn next_match(&mut self, new: &[u8], ref_at: usize, within: usize) -> Option<(usize, usize)> {
        let window = window(new, 0, OUTSIDE_NEW);
        if let Some(len) = self.match_at(new, &window, 0, ref_at) {
            return Some((len, ref_at + len));
        }
        let mut nearest: Option<(usize, usize)> = None;
        let mut consider = |from: Option<usize>| {
            let Some(from) = from else { return };
            if let Some(len) = self.match_at(new, &window, 0, from)
                && nearest.is_none_or(|(least, _)| len < least)
            {
                nearest = Some((len, from + len));
            }
        };
        for by in 1..=MAX_SHIFT {
            consider(Some(ref_at + by));
            consider(ref_at.checked_sub(by));
        }
        if nearest.is_some() {
            return nearest;
        }
        let further = self::window(new, WINDOW, OUTSIDE_NEW);
        if let Some(len) = self.match_at(new, &further, WINDOW, ref_at) {
            return Some((len, ref_at + len));
        }
        if new.len() <= SHORT_TAIL {
            return None;
        }
        self.index();
        self.search_index(new, ref_at, within)
    }

    /// Finds the first match of `new` with the reference shifted to `from`, and returns its offset
    /// in `new`. `window` holds the bytes of `new` from `skipped` on.
    #[inline]
    fn match_at(&self, new: &[u8], window: &[u8; WINDOW], skipped: usize, from: usize) -> Option<usize> {
        let (equal, is_inside) = match tail(&self.bytes, from + skipped).first_chunk() {
            Some(there) => (equal_bytes(window, there), new.len() >= skipped + WINDOW),
            None => (equal_bytes(window, &self::window(&self.bytes, from + skipped, OUTSIDE_REFERENCE)), false),
        };
        let at = run_starts(equal).trailing_zeros() as usize;
        if at == WINDOW {
            return None;
        }
        let len = skipped + at;
        // Bytes outside of the window and padding may be mistaken for a match.
        let seen = is_inside && at <= WINDOW - SHORTEST_COPY;
        (seen || common_prefix(tail(new, len), tail(&self.bytes, from + len)) >= SHORTEST_COPY).then_some(len)
    }

    fn index(&mut self) {
        if self.indexed {
            return;
        }
        self.indexed = true;
        self.heads.fill(NO_STEP);
        self.chain.clear();
        let words = self.bytes.as_chunks::<STEP>().0;
        self.chain.extend(words.iter().enumerate().map(|(step, word)| {
            let head = &mut self.heads[hash(u64::from_le_bytes(*word))];
            std::mem::replace(head, step as u16)
        }));
    }

    fn search_index(&self, new: &[u8], ref_at: usize, within: usize) -> Option<(usize, usize)> {
        let mut best: Option<(isize, usize, usize)> = None;
        let mut until = within;
        for at in 0.. {
            let Some(wanted) = word(new, at).filter(|_| at < until) else { break };
            let mut step = self.heads[hash(wanted)];
            for _ in 0..MAX_CHAIN {
                if step == NO_STEP {
                    break;
                }
                let from = usize::from(step) * STEP;
                step = self.chain[usize::from(step)];
                if word(&self.bytes, from) != Some(wanted) {
                    continue;
                }
                let back = common_suffix(&new[..at], &self.bytes[..from]);
                let len = back + common_prefix(&new[at..], &self.bytes[from..]);
                // A score: rewards the length of the copy, penalizes the literal and the jump.
                let jump = from.abs_diff(ref_at + at).min(2048) / 64;
                let worth = len as isize - (jump + at - back) as isize;
                if len >= SHORTEST_COPY && best.is_none_or(|(most, ..)| worth > most) {
                    until = if len >= GOOD_COPY { at + 1 } else { until.min(at + LAZY_MATCH_BYTES) };
                    best = Some((worth, at - back, from - back));
                }
            }
        }
        best.map(|(_, len, to)| (len, to))
    }
}

/// Decodes a delta against `reference`, appending to `to`.
pub(super) fn apply(reference: &[u8], mut delta: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let mut ref_at = 0;
    let mut literals = LiteralHistory::default();
    while !delta.is_empty() {
        let copied = take_number(&mut delta)?;
        to.extend_from_slice(reference.get(ref_at..)?.get(..copied)?);
        ref_at += copied;
        if delta.is_empty() {
            break;
        }
        let token = take_number(&mut delta)?;
        let (mut len, form, moved) = (token >> 3, token >> 1 & 3, token & 1 == 1);
        if form == REPEAT {
            let (at, length) = literals.back(len)?;
            to.extend_from_within(at..at.checked_add(length)?);
            len = length;
        } else {
            literals.push(to.len(), len);
            let alphabet = match form {
                HEX => Some(&HEX_DIGITS),
                NUMBERS => Some(&NUMBER_CHARS),
                _ => None,
            };
            let bytes = if alphabet.is_some() { len.div_ceil(2) } else { len };
            let (bytes, rest) = delta.split_at_checked(bytes)?;
            delta = rest;
            match alphabet {
                Some(alphabet) => alphabet.read(bytes, len, to),
                None => to.extend_from_slice(bytes),
            }
        }
        ref_at = ref_at.checked_add(len)?;
        if moved {
            let by = take_number(&mut delta)?;
            ref_at = ref_at.checked_add_signed((by >> 1).cast_signed() ^ -(by & 1).cast_signed())?;
        }
    }
    Some(())
}

fn write_literal(new: &[u8], at: usize, len: usize, moved: bool, literals: &mut LiteralHistory, out: &mut Vec<u8>) {
    let bytes = &new[at..at + len];
    let moved = usize::from(moved);
    if len >= SHORTEST_REPEAT
        && let Some(back) = literals.find(|(at, length)| length == len && &new[at..at + length] == bytes)
    {
        write_number(back << 3 | REPEAT << 1 | moved, out);
        return;
    }
    literals.push(at, len);
    let (form, alphabet) = if len < SHORTEST_REPEAT {
        (PLAIN, None)
    } else if HEX_DIGITS.contains(bytes) {
        (HEX, Some(&HEX_DIGITS))
    } else if NUMBER_CHARS.contains(bytes) {
        (NUMBERS, Some(&NUMBER_CHARS))
    } else {
        (PLAIN, None)
    };
    write_number(len << 3 | form << 1 | moved, out);
    match alphabet {
        Some(alphabet) => alphabet.write(bytes, out),
        None => out.extend_from_slice(bytes),
    }
}

/// Positions and lengths of the last literals (ring buffer).
#[derive(Debug, Default)]
struct LiteralHistory {
    entries: [(usize, usize); HISTORY],
    count: usize,
}

impl LiteralHistory {
    fn push(&mut self, at: usize, len: usize) {
        self.entries[self.count % HISTORY] = (at, len);
        self.count += 1;
    }

    fn back(&self, by: usize) -> Option<(usize, usize)> {
        (by < HISTORY.min(self.count)).then(|| self.entries[(self.count - 1 - by) % HISTORY])
    }

    fn find(&self, is: impl Fn((usize, usize)) -> bool) -> Option<usize> {
        (0..HISTORY.min(self.count)).find(|by| is(self.entries[(self.count - 1 - by) % HISTORY]))
    }
}

/// Sixteen characters, encoded in four bits each.
struct Alphabet {
    characters: &'static [u8; 16],
    codes: [u8; 256],
}

impl Alphabet {
    const NOT_IN_ALPHABET: u8 = 0xff;

    const fn new(characters: &'static [u8; 16]) -> Self {
        let mut codes = [Self::NOT_IN_ALPHABET; 256];
        let mut code = 0;
        while code < 16 {
            codes[characters[code as usize] as usize] = code;
            code += 1;
        }
        Self { characters, codes }
    }

    fn contains(&self, bytes: &[u8]) -> bool {
        bytes.iter().fold(0, |all, byte| all | self.codes[usize::from(*byte)]) != Self::NOT_IN_ALPHABET
    }

    fn write(&self, bytes: &[u8], to: &mut Vec<u8>) {
        let code = |byte: u8| self.codes[usize::from(byte)];
        let (pairs, odd) = bytes.as_chunks::<2>();
        to.extend(pairs.iter().map(|&[first, second]| code(first) | code(second) << 4));
        to.extend(odd.iter().map(|byte| code(*byte)));
    }

    fn read(&self, bytes: &[u8], len: usize, to: &mut Vec<u8>) {
        let (at, end) = (to.len(), to.len() + len);
        to.resize(at + 2 * bytes.len(), 0);
        for (pair, byte) in to[at..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
            *pair = [byte & 0xf, byte >> 4].map(|code| self.characters[usize::from(code)]);
        }
        to.truncate(end);
    }
}

/// Padding of windows beyond the end, different on both sides so that it never matches.
const OUTSIDE_NEW: u8 = 0xfe;
const OUTSIDE_REFERENCE: u8 = 0xff;

#[inline]
fn window(bytes: &[u8], at: usize, outside: u8) -> [u8; WINDOW] {
    let there = tail(bytes, at);
    if let Some(window) = there.first_chunk() {
        return *window;
    }
    let mut window = [outside; WINDOW];
    window[..there.len()].copy_from_slice(there);
    window
}

/// Bit mask of equal bytes.
#[inline]
fn equal_bytes(a: &[u8; WINDOW], b: &[u8; WINDOW]) -> u64 {
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    let mut bits = 0;
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        let equal = u8x16::new(*a).simd_eq(u8x16::new(*b)).to_bitmask();
        bits |= u64::from(equal as u16) << (16 * at);
    }
    bits
}

/// Bit mask of the positions where `SHORTEST_COPY` set bits follow one another. Bits beyond the
/// window count as set.
#[inline]
fn run_starts(mut bits: u64) -> u64 {
    const { assert!(SHORTEST_COPY == 1 + 1 + 2 + 4 + 4) }
    for by in [1, 2, 4, 4] {
        bits &= (bits >> by) | !(u64::MAX >> by);
    }
    bits
}

/// Length of the common prefix.
#[inline]
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let both = a.len().min(b.len());
    let (a, b) = (&a[..both], &b[..both]);
    let blocks = a.as_chunks::<32>().0.iter().zip(b.as_chunks::<32>().0).take_while(|(a, b)| a == b).count();
    let alike = 32 * blocks;
    let (a_words, a_rest) = a[alike..].as_chunks::<8>();
    let (b_words, b_rest) = b[alike..].as_chunks::<8>();
    for (at, (a, b)) in a_words.iter().zip(b_words).enumerate() {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return alike + 8 * at + (differ.trailing_zeros() / 8) as usize;
        }
    }
    both - a_rest.len() + a_rest.iter().zip(b_rest).take_while(|(a, b)| a == b).count()
}

/// Length of the common suffix.
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[inline]
fn tail(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}

#[inline]
fn hash(word: u64) -> usize {
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HASH_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delta(reference: &[u8], new: &[u8], limit: usize) -> Option<Vec<u8>> {
        let mut made = Reference::default();
        made.reset().extend_from_slice(reference);
        let mut out = b"head".to_vec();
        made.encode(new, limit, &mut out)?;
        assert!(out.len() <= limit + 4);
        let mut back = b"there".to_vec();
        apply(reference, &out[4..], &mut back).expect("written by ourselves");
        assert_eq!(back, [b"there", new].concat());
        Some(out.split_off(4))
    }

    fn pod(name: &str, address: &str, id: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","annotations":{{"address":"{address}/32"}}}},"spec":{{"image":"registry.example/shop/checkout:v1.2.3","id":"{id}"}},"status":{{"startTime":"2026-05-16T00:39:07Z","podIP":"{address}","podIPs":[{{"ip":"{address}"}}],"phase":"Running"}}}}"#
        )
    }

    #[test]
    fn what_is_the_same_takes_one_number() {
        let pod = pod("a", "10.0.0.1", "e7576561f8bd2bc8");
        assert_eq!(delta(pod.as_bytes(), pod.as_bytes(), 100).unwrap().len(), 2);
    }

    #[test]
    fn siblings_differ_in_little() {
        let (a, b) =
            (pod("web-x", "10.238.192.219", "e7576561f8bd2bc8"), pod("web-y", "10.64.22.7", "9e3d5447089a110a"));
        let written = delta(a.as_bytes(), b.as_bytes(), 1000).unwrap();
        // A literal of one letter, sixteen digits in eight bytes, an address in five bytes and two
        // repeats of it, plus instructions.
        assert!(written.len() < 40, "{}", written.len());
    }

    #[test]
    fn what_has_moved_is_found() {
        let words: Vec<String> =
            (0..400_u64).map(|n| format!("\"{:x}\"", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let moved = [&words[200..], &words[..200]].concat();
        let written = delta(words.join(",").as_bytes(), moved.join(",").as_bytes(), 10_000).unwrap();
        assert!(written.len() < 100, "{}", written.len());
    }

    #[test]
    fn what_is_not_alike_is_given_up() {
        let noise = |from: u64| -> Vec<u8> {
            (from..from + 1000).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
        };
        assert_eq!(delta(&noise(1), &noise(1 << 40), 1000), None);
        assert!(delta(&noise(1), &noise(1 << 40), 10_000).is_some());
    }

    #[test]
    fn what_stands_for_missing_bytes_is_not_taken_for_them() {
        let (start, middle) = (*b"0123456789", [b'x'; 30]);
        let with = |end: [u8; 12]| [&start[..], &middle, &end].concat();
        assert!(delta(&with([OUTSIDE_NEW; 12]), b"0123456789yz", 100).is_some());
        assert!(delta(&with([OUTSIDE_REFERENCE; 12]), b"0123456789yz", 100).is_some());
        for outside in [OUTSIDE_NEW, OUTSIDE_REFERENCE] {
            let new = [&start[..], &[outside; 20]].concat();
            assert!(delta(&start, &new, 30).is_some());
            assert!(delta(&[&new[..], &middle].concat(), &new, 30).is_some());
        }
    }

    #[test]
    fn a_long_copy_is_found_behind_many_own_bytes() {
        let noise = |from: u64, len: u64| -> Vec<u8> {
            (from..from + len).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
        };
        let reference = noise(1, 1000);
        let new = [noise(1 << 40, 500), reference[16..30].to_vec(), reference[2000..].to_vec()].concat();
        let written = delta(&reference, &new, 10_000).unwrap();
        assert!(written.len() < 4100, "{}", written.len());
    }

    #[test]
    fn broken_differences_are_refused() {
        let reference = [b'a'; 20];
        let far = [0, 1 << 3 | 1, b'x', 200, 1, 5];
        for broken in [&[21][..], &[1, 5 << 3, b'x'], &[1, REPEAT as u8 * 2], &far, &[0xff; 12]] {
            assert_eq!(apply(&reference, broken, &mut Vec::new()), None, "{broken:?}");
        }
    }

    /// A text and a variant with pieces changed, removed, inserted and moved.
    fn relatives() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let text = prop_oneof![
            "[0-9a-f]{0,70}",
            "[0-9.:TZ-]{0,20}",
            "(\"f:[a-z]{1,6}\":\\{\\},){1,6}",
            "[ -~]{0,30}",
            "a{0,200}",
        ];
        let filler = prop_oneof![Just(OUTSIDE_NEW), Just(OUTSIDE_REFERENCE)];
        let piece = prop_oneof![
            5 => text.prop_map(String::into_bytes),
            1 => (filler, 0_usize..40).prop_map(|(byte, len)| vec![byte; len]),
        ];
        (prop::collection::vec(piece, 1..20), any::<u64>()).prop_map(|(pieces, seed)| {
            let before = pieces.concat();
            let mut after = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                match seed.rotate_left(3 * at as u32) & 7 {
                    0 => {}
                    1 => after.extend(piece.iter().rev()),
                    2 => after.extend_from_slice(&pieces[at / 2]),
                    3 => after.extend_from_slice(&[at.to_string().as_bytes(), piece].concat()),
                    _ => after.extend_from_slice(piece),
                }
            }
            (before, after)
        })
    }

    proptest! {
        #[test]
        fn any_two_texts_come_back((before, after) in relatives(), limit in 0_usize..3000) {
            delta(&before, &after, limit);
            delta(&after, &before, limit);
        }

        #[test]
        fn any_bytes_come_back(before in prop::collection::vec(any::<u8>(), 0..300), after in prop::collection::vec(0_u8..3, 0..300)) {
            delta(&before, &after, 4000).expect("room enough");
        }

        #[test]
        fn no_bytes_are_too_broken_to_be_read(reference in prop::collection::vec(any::<u8>(), 0..50), bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            let _: Option<()> = apply(&reference, &bytes, &mut Vec::new());
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::{fuzz, recorded};

    #[test]
    fn deltas_between_variants_come_back_and_mutated_ones_are_read_or_refused() {
        let (json, _) = recorded();
        fuzz(500, |source| {
            let body = source.choose(&json).clone();
            let old = source.mutated(std::slice::from_ref(&body));
            let new = source.mutated(&[body]);
            let mut reference = Reference::default();
            reference.reset().extend_from_slice(&old);
            let mut delta = Vec::new();
            if reference.encode(&new, new.len() + 100, &mut delta).is_none() {
                return;
            }
            let mut back = Vec::new();
            assert!(apply(&old, &delta, &mut back).is_some() && back == new);
            source.mutate(&mut delta, &[new]);
            let _: Option<()> = apply(&old, &delta, &mut Vec::new());
        });
    }
}
