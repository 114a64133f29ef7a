//! An informer whose every word is written down.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::fs;
use tokio::sync::watch;

use super::transcript::{Line, State, Transcript};
use crate::Error;

/// The longest that anything may take. Waits end as soon as what is waited for has come.
const PATIENCE: Duration = Duration::from_secs(90);

/// What an informer has told so far.
#[derive(Debug, Clone)]
pub(crate) struct Witness {
    name: &'static str,
    lines: Arc<Mutex<Vec<Line>>>,
    changed: watch::Sender<End>,
}

/// Whether more may come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    NotYet,
    Over(String),
}

impl Witness {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, lines: Arc::default(), changed: watch::Sender::new(End::NotYet) }
    }

    /// Takes down a line.
    pub(crate) fn tell(&self, line: Line) {
        self.lines().push(line);
        self.changed.send_modify(|_| {});
    }

    /// Nothing more will come, for this reason.
    pub(crate) fn ended(&self, why: impl Into<String>) {
        self.changed.send_replace(End::Over(why.into()));
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.lines().iter().any(|line| matches!(line, Line::Synced { .. }))
    }

    pub(crate) async fn synced(&self) -> Result<(), Error> {
        self.wait("sync", |lines| lines.iter().any(|line| matches!(line, Line::Synced { .. })).then_some(())).await
    }

    /// Waits until the handler has heard of an object at this version.
    pub(crate) async fn heard(&self, state: &State) -> Result<(), Error> {
        let what = format!("hear of {} at {}", state.key, state.version);
        self.wait(&what, |lines| lines.iter().rev().any(|line| line.object() == Some(state)).then_some(())).await
    }

    /// Waits until an object has been told again so many times without a change.
    pub(crate) async fn told_again(&self, state: &State, times: usize) -> Result<(), Error> {
        let again = |line: &&Line| matches!(line, Line::Updated { old, object } if old == object && object == state);
        let what = format!("tell {} again {times} times", state.key);
        self.wait(&what, |lines| (lines.iter().filter(again).count() >= times).then_some(())).await
    }

    /// Waits for the cache, which must have been asked for.
    pub(crate) async fn cache(&self) -> Result<Vec<State>, Error> {
        let cache = |line: &Line| match line {
            Line::Cache { objects } => Some(objects.clone()),
            _ => None,
        };
        self.wait("print its cache", |lines| lines.iter().rev().find_map(cache)).await
    }

    /// What has been told of the objects of a trial, which all have keys that begin with this.
    pub(crate) fn transcript(&self, keys: &str, cache: &[State]) -> Transcript {
        let lines = self.lines();
        let ours = lines.iter().filter(|line| line.object().is_none_or(|object| object.key.starts_with(keys)));
        Transcript {
            lines: ours.cloned().collect(),
            cache: cache.iter().filter(|state| state.key.starts_with(keys)).cloned().collect(),
        }
    }

    /// Writes everything to a file, a JSON document a line.
    pub(crate) async fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let lines: Result<Vec<String>, _> = self.lines().iter().map(serde_json::to_string).collect();
        let path = folder.join(format!("{}.jsonl", self.name));
        fs::write(&path, lines?.join("\n") + "\n").await?;
        Ok(path)
    }

    async fn wait<T>(&self, what: &str, mut found: impl FnMut(&[Line]) -> Option<T>) -> Result<T, Error> {
        let mut changed = self.changed.subscribe();
        let wait = async {
            loop {
                let end = changed.borrow_and_update().clone();
                if let Some(found) = found(&self.lines()) {
                    return Ok(found);
                }
                if let End::Over(why) = end {
                    return Err(format!("{} ended before it could {what}: {why}", self.name).into());
                }
                changed.changed().await?;
            }
        };
        let late = || format!("{} does not {what} within {} s", self.name, PATIENCE.as_secs());
        tokio::time::timeout(PATIENCE, wait).await.map_err(|_| late())?
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
