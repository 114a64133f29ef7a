//! The protobuf wire format: tags, varints and lengths.

use std::borrow::Cow;

use super::Unreadable;

const CUT: Unreadable = Unreadable(Cow::Borrowed("unexpected EOF"));
const OVERFLOW: Unreadable = Unreadable(Cow::Borrowed("proto: integer overflow"));

/// A field value on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wire<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    Double(u64),
    Float,
    /// An unsupported wire type: the start or end of a group, or an undefined type. Its length is
    /// unknown, so decoding stops after it.
    Odd(u8),
}

impl Wire<'_> {
    /// The wire type's number.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Double(_) => 1,
            Self::Bytes(_) => 2,
            Self::Float => 5,
            Self::Odd(number) => number,
        }
    }
}

/// Iterator over the fields of a message.
#[derive(Debug)]
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u32, Wire<'b>), Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'b> Fields<'b> {
    fn field(&mut self) -> Result<(u32, Wire<'b>), Unreadable> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.varint()?),
            1 => Wire::Double(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| CUT)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Float
            }
            other => {
                self.0 = &[];
                Wire::Odd(other.to_le_bytes()[0])
            }
        };
        match u32::try_from(tag >> 3).map_err(|_| OVERFLOW)? {
            0 => Err(Unreadable(format!("proto: illegal tag 0 (wire type {})", tag & 7).into())),
            number => Ok((number, wire)),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Unreadable> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first().ok_or(CUT)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(OVERFLOW)
    }
}

/// Iterator over packed varints.
#[derive(Debug)]
pub(super) struct Varints<'b>(pub(super) &'b [u8]);

impl Iterator for Varints<'_> {
    type Item = Result<u64, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let mut rest = Fields(self.0);
        let number = rest.varint();
        self.0 = if number.is_ok() { rest.0 } else { &[] };
        Some(number)
    }
}

/// Appends a varint.
pub(super) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// The encoded length of a varint.
pub(super) fn varint_length(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a varint field. Negative numbers take ten bytes, as protobuf specifies.
pub(super) fn push_number(out: &mut Vec<u8>, field: u32, number: i64) {
    push_varint(out, u64::from(field) << 3);
    push_varint(out, number.cast_unsigned());
}

/// Appends a double field.
pub(super) fn push_double(out: &mut Vec<u8>, field: u32, number: f64) {
    push_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&number.to_bits().to_le_bytes());
}

/// Appends a string or bytes field.
pub(super) fn push_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    push_length(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends the tag and the length of a length-delimited field.
pub(super) fn push_length(out: &mut Vec<u8>, field: u32, length: usize) {
    push_varint(out, u64::from(field) << 3 | 2);
    push_varint(out, length as u64);
}

/// The encoded size of a length-delimited field whose number is below 16.
pub(super) fn field_length(length: usize) -> usize {
    1 + varint_length(length as u64) + length
}

/// Appends a message field, whose content is written by a closure.
pub(super) fn push_message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    push_varint(out, u64::from(field) << 3 | 2);
    // Reserves one length byte, enough for most messages. Longer messages are shifted to make space
    // for a longer length.
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    let more = varint_length(length as u64) - 1;
    if more > 0 {
        out.extend_from_slice(&[0; 9][..more]);
        out.copy_within(at + 1..at + 1 + length, at + 1 + more);
    }
    let mut rest = length as u64;
    for (place, byte) in out[at..=at + more].iter_mut().enumerate() {
        *byte = rest.to_le_bytes()[0] & 0x7f | if place < more { 0x80 } else { 0 };
        rest >>= 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_any_length_says_how_long_it_is() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let mut out = vec![7];
            push_message(&mut out, 2, |out| out.extend(std::iter::repeat_n(9, length)));
            out.push(8);
            let mut expected = vec![7];
            push_bytes(&mut expected, 2, &vec![9; length]);
            assert_eq!(expected.len(), 1 + field_length(length));
            expected.push(8);
            assert_eq!(out, expected, "{length}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_pushed_is_read(number: i64, double: f64, bytes: Vec<u8>) {
            let mut out = Vec::new();
            push_number(&mut out, 1, number);
            push_double(&mut out, 2, double);
            push_bytes(&mut out, 300, &bytes);
            let read: Vec<_> = Fields(&out).map(Result::unwrap).collect();
            assert!(matches!(read[0], (1, Wire::Number(read)) if read.cast_signed() == number));
            assert!(matches!(read[1], (2, Wire::Double(bits)) if bits == double.to_bits()));
            assert!(matches!(read[2], (300, Wire::Bytes(read)) if read == bytes));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            assert!(Fields(&bytes).count() <= bytes.len());
        }
    }
}
