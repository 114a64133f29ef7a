//! Lets a key run only once the caches have what it wrote.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube_informer::workqueue::Priority;
use kube_informer::{ObjectKey, WorkQueue};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::Instrument;

use super::caches::latest_version;
use super::{Caches, Tracker};
use crate::figures::FiguresRecorder;

/// Holds back the keys whose writes the caches do not have yet, without occupying a worker.
pub(crate) struct Gate {
    parts: Arc<GateParts>,
    /// One task for each key that waits.
    waiting: Mutex<JoinSet<()>>,
}

struct GateParts {
    controller: Arc<str>,
    client: Client,
    caches: Arc<Caches>,
    queue: WorkQueue<ObjectKey>,
    figures: FiguresRecorder,
    /// How long a key waits before it is requeued with backoff.
    bound: Duration,
    keys: Mutex<HeldKeys>,
}

/// The keys whose writes the caches may not have yet.
#[derive(Default)]
struct HeldKeys {
    keys: HashMap<ObjectKey, HeldKey>,
    /// How many there may be before those are dropped whose writes the caches have: a key that is
    /// never taken again would stay.
    sweep_at: usize,
}

/// A key whose writes the caches may not have yet.
struct HeldKey {
    tracker: Tracker,
    is_waiting: bool,
}

/// Held keys that are not worth a search for those that need not be held.
const MIN_SWEEP: usize = 256;

/// Whether a key may run.
pub(crate) enum Passage {
    /// It may: the caches have everything that it wrote.
    Open,
    /// It may not; it is added to the queue again when it may.
    Closed,
}

impl Gate {
    pub(crate) fn new(
        controller: Arc<str>,
        client: Client,
        caches: Arc<Caches>,
        queue: WorkQueue<ObjectKey>,
        figures: FiguresRecorder,
        bound: Duration,
    ) -> Self {
        let keys = Mutex::default();
        let parts = Arc::new(GateParts { controller, client, caches, queue, figures, bound, keys });
        Self { parts, waiting: Mutex::default() }
    }

    /// A worker has taken a key: it may run, or it waits.
    pub(crate) fn enter(&self, key: &ObjectKey, priority: Priority) -> Passage {
        let Some(tracker) = self.parts.keys.lock().keys.get(key).map(|held| held.tracker.clone()) else {
            return Passage::Open;
        };
        if self.parts.caches.have_all(&tracker) {
            self.parts.keys.lock().keys.remove(key);
            return Passage::Open;
        }
        let was_waiting = match self.parts.keys.lock().keys.get_mut(key) {
            Some(held) => std::mem::replace(&mut held.is_waiting, true),
            None => return Passage::Open,
        };
        if !was_waiting {
            self.parts.figures.record(|figures| {
                figures.consistency.waiting += 1;
                figures.consistency.waits += 1;
            });
            let wait = Arc::clone(&self.parts).wait(key.clone(), tracker, priority).in_current_span();
            let mut waiting = self.waiting.lock();
            while waiting.try_join_next().is_some() {}
            waiting.spawn(wait);
        }
        Passage::Closed
    }

    /// Completes when the caches have what all keys wrote; never if they cannot.
    pub(crate) async fn all_visible(&self) {
        loop {
            let trackers: Vec<Tracker> =
                self.parts.keys.lock().keys.values().map(|held| held.tracker.clone()).collect();
            let Some(behind) = trackers.into_iter().find(|tracker| !self.parts.caches.have_all(tracker)) else {
                return;
            };
            if self.parts.caches.visible(&self.parts.client, &behind).await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// An attempt has ended; its key may have to wait for what it wrote.
    pub(crate) fn leave(&self, key: &ObjectKey, tracker: Tracker) {
        if tracker.with(|unseen| unseen.is_empty()) {
            return;
        }
        let HeldKeys { keys, sweep_at } = &mut *self.parts.keys.lock();
        keys.insert(key.clone(), HeldKey { tracker, is_waiting: false });
        if keys.len() > *sweep_at {
            keys.retain(|_, held| held.is_waiting || !self.parts.caches.have_all(&held.tracker));
            *sweep_at = MIN_SWEEP.max(2 * keys.len());
        }
    }
}

impl GateParts {
    /// Adds a key to the queue again once the caches have what it wrote.
    async fn wait(self: Arc<Self>, key: ObjectKey, tracker: Tracker, priority: Priority) {
        let waited = timeout(self.bound, self.caches.visible(&self.client, &tracker)).await;
        let given_up = match waited {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("the caches are behind for more than {:?}", self.bound)),
        };
        if given_up.is_some() {
            self.follow_rollback(&tracker).await;
        }
        if let Some(held) = self.keys.lock().keys.get_mut(&key) {
            held.is_waiting = false;
        }
        self.figures.record(|figures| {
            figures.consistency.waiting = figures.consistency.waiting.saturating_sub(1);
            figures.consistency.given_up += u64::from(given_up.is_some());
        });
        match given_up {
            None => self.queue.add_with(key, priority),
            Some(cause) => {
                tracing::warn!(
                    controller = &*self.controller,
                    object = %key,
                    cause,
                    "an object is not reconciled, because the caches do not have its last writes yet; it is tried again"
                );
                self.queue.retry(key);
            }
        }
    }

    /// A server that was restored from a backup never reaches the versions from before soon.
    async fn follow_rollback(&self, tracker: &Tracker) {
        let awaited: Vec<_> = tracker.with(|unseen| unseen.caches().collect());
        for (id, awaited) in awaited {
            let (Some(expected), Some(informer)) = (awaited.version, self.caches.iter().nth(id)) else { continue };
            let namespace = awaited.object.as_ref().and_then(|(key, _)| key.namespace());
            let latest = timeout(self.bound, latest_version(&self.client, informer.resource(), namespace)).await;
            if let Ok(Ok(latest)) = latest
                && latest < expected
            {
                tracker.with(|unseen| unseen.went_back(id, latest));
            }
        }
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("held", &self.parts.keys.lock().keys.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use http::{Request, Response};
    use kube::client::Body;
    use kube_informer::Version;
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn keys_that_are_never_taken_again_are_not_kept() {
        let service = service_fn(async |_: Request<Body>| Ok::<_, std::io::Error>(Response::new(Body::empty())));
        let (queue, caches) = (WorkQueue::builder().build(), Arc::<Caches>::default());
        let client = Client::new(service, "default");
        let gate = Gate::new("test".into(), client, caches, queue, FiguresRecorder::new(1), Duration::from_secs(30));
        for nth in 0..10_000 {
            let (key, tracker) = (ObjectKey::cluster(nth.to_string()), Tracker::default());
            // There is no such cache, which counts as one that has everything.
            tracker.with(|unseen| unseen.wrote(0, key.clone(), Version::new("7")));
            gate.leave(&key, tracker);
        }
        let held = gate.parts.keys.lock().keys.len();
        assert!(held <= 2 * MIN_SWEEP, "{held}");
    }
}
