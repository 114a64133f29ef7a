//! Slot numbers.

/// Allocates small integers, each for one key as long as the key is in the store.
#[derive(Debug, Default)]
pub(super) struct Slots {
    next: u32,
    free: Vec<u32>,
    /// Not reused before [`release`](Self::release).
    deferred: Vec<u32>,
}

impl Slots {
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub(super) fn put_back(&mut self, slot: u32, deferred: bool) {
        if deferred { &mut self.deferred } else { &mut self.free }.push(slot);
    }

    pub(super) fn release(&mut self) {
        self.free.append(&mut self.deferred);
    }
}
