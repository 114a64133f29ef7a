//! The protobuf wire format: tags, varints and lengths.

use crate::codec::Broken;

/// A field value by wire type: varint, fixed-size or length-delimited.
#[derive(Debug, Clone, Copy)]
pub(super) enum Datum<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

/// Iterates over the fields of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// The number and value of the next field.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Datum<'a>)>, Broken> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0).ok_or(Broken::Protobuf)?;
        Ok(Some((number, self.value(tag)?)))
    }

    /// The value of the next field, if it has this number.
    #[inline]
    pub(super) fn next_if(&mut self, number: u32) -> Result<Option<Datum<'a>>, Broken> {
        let mut ahead = self.rest;
        if ahead.is_empty() || varint(&mut ahead)? >> 3 != u64::from(number) {
            return Ok(None);
        }
        Ok(self.next()?.map(|(_, wire)| wire))
    }

    #[inline]
    fn value(&mut self, tag: u64) -> Result<Datum<'a>, Broken> {
        Ok(match tag & 7 {
            0 => Datum::Number(varint(&mut self.rest)?),
            1 => {
                let (bytes, rest) = self.rest.split_first_chunk::<8>().ok_or(Broken::Protobuf)?;
                self.rest = rest;
                Datum::Fixed(u64::from_le_bytes(*bytes))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).map_err(|_| Broken::Protobuf)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Broken::Protobuf)?;
                self.rest = rest;
                Datum::Bytes(bytes)
            }
            5 => {
                let (bytes, rest) = self.rest.split_first_chunk::<4>().ok_or(Broken::Protobuf)?;
                self.rest = rest;
                Datum::Fixed(u32::from_le_bytes(*bytes).into())
            }
            _ => return Err(Broken::Protobuf),
        })
    }
}

/// The value of the last length-delimited field with this number.
pub(super) fn bytes_of(message: &[u8], number: u32) -> Result<Option<&[u8]>, Broken> {
    let (mut fields, mut found) = (Fields::of(message), None);
    while let Some((at, wire)) = fields.next()? {
        if let (true, Datum::Bytes(bytes)) = (at == number, wire) {
            found = Some(bytes);
        }
    }
    Ok(found)
}

#[inline]
pub(crate) fn varint(rest: &mut &[u8]) -> Result<u64, Broken> {
    if let [byte @ 0..0x80, further @ ..] = rest {
        let number = u64::from(*byte);
        *rest = further;
        return Ok(number);
    }
    long_varint(rest)
}

fn long_varint(rest: &mut &[u8]) -> Result<u64, Broken> {
    let mut number = 0;
    for (at, byte) in rest.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            *rest = &rest[at + 1..];
            return Ok(number);
        }
    }
    Err(Broken::Protobuf)
}

#[inline]
pub(crate) fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

pub(super) fn put_bytes(to: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(to, u64::from(number) << 3 | 2);
    put_varint(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

pub(super) fn put(to: &mut Vec<u8>, number: u32, wire: Datum<'_>) {
    match wire {
        Datum::Bytes(bytes) => put_bytes(to, number, bytes),
        Datum::Number(value) => {
            put_varint(to, u64::from(number) << 3);
            put_varint(to, value);
        }
        Datum::Fixed(value) => {
            put_varint(to, u64::from(number) << 3 | 1);
            to.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            bytes.push(7);
            let mut rest = &bytes[..];
            assert_eq!(varint(&mut rest), Ok(number));
            assert_eq!(rest, [7]);
        }
        assert_eq!(varint(&mut &[0xff; 20][..]), Err(Broken::Protobuf));
        assert_eq!(varint(&mut &[0x80][..]), Err(Broken::Protobuf));
    }
}
