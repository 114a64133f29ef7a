//! The events of one informer, by object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Brief, Differences, Resync, Side, Terms, Trial, Window};
use crate::differential::transcript::{Line, State};

/// The events of one informer in order, without those that contain nothing new.
#[derive(Debug)]
pub(super) struct EventLog<'a> {
    side: Side,
    windows: &'a [Window],
    events: Vec<LoggedEvent>,
    observed_deletions: Vec<State>,
    /// The last state of each existing object.
    pub(super) last: BTreeMap<String, State>,
    /// The highest version received.
    reached: u64,
    pub(super) missed: usize,
    pub(super) resyncs: usize,
    pub(super) new_uids: usize,
    pub(super) unchanged: usize,
}

/// An event of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LoggedEvent {
    window: usize,
    pub(super) kind: EventKind,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Added,
    Updated,
    Deleted,
}

impl<'a> EventLog<'a> {
    /// Reads a transcript, and records events that are inconsistent by themselves.
    pub(super) fn read(side: Side, trial: &Trial, windows: &'a [Window], differences: &mut Differences) -> Self {
        let mut log = Self {
            side,
            windows,
            events: Vec::new(),
            observed_deletions: Vec::new(),
            last: BTreeMap::new(),
            reached: 0,
            missed: 0,
            resyncs: 0,
            new_uids: 0,
            unchanged: 0,
        };
        let mut note = |line: &Line, what: &str| differences.note(format!("{side} {what}: {line:?}"));
        let mut synced = false;
        let mut resynced = BTreeSet::new();
        let transcript = match side {
            Side::Ours => &trial.ours,
            Side::Theirs => &trial.theirs,
        };
        for line in &transcript.lines {
            let wrong = match line {
                Line::Synced { .. } => {
                    synced = true;
                    None
                }
                Line::Cache { .. } => None,
                Line::Added { initial: true, .. } if synced => Some("received an initial object after it was synced"),
                Line::Added { object, .. } | Line::Updated { object, .. } if !is_written(trial, object) => {
                    Some("received a state that was never written")
                }
                Line::Added { object, .. } => log.added(object),
                Line::Updated { old, object } if old.uid != object.uid => log.new_uid(old, object),
                Line::Updated { old, object } if old.version == object.version => {
                    if log.is_over() {
                        resynced.insert(&object.key);
                    }
                    log.unchanged(old, object, trial.resync)
                }
                Line::Updated { old, object } => log.updated(old, object),
                Line::Deleted { object, missed: true } => log.missed(object),
                Line::Deleted { object, missed: false } => log.deleted(object),
            };
            if let Some(what) = wrong {
                note(line, what);
            }
        }
        if trial.resync == Resync::On {
            for state in log.last.values().filter(|state| !resynced.contains(&state.key)) {
                differences.note(format!("{side} has not resynced {} after the last change", state.key));
            }
        }
        log
    }

    /// The events in a window.
    pub(super) fn window(&self, window: usize) -> impl Iterator<Item = &LoggedEvent> + Clone {
        self.events.iter().filter(move |event| event.window == window)
    }

    /// All deletions observed by a watch, with their versions.
    pub(super) fn observed_deletions(&self) -> impl Iterator<Item = &State> {
        self.observed_deletions.iter()
    }

    /// Each of these methods returns the inconsistency, if any.
    fn added(&mut self, object: &State) -> Option<&'static str> {
        let wrong = self.last.contains_key(&object.key).then_some("added an object that existed");
        self.push(self.window_of(object.version), EventKind::Added, object);
        wrong
    }

    fn updated(&mut self, old: &State, object: &State) -> Option<&'static str> {
        let wrong = match self.last.get(&object.key) {
            None => Some("updated an object that did not exist"),
            Some(last) if last != old => Some("updated from another state than the last one"),
            Some(_) if object.version < old.version => Some("updated to an earlier version"),
            Some(_) => None,
        };
        self.push(self.window_of(object.version), EventKind::Updated, object);
        wrong
    }

    fn deleted(&mut self, object: &State) -> Option<&'static str> {
        let wrong = match self.last.get(&object.key) {
            None => Some("deleted an object that did not exist"),
            Some(last) if last.uid != object.uid => Some("deleted an object with another uid"),
            Some(last) if object.version <= last.version => Some("deleted an earlier state"),
            // A watch sends the last state with the version of the deletion.
            Some(last) if object.step != last.step => Some("deleted another state than the last one"),
            Some(_) => None,
        };
        self.observed_deletions.push(object.clone());
        self.push(self.window_of(object.version), EventKind::Deleted, object);
        wrong
    }

    /// A deletion detected by a relist has no version. It is reported before the new objects of the
    /// list.
    fn missed(&mut self, object: &State) -> Option<&'static str> {
        let window = match self.window_of(self.reached) {
            window if self.windows.get(window).is_some_and(|window| window.end == self.reached) => window + 1,
            window => window,
        };
        let wrong = match self.last.get(&object.key) {
            None => Some("deleted an object that did not exist"),
            Some(last) if last != object => Some("deleted another state than the last one"),
            Some(_) if !self.is_cut(window) => Some("missed a deletion while connected"),
            Some(_) => None,
        };
        self.missed += 1;
        self.push(window, EventKind::Deleted, object);
        wrong
    }

    /// Allowed during a relist: client-go reports a new uid under an existing name as an update.
    fn new_uid(&mut self, old: &State, object: &State) -> Option<&'static str> {
        let window = self.window_of(object.version);
        let wrong = match self.last.get(&object.key) {
            _ if self.side == Side::Ours => Some("reported a new uid as an update"),
            _ if !self.is_cut(window) => Some("reported a new uid as an update while connected"),
            None => Some("updated an object that did not exist"),
            Some(last) if last != old => Some("updated from another state than the last one"),
            Some(_) => None,
        };
        self.new_uids += 1;
        self.push(window, EventKind::Deleted, old);
        self.push(window, EventKind::Added, object);
        wrong
    }

    /// A resync or, allowed during a relist: client-go reports an unchanged object as an update.
    fn unchanged(&mut self, old: &State, object: &State, resync: Resync) -> Option<&'static str> {
        // Events of a relist come in any order, so the barrier object may have come earlier.
        let window = self.window_of(self.reached);
        let relisted = self.is_cut(window) || (self.is_at_end(window) && self.is_cut(window + 1));
        let wrong = match (resync, self.side) {
            _ if old != object => Some("reported another object of the same version"),
            _ if self.last.get(&object.key) != Some(object) => Some("resynced another state than the last one"),
            (Resync::On, _) => None,
            (Resync::Off, Side::Ours) => Some("reported an update without a change"),
            (Resync::Off, Side::Theirs) if !relisted => Some("reported an update without a change while connected"),
            (Resync::Off, Side::Theirs) => None,
        };
        match resync {
            Resync::On => self.resyncs += 1,
            Resync::Off => self.unchanged += 1,
        }
        wrong
    }

    fn push(&mut self, window: usize, kind: EventKind, state: &State) {
        match kind {
            EventKind::Added | EventKind::Updated => drop(self.last.insert(state.key.clone(), state.clone())),
            EventKind::Deleted => drop(self.last.remove(&state.key)),
        }
        self.reached = self.reached.max(state.version);
        self.events.push(LoggedEvent { window, kind, state: state.clone() });
    }

    /// The window of a version. Versions after the end belong to the last window, because nothing
    /// is compared after it.
    fn window_of(&self, version: u64) -> usize {
        self.windows.partition_point(|window| window.end < version).min(self.windows.len().saturating_sub(1))
    }

    fn is_at_end(&self, window: usize) -> bool {
        self.windows.get(window).is_some_and(|window| window.end == self.reached)
    }

    fn is_cut(&self, window: usize) -> bool {
        self.windows.get(window).is_some_and(|window| window.terms == Terms::Cut)
    }

    /// Whether the last barrier object has been received.
    fn is_over(&self) -> bool {
        self.windows.last().is_some_and(|last| self.reached >= last.end)
    }
}

/// Whether the object's content is what was last written. The server writes too: it sets the
/// deletion timestamp of a pod.
fn is_written(trial: &Trial, object: &State) -> bool {
    let at = State { step: char::MAX.to_string(), ..object.clone() };
    let last = trial.written.range(..=at).next_back();
    last.is_some_and(|last| (&last.key, &last.uid, &last.step) == (&object.key, &object.uid, &object.step))
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        })
    }
}

impl fmt::Display for LoggedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, Brief(&self.state))
    }
}
