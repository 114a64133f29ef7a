//! Collects the log lines of a run (`tracing`), with the time of the run.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::Logs;
use crate::trace::{Note, NoteKind};

/// The most lines that are kept of a run.
const MAX_LINES: usize = 10_000;

thread_local! {
    static LINES: RefCell<Vec<Note>> = const { RefCell::new(Vec::new()) };
    static STARTED: RefCell<Option<Instant>> = const { RefCell::new(None) };
}

/// Runs `work`, and returns the log lines of this thread, if they are wanted.
pub(crate) fn collect<T>(logs: Logs, work: impl FnOnce() -> T) -> (T, Vec<Note>) {
    let done = match logs {
        Logs::Drop => work(),
        Logs::Keep => tracing::subscriber::with_default(Collector, work),
    };
    STARTED.set(None);
    (done, LINES.take())
}

/// Counts the time of log lines from now.
pub(crate) fn start_clock() {
    STARTED.set(Some(Instant::now()));
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_library =
            ["hyper", "tower", "h2", "tokio", "kube_embedded"].iter().any(|name| metadata.target().starts_with(name));
        *metadata.level() <= Level::DEBUG && !is_library
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = format!("{:5} {}: ", event.metadata().level(), event.metadata().target());
        event.record(&mut Line(&mut text));
        let Some(started) = STARTED.with(|started| *started.borrow()) else { return };
        LINES.with(|lines| {
            let mut lines = lines.borrow_mut();
            if lines.len() < MAX_LINES {
                lines.push(Note { at: started.elapsed(), kind: NoteKind::Log, text });
            }
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = match field.name() {
            "message" => write!(self.0, "{value:?} "),
            name => write!(self.0, "{name}={value:?} "),
        };
        debug_assert!(written.is_ok(), "a String takes every text");
    }
}
