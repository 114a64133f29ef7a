//! Records the writes of a key.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{CacheId, Unseen};

/// What a key has written, shared by the context of its attempt and the gate. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracker(Arc<Tracked>);

#[derive(Debug, Default)]
struct Tracked {
    unseen: Mutex<Unseen>,
    /// Notified when a request has been answered or given up.
    answered: Notify,
}

impl Tracker {
    /// Calls a function with what the key has written.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Unseen) -> T) -> T {
        f(&mut self.0.unseen.lock())
    }

    /// Completes when no request is in flight.
    pub(crate) async fn all_answered(&self) {
        loop {
            let answered = self.0.answered.notified();
            if !self.with(|unseen| unseen.is_in_flight()) {
                return;
            }
            answered.await;
        }
    }

    /// A write to these caches begins. Its outcome counts as unknown until it is reported, also if
    /// the future that waits for the response is dropped.
    pub(crate) fn begin(&self, caches: &[CacheId], namespace: Option<&str>) -> InFlight {
        self.with(Unseen::began);
        InFlight {
            tracker: self.clone(),
            caches: caches.into(),
            namespace: namespace.map(Box::from),
            is_answered: false,
        }
    }
}

/// A write that was sent and is not answered yet.
#[derive(Debug)]
pub(crate) struct InFlight {
    tracker: Tracker,
    caches: Box<[CacheId]>,
    namespace: Option<Box<str>>,
    is_answered: bool,
}

impl InFlight {
    /// The outcome is known, and is recorded for each cache.
    pub(crate) fn answered(mut self, mut record: impl FnMut(&mut Unseen, CacheId)) {
        self.is_answered = true;
        self.tracker.with(|unseen| self.caches.iter().for_each(|cache| record(unseen, *cache)));
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.tracker.with(|unseen| {
            unseen.ended();
            if !self.is_answered {
                self.caches.iter().for_each(|cache| unseen.lost(*cache, self.namespace.as_deref()));
            }
        });
        self.tracker.0.answered.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_is_dropped_before_its_response_is_lost() {
        let tracker = Tracker::default();
        drop(tracker.begin(&[3], Some("ns")));
        tracker.with(|unseen| assert_eq!(unseen.to_resolve().collect::<Vec<_>>(), [(3, Some("ns"))]));
    }

    #[test]
    fn a_write_that_the_server_refused_leaves_nothing() {
        let tracker = Tracker::default();
        let write = tracker.begin(&[3], None);
        tracker.with(|unseen| assert!(!unseen.is_empty()));
        write.answered(|_, _| ());
        tracker.with(|unseen| assert!(unseen.is_empty()));
    }
}
