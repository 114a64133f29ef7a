//! Events of many objects at once.

use std::sync::Arc;

use super::{Event, Origin};
use crate::body::{Obj, Raw};
use crate::object::ObjectKey;

/// Objects that are delivered together: the end of a list, a resync, the present state.
///
/// All handlers share one list of objects; each has its own position in it. Events are created
/// lazily.
#[derive(Debug, Clone)]
pub(crate) struct EventBatch {
    objects: Arc<[Arc<Raw>]>,
    next: usize,
    kind: BatchKind,
}

/// What the events of a batch report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// The objects are new.
    Added(Origin),
    /// The objects are unchanged and delivered again.
    Resync,
}

impl EventBatch {
    pub(crate) fn new(objects: Arc<[Arc<Raw>]>, kind: BatchKind) -> Self {
        Self { objects, next: 0, kind }
    }

    pub(crate) fn kind(&self) -> BatchKind {
        self.kind
    }

    pub(crate) fn is_resync(&self) -> bool {
        self.kind == BatchKind::Resync
    }

    /// The remaining events, without those of the objects that the caller leaves out.
    pub(crate) fn without(self, leaves_out: impl Fn(&ObjectKey) -> bool) -> Self {
        let left = self.objects.iter().skip(self.next);
        let objects = left.filter(|raw| !leaves_out(&raw.meta().key)).cloned().collect();
        Self { objects, next: 0, kind: self.kind }
    }

    /// How many events remain.
    pub(crate) fn len(&self) -> usize {
        self.objects.len() - self.next
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Iterator for EventBatch {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let object = Obj::new(Arc::clone(self.objects.get(self.next)?));
        self.next += 1;
        Some(match self.kind {
            BatchKind::Added(origin) => Event::Added { object, origin },
            BatchKind::Resync => Event::Updated { old: object.clone(), new: object, origin: Origin::Resync },
        })
    }
}
