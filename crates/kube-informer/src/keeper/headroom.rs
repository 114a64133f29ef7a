//! Room at the end of the heap.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lets the heap grow in larger steps than objects are long.
///
/// glibc enlarges the heap of a thread by as many pages as it is asked for, each time with a call to the kernel: one for each object
/// of a list, an eighth of all its CPU, and one for two of the updates after it, until enough has been freed. Whoever asks for a larger
/// piece and gives it back finds the pages there. Allocators that enlarge their heaps by more than that only hand out a piece and
/// take it back.
#[derive(Debug, Default)]
pub(super) struct Headroom {
    /// About: nothing is wrong with a step too many or too few.
    left: AtomicUsize,
}

/// From 128 KB on glibc maps pages apart from its heaps.
const STEP: usize = 120 << 10;

/// What an object takes beside its body, about.
const OVERHEAD: usize = 400;

impl Headroom {
    /// An object with a body of so many bytes is being allocated.
    pub(super) fn take(&self, bytes: usize) {
        let bytes = bytes + OVERHEAD;
        let mut left = self.left.load(Ordering::Relaxed);
        if bytes > left {
            drop(black_box(Vec::<u8>::with_capacity(STEP)));
            left = STEP;
        }
        self.left.store(left.saturating_sub(bytes), Ordering::Relaxed);
    }
}
