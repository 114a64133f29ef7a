//! Incremental skipping of one value.

use super::cursor::{Broken, is_scalar};
use super::skip::Skip;

/// A value being skipped, across any chunk boundaries.
#[derive(Debug)]
pub(super) enum Value {
    /// Inside a string; `escaped` if the next byte is.
    Text { escaped: bool },
    /// Inside an object or an array.
    Nested(Skip),
    /// Inside a number, `true`, `false` or `null`.
    Scalar,
}

impl Value {
    /// The value that begins with this byte, which has already been consumed.
    pub(super) fn beginning(byte: u8) -> Result<Self, Broken> {
        match byte {
            b'"' => Ok(Self::Text { escaped: false }),
            b'{' | b'[' => Ok(Self::Nested(Skip::default())),
            byte if is_scalar(byte) => Ok(Self::Scalar),
            _ => Err(Broken::Byte),
        }
    }

    /// Consumes more bytes. Returns where in them the value ends, or none if it continues.
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
