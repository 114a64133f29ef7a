//! Room at the end of the heap.

use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    /// How much of the last step is left in the heap of this thread. About: nothing is wrong with a step too many or too few.
    static REMAINING: Cell<usize> = const { Cell::new(0) };
}

/// From 128 KB on glibc maps pages apart from its heaps.
const STEP: usize = 120 << 10;

/// What an object takes beside its body, about.
const OVERHEAD: usize = 400;

/// Lets the heap grow in larger steps than objects are long: an object with a body of so many bytes is being allocated.
///
/// glibc enlarges the heap of a thread by as many pages as it is asked for, each time with a call to the kernel: one for each object
/// of a list, an eighth of all its CPU, and one for two of the updates after it, until enough has been freed. Whoever asks for a larger
/// piece and gives it back finds the pages there. Allocators that enlarge their heaps by more than that only hand out a piece and
/// take it back.
pub(super) fn grow_arena(bytes: usize) {
    let bytes = bytes + OVERHEAD;
    let mut remaining = REMAINING.get();
    if bytes > remaining {
        drop(black_box(Vec::<u8>::with_capacity(STEP)));
        remaining = STEP;
    }
    REMAINING.set(remaining.saturating_sub(bytes));
}
