//! Object uids.

use std::fmt;
use std::sync::Arc;

/// A uid, stored in sixteen bytes if it is a UUID, as those of every kube-apiserver are.
///
/// ```
/// use kube_informer::{Obj, Uid};
///
/// let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a","uid":"b7a3c5de-0000-4000-8000-0123456789ab"}}"#)?;
/// assert_eq!(object.uid(), Some(&Uid::new("b7a3c5de-0000-4000-8000-0123456789ab")));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Text(Arc<Box<str>>),
}

impl Uid {
    /// Creates a uid from its text.
    #[must_use]
    pub fn new(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        Self(parse(text.as_bytes()).map_or_else(|| Repr::Text(Arc::new(text.into())), Repr::Uuid))
    }

    /// Appends the text as the server wrote it.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        self.for_each_part(|part| to.extend_from_slice(part));
    }

    /// Calls `receive` with the parts of the text as the server wrote it, in order.
    pub(crate) fn for_each_part(&self, mut receive: impl FnMut(&[u8])) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        match &self.0 {
            Repr::Text(text) => receive(text.as_bytes()),
            Repr::Uuid(bytes) => {
                for (i, byte) in bytes.iter().enumerate() {
                    if matches!(i, 4 | 6 | 8 | 10) {
                        receive(b"-");
                    }
                    receive(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
                }
            }
        }
    }
}

/// Accepts only the spelling that [`fmt::Display`] prints, so that printing is exact.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let mut bytes = [0; 16];
    let mut digits = text.iter().enumerate();
    for byte in &mut bytes {
        let (at, mut high) = digits.next()?;
        if matches!(at, 8 | 13 | 18 | 23) {
            if *high != b'-' {
                return None;
            }
            high = digits.next()?.1;
        }
        *byte = (nibble(*high)? << 4) | nibble(*digits.next()?.1)?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        match &self.0 {
            Repr::Uuid(bytes) => parse(other.as_bytes()).as_ref() == Some(bytes),
            Repr::Text(text) => ***text == *other,
        }
    }
}

impl PartialEq<&str> for Uid {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Uuid(bytes) => {
                for (i, byte) in bytes.iter().enumerate() {
                    if matches!(i, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_uid_prints_as_it_came() {
        for text in [
            "",
            "a",
            "0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f809",
            "0B2F3C4D-5E6F-7081-92A3-B4C5D6E7F809",
            "0b2f3c4d5e6f-7081-92a3-b4c5d6e7f809-",
            "0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f80-",
            "äääääääääääääääääääääääääääääääääääääääääääää",
        ] {
            let uid = Uid::new(text);
            assert_eq!(uid.to_string(), text);
            let mut written = Vec::new();
            uid.write(&mut written);
            assert_eq!(written, text.as_bytes());
            assert_eq!(uid, text);
            assert_ne!(uid, "0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f80a");
        }
    }

    #[test]
    fn a_uuid_is_held_in_sixteen_bytes() {
        assert!(matches!(Uid::new("0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f809").0, Repr::Uuid(_)));
        assert_eq!(size_of::<Option<Uid>>(), 24);
    }
}
