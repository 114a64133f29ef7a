//! Counts printed events by type.

use std::time::Instant;

use super::seconds;
use crate::args::watch::EventType;

#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) added: u64,
    pub(crate) updated: u64,
    pub(crate) deleted: u64,
    began: Instant,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self { added: 0, updated: 0, deleted: 0, began: Instant::now() }
    }

    pub(crate) fn count(&mut self, what: EventType) {
        *match what {
            EventType::Added => &mut self.added,
            EventType::Updated => &mut self.updated,
            EventType::Deleted => &mut self.deleted,
        } += 1;
    }

    pub(crate) fn total(&self) -> u64 {
        self.added + self.updated + self.deleted
    }

    pub(crate) fn summary(&self, cache: &str) -> String {
        let Self { added, updated, deleted, began } = self;
        let time = seconds(began.elapsed());
        format!("{added} added, {updated} updated, {deleted} deleted in {time}; {cache}")
    }
}
