//! The cache of decoded bodies (2Q): decides which objects keep theirs.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::{Decoded, Raw};

/// Bounds the memory of decoded bodies, as a 2Q cache with a reference bit.
///
/// The bodies are stored in the objects themselves, so a lookup takes only the lock of the object;
/// this cache holds only the eviction order. Most bodies are read once: first reads go through a
/// small probation queue, so that their memory is reused while it is still in the CPU caches. A
/// body that is read again enters the main queue, where it stays as long as it is read between two
/// eviction attempts. So does one that is decoded again soon: before the decoding of as much as the
/// main queue holds. A sweep over more than fits never does that, and so it evicts nothing that is
/// in use, and frees no memory that has left the CPU caches, however often it is repeated.
///
/// 2Q keeps a queue of evicted keys for that; here each object holds the time of its admission.
#[derive(Debug)]
pub(crate) struct DecodedCache {
    limit: usize,
    /// Bytes admitted so far: the clock of the cache.
    admitted: AtomicU64,
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

/// When a body was admitted, as the kilobytes admitted before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionTime(NonZeroU32);

impl AdmissionTime {
    fn of(bytes: u64) -> Self {
        // Wraps after four terabytes: then a decoding may be taken for a recent one.
        Self(NonZeroU32::MIN.saturating_add((bytes >> 10) as u32))
    }

    fn kilobytes_since(self, earlier: Self) -> usize {
        self.0.get().wrapping_sub(earlier.0.get()) as usize
    }
}

/// Size limit of the probation queue: about the size of the private cache of a CPU core.
const PROBATION_BYTES: usize = 2 << 20;

impl DecodedCache {
    pub(crate) fn new(limit: usize) -> Self {
        let probation = limit.min(PROBATION_BYTES);
        Self {
            limit,
            admitted: AtomicU64::new(0),
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

    /// The time at which a body of this size is admitted.
    pub(crate) fn advance(&self, bytes: usize) -> AdmissionTime {
        AdmissionTime::of(self.admitted.fetch_add(bytes as u64, Ordering::Relaxed))
    }

    /// Records a body that is now stored in its object, and evicts others if the limit is exceeded.
    /// `before`: when the same object was admitted last.
    pub(crate) fn admit(&self, raw: &Arc<Raw>, bytes: usize, before: Option<AdmissionTime>, now: AdmissionTime) {
        // Keeps the visited objects alive until the lock is released: these may be their last
        // handles.
        let mut evicted = Vec::new();
        {
            let Queues { probation, main } = &mut *self.queues.lock();
            let is_again = before.is_some_and(|before| now.kilobytes_since(before) <= main.limit >> 10);
            let entry = CacheEntry { raw: Arc::downgrade(raw), bytes };
            match is_again {
                true if main.fits(bytes) => main.push(entry),
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
