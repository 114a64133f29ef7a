//! A `Status` in protobuf: some server or proxy may answer in it whatever was asked for.

use crate::codec::ServerStatus;

const MAGIC: &[u8] = b"k8s\0";

/// Reads message, reason and code out of a protobuf answer, if it is a status.
pub(super) fn status(body: &[u8]) -> Option<ServerStatus> {
    let unknown = body.strip_prefix(MAGIC)?;
    let raw = fields(unknown).find_map(|(number, value)| match (number, value) {
        (2, Value::Bytes(raw)) => Some(raw),
        _ => None,
    })?;
    let mut status = ServerStatus::default();
    for (number, value) in fields(raw) {
        match (number, value) {
            (3, Value::Bytes(text)) => status.message = String::from_utf8_lossy(text).into_owned(),
            (4, Value::Bytes(text)) => status.reason = String::from_utf8_lossy(text).into_owned(),
            (6, Value::Number(code)) => status.code = u16::try_from(code).ok()?,
            _ => {}
        }
    }
    Some(status)
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Skipped,
}

/// The fields of a message, as far as they can be read.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || {
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut rest)?),
            1 => take(&mut rest, 8).map(|_| Value::Skipped)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(take(&mut rest, length)?)
            }
            5 => take(&mut rest, 4).map(|_| Value::Skipped)?,
            _ => return None,
        };
        Some((tag >> 3, value))
    })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, further) = rest.split_first()?;
        *rest = further;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, further) = rest.split_at_checked(length)?;
    *rest = further;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    #[test]
    fn a_protobuf_status_is_read() {
        let raw = [field(2, b"Failure"), field(3, b"no"), field(4, b"Forbidden"), vec![6 << 3, 0x93, 0x03]].concat();
        let body = [MAGIC.to_vec(), field(1, b"\x0a\x02v1"), field(2, &raw)].concat();
        let status = status(&body).unwrap();
        assert_eq!((status.code, &*status.reason, &*status.message), (403, "Forbidden", "no"));
    }

    #[test]
    fn broken_protobuf_is_no_status_and_no_panic() {
        for body in [&b"k8s\0"[..], b"k8s\0\x12\xff", b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"x"] {
            assert_eq!(status(body), None);
        }
    }
}
