//! Several strings in one allocation.

use std::sync::Arc;

use super::labels::Labels;

/// A sequence of strings in one shared allocation, each prefixed by its length, which is encoded as
/// one or two characters.
///
/// There are hundreds of thousands of label sets and owners: a `Vec<String>` would cost three words
/// and an allocation per string.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Strings(Arc<str>);

/// Lengths below this are encoded as one character.
const ONE_CHAR: usize = 0x8000;
/// Limit of what two characters below the surrogates can encode.
const TWO_CHARS: usize = (0xD7FF - ONE_CHAR) * ONE_CHAR;

impl Strings {
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter(&self.0)
    }

    /// The labels that the sequence starts with.
    pub(crate) fn labels(&self) -> Labels<'_> {
        let mut strings = self.iter();
        let count = strings.number().unwrap_or_default();
        Labels::new(&strings, count)
    }
}

/// Encodes strings, one after the other.
///
/// The result is valid UTF-8 if and only if each string is: a length is a character, so it cannot
/// complete a truncated character before it. So UTF-8 is validated once, at the end.
#[derive(Debug)]
pub(crate) struct StringsEncoder<'a>(&'a mut Vec<u8>);

impl<'a> StringsEncoder<'a> {
    pub(crate) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Appends a string; fails if it is absurdly long.
    pub(crate) fn push(&mut self, text: &[u8]) -> Option<()> {
        self.number(text.len())?;
        self.0.extend_from_slice(text);
        Some(())
    }

    /// Appends a number, encoded like a length.
    pub(crate) fn number(&mut self, number: usize) -> Option<()> {
        if let Ok(byte @ ..0x80) = u8::try_from(number) {
            self.0.push(byte);
            return Some(());
        }
        let (first, second) = match number {
            ..ONE_CHAR => (number, None),
            ONE_CHAR..TWO_CHARS => (ONE_CHAR + number / ONE_CHAR, Some(number % ONE_CHAR)),
            _ => return None,
        };
        for part in [Some(first), second].into_iter().flatten() {
            let part = char::from_u32(u32::try_from(part).ok()?)?;
            self.0.extend_from_slice(part.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Some(())
    }
}

impl From<Arc<str>> for Strings {
    fn from(text: Arc<str>) -> Self {
        Self(text)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Iter<'a>(&'a str);

impl<'a> Iterator for Iter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let len = self.number()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }
}

impl<'a> Iter<'a> {
    /// Iterates over the strings encoded in `text`.
    pub(super) fn over(text: &'a str) -> Self {
        Self(text)
    }

    /// The remaining encoded strings.
    pub(super) fn rest(&self) -> &'a str {
        self.0
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Option<usize> {
        // Fast path: most numbers are one byte.
        if let Some((byte @ ..0x80, _)) = self.0.as_bytes().split_first() {
            self.0 = &self.0[1..];
            return Some(usize::from(*byte));
        }
        let mut chars = self.0.chars();
        let first = chars.next()? as usize;
        let number = if first < ONE_CHAR { first } else { (first - ONE_CHAR) * ONE_CHAR + chars.next()? as usize };
        self.0 = chars.as_str();
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_come_back() {
        let texts: Vec<String> = [0, 1, 127, 128, 2047, 2048, ONE_CHAR - 1, ONE_CHAR, ONE_CHAR + 1, 3 * ONE_CHAR + 7]
            .map(|n| "x".repeat(n))
            .to_vec();
        let mut encoded = Vec::new();
        let mut encoder = StringsEncoder::new(&mut encoded);
        for text in &texts {
            encoder.push(text.as_bytes()).unwrap();
        }
        assert!(
            Strings::from(Arc::from(String::from_utf8(encoded).unwrap())).iter().eq(texts.iter().map(String::as_str))
        );
    }
}
