//! The header of a gzip member (RFC 1952).

use flate2::Crc;

use super::GunzipError;

/// The header of a member, read byte by byte. What it says is of no interest, but for its length.
#[derive(Debug)]
pub(super) struct Header {
    field: Field,
    flags: u8,
    /// Of all bytes before the header's own checksum.
    crc: Crc,
}

/// What the next byte belongs to.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// The ten bytes that every header has.
    Fixed {
        position: usize,
    },
    ExtraLength {
        low: Option<u8>,
    },
    Extra {
        remaining: u16,
    },
    /// Text that ends with a zero.
    Name,
    Comment,
    Checksum {
        low: Option<u8>,
    },
}

/// The magic number, and deflate as the method.
const START: [u8; 3] = [0x1f, 0x8b, 8];
const FIXED: usize = 10;
const FLAGS_AT: usize = 3;

const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

impl Default for Header {
    fn default() -> Self {
        Self { field: Field::Fixed { position: 0 }, flags: 0, crc: Crc::new() }
    }
}

impl Header {
    /// Reads a byte. Returns whether it was the last one.
    pub(super) fn push(&mut self, byte: u8) -> Result<bool, GunzipError> {
        let next = match self.field {
            Field::Fixed { position } => {
                let is_valid = match position {
                    FLAGS_AT => byte & RESERVED == 0,
                    _ => START.get(position).is_none_or(|expected| byte == *expected),
                };
                if !is_valid {
                    return Err(GunzipError);
                }
                if position == FLAGS_AT {
                    self.flags = byte;
                }
                let position = position + 1;
                if position < FIXED { Some(Field::Fixed { position }) } else { self.after(0) }
            }
            Field::ExtraLength { low: None } => Some(Field::ExtraLength { low: Some(byte) }),
            Field::ExtraLength { low: Some(low) } => match u16::from_le_bytes([low, byte]) {
                0 => self.after(HAS_EXTRA),
                remaining => Some(Field::Extra { remaining }),
            },
            Field::Extra { remaining: 1 } => self.after(HAS_EXTRA),
            Field::Extra { remaining } => Some(Field::Extra { remaining: remaining - 1 }),
            Field::Name if byte == 0 => self.after(HAS_NAME),
            Field::Comment if byte == 0 => self.after(HAS_COMMENT),
            field @ (Field::Name | Field::Comment) => Some(field),
            Field::Checksum { low: None } => {
                self.field = Field::Checksum { low: Some(byte) };
                return Ok(false);
            }
            Field::Checksum { low: Some(low) } => {
                let is_valid = self.crc.sum() & 0xffff == u32::from(u16::from_le_bytes([low, byte]));
                return if is_valid { Ok(true) } else { Err(GunzipError) };
            }
        };
        self.crc.update(&[byte]);
        match next {
            Some(field) => {
                self.field = field;
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// The first field that the header has after this one, by its flag.
    fn after(&self, flag: u8) -> Option<Field> {
        let has = |next: u8, is_later: bool| is_later && self.flags & next != 0;
        if has(HAS_EXTRA, flag == 0) {
            Some(Field::ExtraLength { low: None })
        } else if has(HAS_NAME, flag <= HAS_EXTRA) {
            Some(Field::Name)
        } else if has(HAS_COMMENT, flag <= HAS_NAME) {
            Some(Field::Comment)
        } else if has(HAS_CHECKSUM, true) {
            Some(Field::Checksum { low: None })
        } else {
            None
        }
    }
}
