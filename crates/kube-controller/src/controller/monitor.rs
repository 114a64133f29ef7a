//! Observing a controller.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use kube_informer::{Informer, Object, ObjectKey, WorkQueue};
use parking_lot::Mutex;

use super::builder::Settings;
use super::plural_name;
use super::ranges::OpenRanges;
use crate::consistency::Caches;
use crate::figures::{Figures, FiguresRecorder};
use crate::reconcile::{Attempt, History};

/// Observes a controller: its figures, and what it has done. Cheap to clone.
///
/// A monitor does not keep caches alive.
#[derive(Clone)]
pub struct Monitor {
    parts: Arc<MonitorParts>,
}

struct MonitorParts {
    name: Arc<str>,
    figures: FiguresRecorder,
    queue: WorkQueue<ObjectKey>,
    caches: Weak<Caches>,
    history: Mutex<History>,
    /// Counts the objects in the ranges that are held, for a member of a group.
    objects: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
}

impl Monitor {
    pub(super) fn new(settings: &Settings, caches: &Arc<Caches>) -> (Self, WorkQueue<ObjectKey>) {
        let figures = FiguresRecorder::new(settings.workers);
        let queue = WorkQueue::builder().name(&*settings.name).rate_limit(settings.rate_limit.clone());
        let queue = queue.metrics(figures.clone()).build();
        let parts = MonitorParts {
            name: Arc::clone(&settings.name),
            figures,
            queue: queue.clone(),
            caches: Arc::downgrade(caches),
            history: Mutex::default(),
            objects: OnceLock::new(),
        };
        (Self { parts: Arc::new(parts) }, queue)
    }

    /// Returns the name of the controller.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Returns a snapshot of the controller's figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let mut figures = self.parts.figures.snapshot();
        (figures.queue.depth, figures.queue.delayed) = (self.parts.queue.len(), self.parts.queue.delayed());
        figures
    }

    /// Returns the last attempts to reconcile an object, oldest first.
    ///
    /// Up to eight attempts of each of the 1,024 objects that were reconciled last are kept.
    #[must_use]
    pub fn history(&self, key: &ObjectKey) -> Vec<Attempt> {
        self.parts.history.lock().of(key)
    }

    /// Returns the names of the caches that are not full yet, such as `deployments.apps`.
    #[must_use]
    pub fn not_synced(&self) -> Vec<String> {
        let Some(caches) = self.parts.caches.upgrade() else { return Vec::new() };
        let missing = caches.iter().filter(|informer| !informer.is_synced());
        missing.map(|informer| plural_name(informer.resource())).collect()
    }

    /// Returns the number of cached objects in the ranges that are held, for a
    /// [sharded](super::Controller::sharded) controller that runs.
    #[must_use]
    pub fn objects_held(&self) -> Option<usize> {
        self.parts.objects.get().map(|count| count())
    }

    pub(super) fn holds<K: Object>(&self, ranges: &Arc<OpenRanges>, informer: &Informer<K>) {
        let (ranges, lister) = (Arc::clone(ranges), informer.lister().downgrade());
        let count = move || {
            let Some(lister) = lister.upgrade() else { return 0 };
            lister.snapshot().iter().filter(|object| ranges.contain(object)).count()
        };
        // A controller runs once.
        self.parts.objects.set(Box::new(count)).ok();
    }

    pub(super) fn recorder(&self) -> &FiguresRecorder {
        &self.parts.figures
    }

    pub(super) fn record(&self, key: &ObjectKey, attempt: Attempt) {
        self.parts.history.lock().record(key, attempt);
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("name", &self.name()).field("queue", &self.parts.queue).finish_non_exhaustive()
    }
}
