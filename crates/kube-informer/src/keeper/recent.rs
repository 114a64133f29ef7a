//! Which objects hold on to what was decoded of them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::object::{Decoded, Raw};

/// Bounds what recently read objects keep decoded.
///
/// The bodies hang on the objects themselves, so that finding one takes no lock but the object's own. Here is only the order in
/// which they go when there are too many: first in, first out, but one that has been read again since gets another round.
#[derive(Debug)]
pub(crate) struct Recent {
    limit: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    raw: Weak<Raw>,
    bytes: usize,
}

impl Recent {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ring: Mutex::default() }
    }

    /// Whether a body of this size is kept at all.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes <= self.limit
    }

    /// Counts in a body that now hangs on its object, and lets others go to make room.
    pub(crate) fn admit(&self, raw: &Arc<Raw>, bytes: usize) {
        // Objects looked at are held until the lock is given back: ours may be the last handle of one.
        let mut gone: Vec<(Arc<Raw>, Option<Arc<Decoded>>)> = Vec::new();
        {
            let mut ring = self.ring.lock();
            ring.entries.push_back(Entry { raw: Arc::downgrade(raw), bytes });
            ring.bytes += bytes;
            // Each entry gets at most one more round in one go.
            let mut rounds = 2 * ring.entries.len();
            while ring.bytes > self.limit && rounds > 0 {
                rounds -= 1;
                let Some(entry) = ring.entries.pop_front() else { break };
                if let Some(raw) = entry.raw.upgrade() {
                    match raw.forget_decoded() {
                        Forgotten::Kept => {
                            gone.push((raw, None));
                            ring.entries.push_back(entry);
                            continue;
                        }
                        Forgotten::Gone(decoded) => gone.push((raw, decoded)),
                    }
                }
                ring.bytes -= entry.bytes;
            }
        }
        // Freed here, where nobody waits for it.
        drop(gone);
    }
}

/// What became of a decoded body that was to go.
#[derive(Debug)]
pub(crate) enum Forgotten {
    /// It has been read since the last time: another round.
    Kept,
    /// The object no longer holds it.
    Gone(Option<Arc<Decoded>>),
}
