//! The cache of decoded bodies (2Q): decides which objects keep theirs.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Decoded, Raw};

/// Bounds the memory of decoded bodies, as a 2Q cache with a reference bit.
///
/// The bodies are stored in the objects themselves, so a lookup takes only the lock of the object;
/// this cache holds only the eviction order. Most bodies are read once: first reads go through a
/// small probation queue, so that their memory is reused while it is still in the CPU caches. A
/// body that is read or decoded again enters the main queue, where it stays as long as it is read
/// between two eviction attempts.
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

/// FIFO queue with a size limit in bytes.
#[derive(Debug)]
struct FifoQueue {
    limit: usize,
    entries: VecDeque<CacheEntry>,
    bytes: usize,
}

#[derive(Debug)]
struct CacheEntry {
    raw: Weak<Raw>,
    bytes: usize,
}

/// Whether an object was decoded before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decodings {
    /// Decoded for the first time: it may never be read again.
    First,
    /// Decoded before and evicted since: goes straight to the main queue.
    Further,
}

/// Size limit of the probation queue: about the size of the private cache of a CPU core.
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

    /// Whether a body of this size is cached at all.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    /// Records a body that is now stored in its object, and evicts others if the limit is exceeded.
    pub(crate) fn admit(&self, raw: &Arc<Raw>, bytes: usize, decodings: Decodings) {
        // Keeps the visited objects alive until the lock is released: these may be their last
        // handles.
        let mut evicted = Vec::new();
        {
            let Queues { probation, main } = &mut *self.queues.lock();
            let entry = CacheEntry { raw: Arc::downgrade(raw), bytes };
            match decodings {
                Decodings::Further if main.fits(bytes) => main.push(entry),
                _ if probation.fits(bytes) => probation.push(entry),
                _ => main.push(entry),
            }
            probation.evict(&mut evicted, Some(main));
            main.evict(&mut evicted, None);
        }
        // Freed after the lock is released.
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

    fn push(&mut self, entry: CacheEntry) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    /// Evicts from the front. Entries with the reference bit set move to the `next` queue, or to
    /// the back of this one.
    fn evict(&mut self, evicted: &mut Vec<(Arc<Raw>, Option<Arc<Decoded>>)>, mut next: Option<&mut Self>) {
        // Visits each entry at most twice per call.
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

/// Result of an eviction attempt.
#[derive(Debug)]
pub(crate) enum Eviction {
    /// It was read since the last attempt.
    Kept,
    /// The object no longer holds the body.
    Evicted(Option<Arc<Decoded>>),
}
