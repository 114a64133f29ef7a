//! Several strings in one allocation.

use std::sync::Arc;

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
}

/// Gathers strings, one after the other.
#[derive(Debug)]
pub(crate) struct Gather<'a>(&'a mut String);

impl<'a> Gather<'a> {
    pub(crate) fn into(text: &'a mut String) -> Self {
        Self(text)
    }

    /// Adds a string, unless it is so long that nothing sane sent it.
    pub(crate) fn push(&mut self, text: &str) -> Option<()> {
        self.number(text.len())?;
        self.0.push_str(text);
        Some(())
    }

    /// Adds a number, as lengths are.
    pub(crate) fn number(&mut self, number: usize) -> Option<()> {
        if number < ONE {
            self.0.push(char::from_u32(u32::try_from(number).ok()?)?);
        } else if number < LARGEST {
            self.0.push(char::from_u32(u32::try_from(ONE + number / ONE).ok()?)?);
            self.0.push(char::from_u32(u32::try_from(number % ONE).ok()?)?);
        } else {
            return None;
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
        let mut gathered = String::new();
        let mut gather = Gather::into(&mut gathered);
        for text in &texts {
            gather.push(text).unwrap();
        }
        assert!(Strings::from(Arc::from(gathered)).iter().eq(texts.iter().map(String::as_str)));
    }
}
