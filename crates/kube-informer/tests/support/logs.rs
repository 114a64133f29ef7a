//! Records the log of a thread.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

/// The lines that are logged on the current thread while this exists: level, message and fields of
/// each.
pub struct Logs {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

impl Logs {
    /// Records warnings and errors.
    pub fn record() -> Self {
        Self::record_from(Level::WARN)
    }

    /// Records this level and everything more severe.
    pub fn record_from(level: Level) -> Self {
        let lines = Arc::default();
        let guard = tracing::subscriber::set_default(Recorder { level, lines: Arc::clone(&lines) });
        Self { lines, _guard: guard }
    }

    /// Returns the lines of this level, and forgets them.
    pub fn take(&self, level: Level) -> Vec<String> {
        self.lines.lock().unwrap().extract_if(.., |line| line.starts_with(level.as_str())).collect()
    }

    /// The number of lines that contain all of these words.
    pub fn count(&self, words: &[&str]) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

struct Recorder {
    level: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Of lines that are not warnings, only those of this crate.
        let is_ours = *metadata.level() <= Level::WARN || metadata.target().starts_with("kube_informer");
        is_ours && *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}
