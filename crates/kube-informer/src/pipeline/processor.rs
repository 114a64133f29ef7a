//! Delivery of events to handlers: one bounded queue per handler. Nothing upstream waits for a
//! handler.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

pub use self::backlog::{Backlog, Overflow};

pub(crate) use self::event_filter::EventFilter;
pub(crate) use self::mailbox::{Mailbox, MailboxStats, Progress, Settle, Stage};
pub(crate) use self::resync::{CheckPeriod, ResyncChoice};

use self::backlog::Queue;
use self::resync::ResyncTimer;
use crate::store::{EventBatch, Notification};

mod backlog;
mod coalesce;
mod event_filter;
mod mailbox;
#[cfg(test)]
mod model;
mod resync;

/// The handlers of an informer, as the controller sees them: mailboxes to fill.
#[derive(Debug)]
#[doc(alias = "sharedProcessor")]
pub(crate) struct Processor {
    handlers: Vec<Handler>,
    /// How many handlers have ever been admitted.
    admitted: usize,
    check: CheckPeriod,
}

#[derive(Debug)]
struct Handler {
    /// How many handlers were admitted before it.
    number: usize,
    mailbox: Arc<Mailbox>,
    due: Option<ResyncTimer>,
    /// It receives the current resync.
    resyncing: bool,
    /// All initial objects are in its mailbox.
    initial_queued: bool,
}

/// A handler to be admitted by the controller.
#[derive(Debug)]
pub(crate) struct NewHandler {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) resync: ResyncChoice,
}

/// Whether the store holds all objects of all wanted scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// The first list is not complete.
    Listing,
    Complete,
}

impl Processor {
    pub(crate) fn new(check: CheckPeriod) -> Self {
        Self { handlers: Vec::new(), admitted: 0, check }
    }

    pub(crate) fn check(&mut self) -> &mut CheckPeriod {
        &mut self.check
    }

    /// Adds a handler: it receives every event from the next one on. `present` stands for all
    /// earlier events.
    pub(crate) fn admit(&mut self, new_handler: NewHandler, present: EventBatch, store: Completeness, now: Instant) {
        let due = ResyncTimer::new(self.check.admit(new_handler.resync), now);
        let initial_queued = store == Completeness::Complete;
        new_handler.mailbox.fill(now, |mailbox| {
            mailbox.push_batch(present);
            if initial_queued {
                mailbox.push_synced();
            }
        });
        self.handlers.push(Handler {
            number: self.admitted,
            mailbox: new_handler.mailbox,
            due,
            resyncing: false,
            initial_queued,
        });
        self.admitted += 1;
    }

    /// Queues the events for all handlers.
    pub(crate) fn deliver(&mut self, notifications: VecDeque<Notification>, now: Instant) {
        self.handlers.retain(|handler| !handler.mailbox.is_closed());
        let Some((last, others)) = self.handlers.split_last() else { return };
        for handler in others {
            handler.deliver(notifications.iter().cloned(), now);
        }
        last.deliver(notifications.into_iter(), now);
    }

    /// The store is complete: queues the sync marker for handlers that have not received it yet.
    pub(crate) fn complete(&mut self, now: Instant) {
        for handler in self.handlers.iter_mut().filter(|handler| !handler.initial_queued) {
            handler.initial_queued = true;
            handler.mailbox.fill(now, Queue::push_synced);
        }
    }

    /// Whether any handler is due for a resync; those that are will receive it.
    pub(crate) fn mark_due(&mut self, now: Instant) -> bool {
        for handler in &mut self.handlers {
            handler.resyncing = handler.due.as_mut().is_some_and(|due| due.is_due(now));
        }
        self.handlers.iter().any(|handler| handler.resyncing)
    }

    /// The queue statistics of each handler, by its number.
    pub(crate) fn stats(&self, now: Instant) -> impl Iterator<Item = (usize, MailboxStats)> {
        let handlers = self.handlers.iter().filter(|handler| !handler.mailbox.is_closed());
        handlers.map(move |handler| (handler.number, handler.mailbox.stats(now)))
    }

    /// Closes all mailboxes; nothing is delivered any more.
    pub(crate) fn close(&mut self) {
        for handler in self.handlers.drain(..) {
            handler.mailbox.close();
        }
    }
}

impl Handler {
    fn deliver(&self, notifications: impl Iterator<Item = Notification>, now: Instant) {
        self.mailbox.fill(now, |mailbox| {
            for notification in notifications {
                match notification {
                    Notification::One(event) => mailbox.push(event),
                    Notification::Batch(batch) if batch.is_resync() && !self.resyncing => {}
                    Notification::Batch(batch) => mailbox.push_batch(batch),
                }
            }
        });
    }
}
