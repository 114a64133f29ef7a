//! Lengths and offsets in packed bodies, as protobuf varints.

use crate::codec::protobuf::{put_varint, varint};

#[inline]
pub(super) fn write_number(number: usize, to: &mut Vec<u8>) {
    put_varint(to, number as u64);
}

/// Reads a varint from the start of `bytes` and advances past it.
#[inline]
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    varint(bytes).ok()?.try_into().ok()
}
