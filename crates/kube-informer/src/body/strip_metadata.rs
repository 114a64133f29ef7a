//! Removes from a body what its metadata holds anyway, and restores it.

use super::varint::{take_number, write_number};
use crate::codec::{ScannedObject, Wire, protobuf};
use crate::object::Meta;

/// Flag in the first byte of a packed body. Never set in the first byte of a plain one: a brace or
/// a letter.
pub(crate) const PACKED: u8 = 0x80;

/// The removable parts, in the order servers write them; each is a bit of the first byte.
#[derive(Debug, Clone, Copy)]
enum Part {
    Name,
    Namespace,
    Uid,
    Version,
    Labels,
    OwnerName,
    OwnerUid,
}

const PARTS: [Part; 7] =
    [Part::Name, Part::Namespace, Part::Uid, Part::Version, Part::Labels, Part::OwnerName, Part::OwnerUid];

impl Part {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Its bytes within the object.
    fn bytes_in<'a>(self, found: &ScannedObject<'a>, owner: (Option<&'a [u8]>, Option<&'a [u8]>)) -> Option<&'a [u8]> {
        match self {
            Self::Name => found.name.map(|text| text.raw()),
            Self::Namespace => found.namespace.map(|text| text.raw()),
            Self::Uid => found.uid.map(|text| text.raw()),
            Self::Version => found.version.map(|text| text.raw()),
            Self::Labels => found.labels,
            Self::OwnerName => owner.0,
            Self::OwnerUid => owner.1,
        }
    }

    /// Writes it in the encoding of the server.
    fn write(self, meta: &Meta, wire: Wire, to: &mut Vec<u8>) {
        match self {
            Self::Name => to.extend_from_slice(meta.key.name().as_bytes()),
            Self::Namespace => to.extend_from_slice(meta.key.namespace().unwrap_or_default().as_bytes()),
            Self::Uid => meta.uid.iter().for_each(|uid| uid.write(to)),
            Self::Version => meta.version.write(to),
            Self::Labels if wire == Wire::Protobuf => protobuf::put_labels(meta.labels().iter(), to),
            Self::Labels => {
                to.push(b'{');
                for (at, (key, value)) in meta.labels().iter().enumerate() {
                    let begin: &[u8] = if at == 0 { b"\"" } else { b",\"" };
                    for text in [begin, key.as_bytes(), b"\":\"", value.as_bytes(), b"\""] {
                        to.extend_from_slice(text);
                    }
                }
                to.push(b'}');
            }
            Self::OwnerName => to.extend_from_slice(meta.owners().next().map_or("", |owner| owner.name()).as_bytes()),
            Self::OwnerUid => {
                to.extend_from_slice(meta.owners().next().map_or("", |owner| owner.uid_text()).as_bytes());
            }
        }
    }
}

/// A body without the parts that its metadata can restore, and their positions. Buffers are reused
/// between objects.
///
/// Uids, versions and names compress worst, and are already in the metadata: a tenth of a packed
/// pod.
#[derive(Debug, Default)]
pub(crate) struct Stripped {
    /// Bit set of the removed parts, then the distance to each from the previous one.
    pub(crate) head: Vec<u8>,
    /// The remaining bytes.
    pub(crate) rest: Vec<u8>,
    scratch: Vec<u8>,
}

impl Stripped {
    /// Removes all parts that [`restore`] would write byte for byte.
    pub(crate) fn strip(&mut self, json: &[u8], found: &ScannedObject<'_>, meta: &Meta) {
        self.head.clear();
        self.head.push(PACKED);
        self.rest.clear();
        let mut from = 0;
        let owner = first_owner(found);
        for part in PARTS {
            let located = part.bytes_in(found, owner).and_then(|bytes| Some((offset(json, bytes)?, bytes)));
            let Some((at, bytes)) = located.filter(|(at, _)| *at >= from) else { continue };
            self.scratch.clear();
            part.write(meta, found.wire, &mut self.scratch);
            if self.scratch != bytes {
                continue;
            }
            self.head[0] |= part.bit();
            write_number(at - from, &mut self.head);
            self.rest.extend_from_slice(&json[from..at]);
            from = at + bytes.len();
        }
        self.rest.extend_from_slice(&json[from..]);
    }
}

/// Splits a packed body into the head for [`restore`] and the compressed rest.
pub(crate) fn split_head(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = packed.get(1..)?;
    for _ in 0..(packed[0] & !PACKED).count_ones() {
        take_number(&mut rest)?;
    }
    Some(packed.split_at(packed.len() - rest.len()))
}

/// Inserts the removed parts.
pub(crate) fn restore(head: &[u8], mut rest: &[u8], meta: &Meta, to: &mut Vec<u8>) -> Option<()> {
    let (mask, mut gaps) = head.split_first()?;
    // The start of a body is never removed.
    let wire = Wire::of(rest);
    to.clear();
    for part in PARTS.into_iter().filter(|part| mask & part.bit() != 0) {
        let gap = take_number(&mut gaps)?;
        let (before, behind) = rest.split_at_checked(gap)?;
        to.extend_from_slice(before);
        part.write(meta, wire, to);
        rest = behind;
    }
    to.extend_from_slice(rest);
    Some(())
}

fn first_owner<'a>(found: &ScannedObject<'a>) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
    let mut first = None;
    // An unreadable list has no owner to remove.
    let read = found.each_owner(|owner| {
        first.get_or_insert((owner.name.map(|text| text.raw()), owner.uid.map(|text| text.raw())));
        Ok(())
    });
    first.filter(|_| read == Ok(())).unwrap_or_default()
}

/// Offset of `part`, a slice of `whole`.
fn offset(whole: &[u8], part: &[u8]) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (at + part.len() <= whole.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Extent, scan};

    #[test]
    fn what_can_be_written_back_is_taken_out() {
        let json = br#"{"metadata":{"name":"n","namespace":"s","uid":"0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f809","resourceVersion":"5","labels":{"a":"b","c":"d"},"ownerReferences":[{"name":"o","uid":"u"}]}}"#;
        let found = scan(json, Extent::Metadata).unwrap();
        let meta = Meta::of(&found, None).unwrap();
        let mut stripped = Stripped::default();
        stripped.strip(json, &found, &meta);
        assert_eq!(
            std::str::from_utf8(&stripped.rest).unwrap(),
            r#"{"metadata":{"name":"","namespace":"","uid":"","resourceVersion":"","labels":,"ownerReferences":[{"name":"","uid":""}]}}"#
        );
        let mut restored = Vec::new();
        restore(&stripped.head, &stripped.rest, &meta, &mut restored).unwrap();
        assert_eq!(restored, json);
    }

    #[test]
    fn what_is_written_differently_stays() {
        let json = br#"{"metadata":{"uid":"U","name":"\u006e","resourceVersion":"5","labels": {"a" :"b"}}}"#;
        let found = scan(json, Extent::Metadata).unwrap();
        let meta = Meta::of(&found, None).unwrap();
        let mut stripped = Stripped::default();
        stripped.strip(json, &found, &meta);
        let mut restored = Vec::new();
        restore(&stripped.head, &stripped.rest, &meta, &mut restored).unwrap();
        assert_eq!(restored, json);
        assert!(stripped.rest.windows(5).any(|bytes| bytes == br#"\u006"#));
    }
}
