//! Lengths and places among packed bytes, written as protobuf writes numbers.

use crate::codec::protobuf::{put_varint, varint};

#[inline]
pub(super) fn write_number(number: usize, to: &mut Vec<u8>) {
    put_varint(to, number as u64);
}

/// Takes a number from the beginning of `bytes`.
#[inline]
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<usize> {
    varint(bytes).ok()?.try_into().ok()
}
