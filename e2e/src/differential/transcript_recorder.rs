//! Records the events of an informer.

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

use super::transcript::{Line, State, Transcript};
use crate::Error;

/// Records the events of an informer. Clones share the recording.
#[derive(Debug, Clone)]
pub(crate) struct TranscriptRecorder {
    name: &'static str,
    recording: Arc<Mutex<Recording>>,
    /// The path of its error log.
    log: PathBuf,
    changed: watch::Sender<End>,
}

#[derive(Debug)]
struct Recording {
    lines: Vec<Line>,
    /// Number of lines that are not resyncs.
    changes: usize,
    began: Instant,
    last: Instant,
    /// The file to which each line is written immediately.
    file: File,
}

/// A line as written to the file.
#[derive(Debug, Serialize)]
struct TimedLine<'a> {
    /// Seconds since the start.
    at: f64,
    #[serde(flatten)]
    line: &'a Line,
}

/// Whether more lines may follow.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    NotYet,
    Over(String),
}

impl TranscriptRecorder {
    /// Creates a recorder that writes into a folder: events as one JSON document per line, and an
    /// error log.
    pub(crate) fn new(name: &'static str, folder: &Path) -> Result<Self, Error> {
        let (began, file) = (Instant::now(), File::create(folder.join(format!("{name}.jsonl")))?);
        let log = folder.join(format!("{name}.log"));
        File::create(&log)?;
        let recording = Recording { lines: Vec::new(), changes: 0, began, last: began, file };
        Ok(Self { name, recording: Arc::new(Mutex::new(recording)), log, changed: watch::Sender::new(End::NotYet) })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Records a line.
    pub(crate) fn record(&self, line: Line) {
        let written = self.recording().append(line);
        self.changed.send_modify(|end| {
            if let Err(error) = written {
                *end = End::Over(format!("the transcript cannot be written: {error}"));
            }
        });
    }

    /// Records an error.
    pub(crate) fn record_error(&self, recorded: impl fmt::Display) {
        let at = self.recording().began.elapsed().as_secs_f64();
        // A failure to write the log is ignored: the log is only for diagnosis.
        let log = File::options().append(true).open(&self.log);
        drop(log.and_then(|mut log| writeln!(log, "{at:.3} s: {recorded}")));
    }

    /// The path of the error log.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The last recorded error.
    pub(crate) fn last_error(&self) -> Option<String> {
        let log = std::fs::read_to_string(&self.log).ok()?;
        log.lines().next_back().map(str::to_owned)
    }

    /// Number of lines so far that are not resyncs.
    pub(crate) fn changes(&self) -> usize {
        self.recording().changes
    }

    /// Records that no more lines will follow, and why.
    pub(crate) fn ended(&self, why: impl Into<String>) {
        self.changed.send_replace(End::Over(why.into()));
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.recording().lines.iter().any(|line| matches!(line, Line::Synced { .. }))
    }

    pub(crate) async fn synced(&self) -> Result<(), Error> {
        self.wait("sync", |lines| lines.iter().any(|line| matches!(line, Line::Synced { .. })).then_some(())).await
    }

    /// Waits until the handler has received an object at this version.
    pub(crate) async fn received(&self, state: &State) -> Result<(), Error> {
        let what = format!("receive {} at {}", state.key, state.version);
        self.wait(&what, |lines| lines.iter().rev().any(|line| line.object() == Some(state)).then_some(())).await
    }

    /// Waits until an object has been resynced this many times.
    pub(crate) async fn resynced(&self, state: &State, times: usize) -> Result<(), Error> {
        let again = |line: &&Line| matches!(line, Line::Updated { old, object } if old == object && object == state);
        let what = format!("resync {} {times} times", state.key);
        self.wait(&what, |lines| (lines.iter().filter(again).count() >= times).then_some(())).await
    }

    /// Waits for the content of the cache, which must have been requested.
    pub(crate) async fn cache(&self) -> Result<Vec<State>, Error> {
        let cache = |line: &Line| match line {
            Line::Cache { objects } => Some(objects.clone()),
            _ => None,
        };
        self.wait("print its cache", |lines| lines.iter().rev().find_map(cache)).await
    }

    /// The recorded events of objects whose keys begin with `keys`.
    pub(crate) fn transcript(&self, keys: &str, cache: &[State]) -> Transcript {
        let recording = self.recording();
        let ours =
            recording.lines.iter().filter(|line| line.object().is_none_or(|object| object.key.starts_with(keys)));
        Transcript {
            lines: ours.cloned().collect(),
            cache: cache.iter().filter(|state| state.key.starts_with(keys)).cloned().collect(),
        }
    }

    async fn wait<T>(&self, what: &str, mut found: impl FnMut(&[Line]) -> Option<T>) -> Result<T, Error> {
        let mut changed = self.changed.subscribe();
        loop {
            let end = changed.borrow_and_update().clone();
            if let Some(found) = found(&self.recording().lines) {
                return Ok(found);
            }
            if let End::Over(why) = end {
                return Err(format!("{} ended before it could {what}: {why}", self.name).into());
            }
            changed.changed().await?;
        }
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recording {
    fn append(&mut self, line: Line) -> Result<(), Error> {
        self.last = Instant::now();
        let at = self.last.duration_since(self.began).as_secs_f64();
        let json = serde_json::to_string(&TimedLine { at, line: &line })? + "\n";
        self.file.write_all(json.as_bytes())?;
        self.changes += usize::from(!line.is_resync());
        self.lines.push(line);
        Ok(())
    }
}

impl fmt::Display for TranscriptRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recording = self.recording();
        let Some(last) = recording.lines.last() else { return write!(f, "{} has received nothing", self.name) };
        let (lines, ago) = (recording.lines.len(), recording.last.elapsed().as_secs());
        write!(f, "{} has recorded {lines} lines, the last {ago} s ago: {last}", self.name)
    }
}
