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

/// The recorded events of an informer.
#[derive(Debug, Clone)]
pub(crate) struct Witness {
    name: &'static str,
    told: Arc<Mutex<Told>>,
    /// The path of its error log.
    log: PathBuf,
    changed: watch::Sender<End>,
}

#[derive(Debug)]
struct Told {
    lines: Vec<Line>,
    /// Number of lines that are not resyncs.
    news: usize,
    began: Instant,
    last: Instant,
    /// The file to which each line is written immediately.
    file: File,
}

/// A line as written to the file.
#[derive(Debug, Serialize)]
struct Written<'a> {
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

impl Witness {
    /// Creates a witness that writes into a folder: events as one JSON document per line, and an
    /// error log.
    pub(crate) fn new(name: &'static str, folder: &Path) -> Result<Self, Error> {
        let (began, file) = (Instant::now(), File::create(folder.join(format!("{name}.jsonl")))?);
        let log = folder.join(format!("{name}.log"));
        File::create(&log)?;
        let told = Told { lines: Vec::new(), news: 0, began, last: began, file };
        Ok(Self { name, told: Arc::new(Mutex::new(told)), log, changed: watch::Sender::new(End::NotYet) })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Records a line.
    pub(crate) fn tell(&self, line: Line) {
        let written = self.told().take_down(line);
        self.changed.send_modify(|end| {
            if let Err(error) = written {
                *end = End::Over(format!("what it tells cannot be written down: {error}"));
            }
        });
    }

    /// Records an error.
    pub(crate) fn complain(&self, complaint: impl fmt::Display) {
        let at = self.told().began.elapsed().as_secs_f64();
        // A failure to write the log is ignored: the log is only for diagnosis.
        let log = File::options().append(true).open(&self.log);
        drop(log.and_then(|mut log| writeln!(log, "{at:.3} s: {complaint}")));
    }

    /// The path of the error log.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The last recorded error.
    pub(crate) fn last_complaint(&self) -> Option<String> {
        let log = std::fs::read_to_string(&self.log).ok()?;
        log.lines().next_back().map(str::to_owned)
    }

    /// Number of lines so far that are not resyncs.
    pub(crate) fn news(&self) -> usize {
        self.told().news
    }

    /// Records that no more lines will follow, and why.
    pub(crate) fn ended(&self, why: impl Into<String>) {
        self.changed.send_replace(End::Over(why.into()));
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.told().lines.iter().any(|line| matches!(line, Line::Synced { .. }))
    }

    pub(crate) async fn synced(&self) -> Result<(), Error> {
        self.wait("sync", |lines| lines.iter().any(|line| matches!(line, Line::Synced { .. })).then_some(())).await
    }

    /// Waits until the handler has received an object at this version.
    pub(crate) async fn heard(&self, state: &State) -> Result<(), Error> {
        let what = format!("hear of {} at {}", state.key, state.version);
        self.wait(&what, |lines| lines.iter().rev().any(|line| line.object() == Some(state)).then_some(())).await
    }

    /// Waits until an object has been resynced this many times.
    pub(crate) async fn told_again(&self, state: &State, times: usize) -> Result<(), Error> {
        let again = |line: &&Line| matches!(line, Line::Updated { old, object } if old == object && object == state);
        let what = format!("tell {} again {times} times", state.key);
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
        let told = self.told();
        let ours = told.lines.iter().filter(|line| line.object().is_none_or(|object| object.key.starts_with(keys)));
        Transcript {
            lines: ours.cloned().collect(),
            cache: cache.iter().filter(|state| state.key.starts_with(keys)).cloned().collect(),
        }
    }

    async fn wait<T>(&self, what: &str, mut found: impl FnMut(&[Line]) -> Option<T>) -> Result<T, Error> {
        let mut changed = self.changed.subscribe();
        loop {
            let end = changed.borrow_and_update().clone();
            if let Some(found) = found(&self.told().lines) {
                return Ok(found);
            }
            if let End::Over(why) = end {
                return Err(format!("{} ended before it could {what}: {why}", self.name).into());
            }
            changed.changed().await?;
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn take_down(&mut self, line: Line) -> Result<(), Error> {
        self.last = Instant::now();
        let at = self.last.duration_since(self.began).as_secs_f64();
        let json = serde_json::to_string(&Written { at, line: &line })? + "\n";
        self.file.write_all(json.as_bytes())?;
        self.news += usize::from(!line.is_resync());
        self.lines.push(line);
        Ok(())
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = self.told();
        let Some(last) = told.lines.last() else { return write!(f, "{} has told nothing", self.name) };
        let (lines, ago) = (told.lines.len(), told.last.elapsed().as_secs());
        write!(f, "{} has told {lines} lines, the last {ago} s ago: {last}", self.name)
    }
}
