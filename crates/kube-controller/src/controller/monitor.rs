//! Observing a controller.

use std::fmt;
use std::sync::{Arc, Weak};

use kube_informer::{ObjectKey, WorkQueue};
use parking_lot::Mutex;

use super::builder::Settings;
use super::plural_name;
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
