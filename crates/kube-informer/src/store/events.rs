//! Events returned by the store.

use std::collections::VecDeque;
use std::sync::Arc;

use super::event_batch::{BatchKind, EventBatch};
use super::{Event, Origin};
use crate::body::{Raw, Untyped};

/// Events for handlers, in order. Readers already see the changes.
///
/// The events of a batch, as at the end of a list, are created lazily.
#[derive(Debug, Default)]
#[must_use = "handlers are notified of changes through these events"]
pub struct Events {
    notifications: VecDeque<Notification>,
    len: usize,
}

/// An item to queue for every handler.
#[derive(Debug, Clone)]
pub(crate) enum Notification {
    One(Event),
    Batch(EventBatch),
}

impl Events {
    pub(super) fn with_room(events: usize) -> Self {
        Self { notifications: VecDeque::with_capacity(events), len: 0 }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.len += 1;
        self.notifications.push_back(Notification::One(event));
    }

    pub(super) fn push_added(&mut self, objects: Arc<[Arc<Raw>]>, origin: Origin) {
        self.push_batch(EventBatch::new(objects, BatchKind::Added(origin)));
    }

    pub(super) fn push_resync(&mut self, objects: Arc<[Arc<Raw>]>) {
        self.push_batch(EventBatch::new(objects, BatchKind::Resync));
    }

    fn push_batch(&mut self, batch: EventBatch) {
        self.len += batch.len();
        self.notifications.push_back(Notification::Batch(batch));
    }

    /// The events for delivery to many handlers, which share the batches.
    pub(crate) fn into_notifications(self) -> VecDeque<Notification> {
        self.notifications
    }
}

impl Iterator for Events {
    type Item = Event<Untyped>;

    fn next(&mut self) -> Option<Event<Untyped>> {
        loop {
            let event = match self.notifications.pop_front()? {
                Notification::One(event) => Some(event),
                Notification::Batch(mut batch) => {
                    let event = batch.next();
                    if !batch.is_empty() {
                        self.notifications.push_front(Notification::Batch(batch));
                    }
                    event
                }
            };
            if event.is_some() {
                self.len -= 1;
                return event;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Events {}
