//! Which objects hold on to what was decoded of them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Decoded, Raw};

/// Bounds what recently read objects keep decoded.
///
/// The bodies hang on the objects themselves, so that finding one takes no lock but the object's own. Here is only the order in
/// which they go when there are too many. Most bodies are read once and never again: those pass through a small ring, so that
/// their memory is used again while it is still in the processor's caches. A body that is found again, or decoded again, goes to
/// the large one, where it stays as long as it is found now and then.
#[derive(Debug)]
pub(crate) struct DecodedCache {
    limit: usize,
    queues: Mutex<Queues>,
}

#[derive(Debug)]
struct Queues {
    probation: FifoQueue,
    main: FifoQueue,
}

/// First in, first out.
#[derive(Debug)]
struct FifoQueue {
    limit: usize,
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    raw: Weak<Raw>,
    bytes: usize,
}

/// How often an object was decoded before, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decodings {
    /// It may never be read again.
    First,
    /// It was decoded before, and would better have been kept then.
    Further,
}

/// What is read once may take so many bytes: about what a core's own cache holds.
const PROBATION_BYTES: usize = 2 << 20;

impl DecodedCache {
    pub(crate) fn new(limit: usize) -> Self {
        let probation = limit.min(PROBATION_BYTES);
        Self {
            limit,
            queues: Mutex::new(Queues {
                probation: FifoQueue::new(probation),
                main: FifoQueue::new(limit - probation),
            }),
        }
    }

    /// Whether a body of this size is kept at all.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    /// Counts in a body that now hangs on its object, and lets others go to make room.
    pub(crate) fn admit(&self, raw: &Arc<Raw>, bytes: usize, decodings: Decodings) {
        // Objects looked at are held until the lock is given back: ours may be the last handle of one.
        let mut evicted = Vec::new();
        {
            let Queues { probation, main } = &mut *self.queues.lock();
            let entry = Entry { raw: Arc::downgrade(raw), bytes };
            match decodings {
                Decodings::Further if main.fits(bytes) => main.push(entry),
                _ if probation.fits(bytes) => probation.push(entry),
                _ => main.push(entry),
            }
            probation.evict(&mut evicted, Some(main));
            main.evict(&mut evicted, None);
        }
        // Freed here, where nobody waits for it.
        drop(evicted);
    }
}

impl FifoQueue {
    fn new(limit: usize) -> Self {
        Self { limit, entries: VecDeque::new(), bytes: 0 }
    }

    fn fits(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    fn push(&mut self, entry: Entry) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    /// Lets the oldest go. Those that were found meanwhile move on, or get another round where there is nothing to move on to.
    fn evict(&mut self, evicted: &mut Vec<(Arc<Raw>, Option<Arc<Decoded>>)>, mut next: Option<&mut Self>) {
        // Each entry gets at most one more round in one go.
        let mut attempts = 2 * self.entries.len();
        while self.bytes > self.limit && attempts > 0 {
            attempts -= 1;
            let Some(entry) = self.entries.pop_front() else { break };
            self.bytes -= entry.bytes;
            let Some(raw) = entry.raw.upgrade() else { continue };
            match raw.evict_decoded() {
                Eviction::Kept => {
                    evicted.push((raw, None));
                    match &mut next {
                        Some(next) if next.fits(entry.bytes) => next.push(entry),
                        _ => self.push(entry),
                    }
                }
                Eviction::Evicted(decoded) => evicted.push((raw, decoded)),
            }
        }
    }
}

/// What became of a decoded body that was to go.
#[derive(Debug)]
pub(crate) enum Eviction {
    /// It has been found since the last time.
    Kept,
    /// The object no longer holds it.
    Evicted(Option<Arc<Decoded>>),
}
