//! Numbers for keys.

/// Small numbers, each for one key as long as that is in the store.
#[derive(Debug, Default)]
pub(super) struct Slots {
    next: u32,
    free: Vec<u32>,
    /// Not to be used again before [`release`](Self::release).
    later: Vec<u32>,
}

impl Slots {
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub(super) fn put_back(&mut self, slot: u32, later: bool) {
        if later { &mut self.later } else { &mut self.free }.push(slot);
    }

    pub(super) fn release(&mut self) {
        self.free.append(&mut self.later);
    }
}
