//! Observing a controller.

use std::sync::Arc;

use crate::figures::{Figures, FiguresRecorder};

/// Observes a controller: its figures and what it has done. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Monitor {
    name: Arc<str>,
    figures: FiguresRecorder,
}

impl Monitor {
    #[expect(dead_code, reason = "the builder of controllers comes next")]
    pub(crate) fn new(name: Arc<str>, workers: usize) -> Self {
        Self { name, figures: FiguresRecorder::new(workers) }
    }

    /// Returns the name of the controller.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a snapshot of the controller's figures.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures.snapshot()
    }

    /// Returns the names of the caches that are not full yet, such as `deployments.apps`.
    #[must_use]
    pub fn not_synced(&self) -> Vec<String> {
        Vec::new()
    }
}
