//! The bytes that a parser has received and not yet read.

use bytes::Bytes;

/// Appends a chunk to the rest of the previous one; copies only if the caller left a rest.
pub(super) fn append(rest: &mut Bytes, chunk: Bytes) {
    if rest.is_empty() {
        *rest = chunk;
    } else {
        *rest = [&rest[..], &chunk[..]].concat().into();
    }
}
