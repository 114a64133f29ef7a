//! Several strings in one allocation.

use std::sync::Arc;

use super::labels::Labels;

/// A sequence of strings in one shared allocation, each after its length, which is written as one character or two.
///
/// Label sets and owners are held by the hundred thousand: a `Vec<String>` would cost three words and an allocation apiece.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Strings(Arc<str>);

/// Lengths below this are one character.
const ONE: usize = 0x8000;
/// The most that two characters below the surrogates can say.
const LARGEST: usize = (0xD7FF - ONE) * ONE;

impl Strings {
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter(&self.0)
    }

    /// The labels that these are, or begin with.
    pub(crate) fn labels(&self) -> Labels<'_> {
        let mut strings = self.iter();
        let count = strings.number().unwrap_or_default();
        Labels::new(&strings, count)
    }
}

/// Gathers strings, one after the other.
///
/// What is gathered is UTF-8 if and only if each string is: lengths are characters, and end whatever stood before them. So it is
/// checked once, at the end.
#[derive(Debug)]
pub(crate) struct Gather<'a>(&'a mut Vec<u8>);

impl<'a> Gather<'a> {
    pub(crate) fn into(bytes: &'a mut Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Adds a string, unless it is so long that nothing sane sent it.
    pub(crate) fn push(&mut self, text: &[u8]) -> Option<()> {
        self.number(text.len())?;
        self.0.extend_from_slice(text);
        Some(())
    }

    /// Adds a number, as lengths are.
    pub(crate) fn number(&mut self, number: usize) -> Option<()> {
        if let Ok(byte @ ..0x80) = u8::try_from(number) {
            self.0.push(byte);
            return Some(());
        }
        let (first, second) = match number {
            ..ONE => (number, None),
            ONE..LARGEST => (ONE + number / ONE, Some(number % ONE)),
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
    /// Walks strings from here.
    pub(super) fn over(text: &'a str) -> Self {
        Self(text)
    }

    /// What has not been walked.
    pub(super) fn rest(&self) -> &'a str {
        self.0
    }

    /// Takes a number.
    pub(crate) fn number(&mut self) -> Option<usize> {
        // Most numbers are one byte.
        if let Some((byte @ ..0x80, _)) = self.0.as_bytes().split_first() {
            self.0 = &self.0[1..];
            return Some(usize::from(*byte));
        }
        let mut chars = self.0.chars();
        let first = chars.next()? as usize;
        let number = if first < ONE { first } else { (first - ONE) * ONE + chars.next()? as usize };
        self.0 = chars.as_str();
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_every_length_come_back() {
        let texts: Vec<String> =
            [0, 1, 127, 128, 2047, 2048, ONE - 1, ONE, ONE + 1, 3 * ONE + 7].map(|n| "x".repeat(n)).to_vec();
        let mut gathered = Vec::new();
        let mut gather = Gather::into(&mut gathered);
        for text in &texts {
            gather.push(text.as_bytes()).unwrap();
        }
        assert!(
            Strings::from(Arc::from(String::from_utf8(gathered).unwrap())).iter().eq(texts.iter().map(String::as_str))
        );
    }
}
