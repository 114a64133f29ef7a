//! Telling handlers: one bounded queue for each, and nothing upstream that waits for any of them.

use std::sync::Arc;

use tokio::time::Instant;

pub use self::backlog::{Backlog, Overflow};

pub(crate) use self::backlog::{BatchKind, Run};
pub(crate) use self::event_filter::EventFilter;
pub(crate) use self::mailbox::{Mailbox, MailboxStats, Settle, Stage};
pub(crate) use self::resync::{CheckPeriod, ResyncChoice};

use self::backlog::Queue;
use self::resync::ResyncTimer;
use crate::store::Event;

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
    /// How many there have been.
    admitted: usize,
    check: CheckPeriod,
}

#[derive(Debug)]
struct Handler {
    /// How many came before it.
    nth: usize,
    mailbox: Arc<Mailbox>,
    due: Option<ResyncTimer>,
    /// It hears of the resync under way.
    resyncing: bool,
    /// Everything that was there at the beginning is in its mailbox.
    begun: bool,
}

/// A handler that is to be told from now on.
#[derive(Debug)]
pub(crate) struct NewHandler {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) resync: ResyncChoice,
}

/// Something to tell to every handler.
#[derive(Debug, Clone)]
pub(crate) enum News {
    One(Event),
    Run(Run),
}

/// Whether the store holds everything there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// The first list is not through.
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

    /// From the next event on this handler is told everything. `present` is everything that was told before.
    pub(crate) fn admit(&mut self, new_handler: NewHandler, present: Run, store: Completeness, now: Instant) {
        let due = ResyncTimer::new(self.check.admit(new_handler.resync), now);
        let begun = store == Completeness::Complete;
        new_handler.mailbox.fill(now, |mailbox| {
            mailbox.push_run(present);
            if begun {
                mailbox.push_synced();
            }
        });
        self.handlers.push(Handler { nth: self.admitted, mailbox: new_handler.mailbox, due, resyncing: false, begun });
        self.admitted += 1;
    }

    /// Tells all handlers.
    pub(crate) fn tell(&mut self, news: Vec<News>, now: Instant) {
        self.handlers.retain(|handler| !handler.mailbox.is_closed());
        let Some((last, others)) = self.handlers.split_last() else { return };
        for handler in others {
            handler.tell(news.iter().cloned(), now);
        }
        last.tell(news.into_iter(), now);
    }

    /// The store is complete: whoever began before that has its beginning now.
    pub(crate) fn complete(&mut self, now: Instant) {
        for handler in self.handlers.iter_mut().filter(|handler| !handler.begun) {
            handler.begun = true;
            handler.mailbox.fill(now, Queue::push_synced);
        }
    }

    /// Whether any handler is due for a resync now; those that are will hear of it.
    pub(crate) fn mark_due(&mut self, now: Instant) -> bool {
        for handler in &mut self.handlers {
            handler.resyncing = handler.due.as_mut().is_some_and(|due| due.is_due(now));
        }
        self.handlers.iter().any(|handler| handler.resyncing)
    }

    /// How each handler is doing, by its number.
    pub(crate) fn standings(&self, now: Instant) -> impl Iterator<Item = (usize, MailboxStats)> {
        let handlers = self.handlers.iter().filter(|handler| !handler.mailbox.is_closed());
        handlers.map(move |handler| (handler.nth, handler.mailbox.standing(now)))
    }

    /// Nobody is told anything any more.
    pub(crate) fn close(&mut self) {
        for handler in self.handlers.drain(..) {
            handler.mailbox.close();
        }
    }
}

impl Handler {
    fn tell(&self, news: impl Iterator<Item = News>, now: Instant) {
        self.mailbox.fill(now, |mailbox| {
            for news in news {
                match news {
                    News::One(event) => mailbox.push(event),
                    News::Run(run) if run.is_resync() && !self.resyncing => {}
                    News::Run(run) => mailbox.push_run(run),
                }
            }
        });
    }
}
