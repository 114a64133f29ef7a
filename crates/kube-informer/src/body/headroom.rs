//! Grows the heap of glibc in steps of 120 KB, to save system calls.

use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    /// Estimate of the bytes left of the last step on this thread. An error costs only a step too
    /// many or too few.
    static REMAINING: Cell<usize> = const { Cell::new(0) };
}

/// Below 128 KB, from where on glibc uses `mmap` instead of its arena.
const STEP: usize = 120 << 10;

/// Approximate size of an object without its body.
const OVERHEAD: usize = 400;

/// Grows the arena of this thread ahead of the allocation of an object with a body of `bytes`.
///
/// glibc grows an arena by just the pages requested, with one system call each: one for each object
/// of a list (an eighth of its CPU time), and one for every two updates after it until enough
/// memory has been freed. Allocating a larger block and freeing it leaves the pages in the arena.
/// For allocators that grow in larger steps this is only one allocation and one free.
pub(super) fn grow_arena(bytes: usize) {
    let bytes = bytes + OVERHEAD;
    let mut remaining = REMAINING.get();
    if bytes > remaining {
        drop(black_box(Vec::<u8>::with_capacity(STEP)));
        remaining = STEP;
    }
    REMAINING.set(remaining.saturating_sub(bytes));
}
