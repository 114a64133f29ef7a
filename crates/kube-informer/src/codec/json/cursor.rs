//! Reading of complete JSON, field by field.

use std::borrow::Cow;

use super::skip::{Skip, string_end};

/// Why bytes cannot be read. Contains none of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// The bytes end inside a value.
    #[error("the JSON ends too early")]
    Short,
    /// An unexpected byte.
    #[error("unexpected byte in JSON")]
    Byte,
    /// Text that is not UTF-8, or an invalid escape.
    #[error("malformed text in JSON")]
    Text,
    /// Nested too deeply.
    #[error("JSON nested too deep")]
    Deep,
    /// Valid JSON, but not an object with metadata and a name.
    #[error("no object with metadata and a name")]
    Shape,
    /// Not a watch event: its type is unknown, or a part of it is missing.
    #[error("no watch event of a known type")]
    Event,
    /// Malformed protobuf.
    #[error("malformed protobuf")]
    Protobuf,
    /// Protobuf of a kind that is not in the table.
    #[error("protobuf of an unknown kind")]
    Kind,
}

/// The contents of a string, with escapes unresolved.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    raw: &'a [u8],
    escapes: bool,
}

impl<'a> Text<'a> {
    /// Text without escapes.
    pub(in crate::codec) fn of_bytes(raw: &'a [u8]) -> Self {
        Self { raw, escapes: false }
    }

    /// The text, or none if it is empty.
    pub(in crate::codec) fn filled(self) -> Option<Self> {
        (!self.raw.is_empty()).then_some(self)
    }

    pub(in crate::codec) fn has_escapes(self) -> bool {
        self.escapes
    }

    /// Whether the text equals `text`.
    #[inline]
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        if self.escapes { self.unescaped_is(text) } else { self.raw == text.as_bytes() }
    }

    /// Out of line, so that the scan's comparisons with names of fields are inlined.
    #[cold]
    fn unescaped_is(&self, text: &str) -> bool {
        self.read().is_ok_and(|read| read == text)
    }

    /// The bytes with escapes unresolved, without quotes.
    #[must_use]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// The bytes with escapes resolved. The caller must check that they are UTF-8.
    pub(crate) fn bytes(&self) -> Result<Cow<'a, [u8]>, Broken> {
        if self.escapes {
            return self.read().map(|text| Cow::Owned(text.into_owned().into_bytes()));
        }
        Ok(Cow::Borrowed(self.raw))
    }

    /// The text with escapes resolved.
    pub fn read(&self) -> Result<Cow<'a, str>, Broken> {
        if self.escapes {
            let mut quoted = Vec::with_capacity(self.raw.len() + 2);
            quoted.push(b'"');
            quoted.extend_from_slice(self.raw);
            quoted.push(b'"');
            return serde_json::from_slice(&quoted).map(Cow::Owned).map_err(|_| Broken::Text);
        }
        std::str::from_utf8(self.raw).map(Cow::Borrowed).map_err(|_| Broken::Text)
    }
}

/// A position in complete bytes.
#[derive(Debug, Clone)]
pub(in crate::codec) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(in crate::codec) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(in crate::codec) fn at(&self) -> usize {
        self.at
    }

    /// Skips whitespace, and returns the next byte without consuming it.
    #[inline]
    pub(in crate::codec) fn peek(&mut self) -> Result<u8, Broken> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return Err(Broken::Short),
            }
        }
    }

    /// Skips whitespace, and consumes this byte.
    #[inline]
    pub(in crate::codec) fn expect(&mut self, byte: u8) -> Result<(), Broken> {
        if self.peek()? != byte {
            return Err(Broken::Byte);
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes a string.
    #[inline]
    pub(in crate::codec) fn text(&mut self) -> Result<Text<'a>, Broken> {
        self.expect(b'"')?;
        let rest = &self.bytes[self.at..];
        let (end, escapes) = string_end(rest).ok_or(Broken::Short)?;
        self.at += end + 1;
        Ok(Text { raw: &rest[..end], escapes })
    }

    /// Consumes a value, and returns it if it is a string.
    pub(in crate::codec) fn text_or_skip(&mut self) -> Result<Option<Text<'a>>, Broken> {
        if self.peek()? == b'"' { self.text().map(Some) } else { self.skip().map(|()| None) }
    }

    /// Consumes a value, and returns its bytes.
    pub(in crate::codec) fn value(&mut self) -> Result<&'a [u8], Broken> {
        self.peek()?;
        let from = self.at;
        self.skip()?;
        Ok(&self.bytes[from..self.at])
    }

    /// Consumes a value.
    #[inline]
    pub(in crate::codec) fn skip(&mut self) -> Result<(), Broken> {
        match self.peek()? {
            b'{' | b'[' => {
                self.at += 1;
                self.at += Skip::default().feed(&self.bytes[self.at..])?.ok_or(Broken::Short)?;
            }
            b'"' => {
                self.text()?;
            }
            _ => {
                let rest = &self.bytes[self.at..];
                let end = rest.iter().position(|byte| !is_scalar(*byte)).unwrap_or(rest.len());
                if end == 0 {
                    return Err(Broken::Byte);
                }
                self.at += end;
            }
        }
        Ok(())
    }

    /// Consumes the opening brace of an object; [`field`](Self::field) iterates over its members.
    pub(in crate::codec) fn object(&mut self) -> Result<Members, Broken> {
        self.expect(b'{')?;
        Ok(Members::First)
    }

    /// Consumes the opening bracket of an array; [`element`](Self::element) iterates over its
    /// elements.
    pub(in crate::codec) fn list(&mut self) -> Result<Members, Broken> {
        self.expect(b'[')?;
        Ok(Members::First)
    }

    /// Consumes the next name and its colon, or the closing brace.
    #[inline]
    pub(in crate::codec) fn field(&mut self, members: &mut Members) -> Result<Option<Text<'a>>, Broken> {
        if !self.member(members, b'}')? {
            return Ok(None);
        }
        let name = self.text()?;
        self.expect(b':')?;
        Ok(Some(name))
    }

    /// Advances to the next element, or consumes the closing bracket and returns false.
    pub(in crate::codec) fn element(&mut self, members: &mut Members) -> Result<bool, Broken> {
        self.member(members, b']')
    }

    /// Advances to the next member, or consumes the closing bracket `close` and returns false.
    #[inline]
    pub(in crate::codec) fn member(&mut self, members: &mut Members, close: u8) -> Result<bool, Broken> {
        let byte = self.peek()?;
        if byte == close {
            self.at += 1;
            return Ok(false);
        }
        match members {
            Members::First => *members = Members::Further,
            Members::Further => {
                self.expect(b',')?;
                if self.peek()? == close {
                    return Err(Broken::Byte);
                }
            }
        }
        Ok(true)
    }
}

/// Whether a comma is required before the next member.
#[derive(Debug, Clone, Copy)]
pub(in crate::codec) enum Members {
    First,
    Further,
}

/// A byte of a number, `true`, `false` or `null`.
#[inline]
pub(in crate::codec) fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}
