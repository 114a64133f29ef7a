//! Taking one value out of bytes that are still arriving.

use super::cursor::{Broken, is_scalar};
use super::skip::Skip;

/// A value being passed over, however the bytes are cut.
#[derive(Debug)]
pub(super) enum Value {
    /// Inside a string; whether the next byte is escaped.
    Text { escaped: bool },
    /// Inside an object or a list.
    Nested(Skip),
    /// In a number or a word.
    Scalar,
}

impl Value {
    /// The value that begins with this byte, which has been taken.
    pub(super) fn beginning(byte: u8) -> Result<Self, Broken> {
        match byte {
            b'"' => Ok(Self::Text { escaped: false }),
            b'{' | b'[' => Ok(Self::Nested(Skip::default())),
            byte if is_scalar(byte) => Ok(Self::Scalar),
            _ => Err(Broken::Byte),
        }
    }

    /// Takes more bytes. Says where the value ends in them, or none if it goes on.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, Broken> {
        match self {
            Self::Nested(skip) => skip.feed(bytes),
            Self::Scalar => Ok(bytes.iter().position(|byte| !is_scalar(*byte))),
            Self::Text { escaped } => {
                for (at, byte) in bytes.iter().enumerate() {
                    match byte {
                        _ if *escaped => *escaped = false,
                        b'\\' => *escaped = true,
                        b'"' => return Ok(Some(at + 1)),
                        _ => {}
                    }
                }
                Ok(None)
            }
        }
    }
}
