//! The events of one informer, by object.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Brief, Differences, Resync, Terms, Trial, Who, Window};
use crate::differential::transcript::{Line, State};

/// The events of one informer in order, without those that contain nothing new.
#[derive(Debug)]
pub(super) struct Story<'a> {
    who: Who,
    windows: &'a [Window],
    told: Vec<Told>,
    seen_to_go: Vec<State>,
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
pub(super) struct Told {
    window: usize,
    pub(super) kind: Kind,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Updated,
    Deleted,
}

impl<'a> Story<'a> {
    /// Reads a transcript, and records events that are inconsistent by themselves.
    pub(super) fn read(who: Who, trial: &Trial, windows: &'a [Window], differences: &mut Differences) -> Self {
        let mut story = Self {
            who,
            windows,
            told: Vec::new(),
            seen_to_go: Vec::new(),
            last: BTreeMap::new(),
            reached: 0,
            missed: 0,
            resyncs: 0,
            new_uids: 0,
            unchanged: 0,
        };
        let mut note = |line: &Line, what: &str| differences.note(format!("{who} {what}: {line:?}"));
        let mut synced = false;
        let mut told_again = BTreeSet::new();
        let transcript = match who {
            Who::Ours => &trial.ours,
            Who::Theirs => &trial.theirs,
        };
        for line in &transcript.lines {
            let wrong = match line {
                Line::Synced { .. } => {
                    synced = true;
                    None
                }
                Line::Cache { .. } => None,
                Line::Added { initial: true, .. } if synced => Some("is past its first list"),
                Line::Added { object, .. } | Line::Updated { object, .. } if !is_written(trial, object) => {
                    Some("told what nobody wrote")
                }
                Line::Added { object, .. } => story.added(object),
                Line::Updated { old, object } if old.uid != object.uid => story.new_uid(old, object),
                Line::Updated { old, object } if old.version == object.version => {
                    if story.is_over() {
                        told_again.insert(&object.key);
                    }
                    story.unchanged(old, object, trial.resync)
                }
                Line::Updated { old, object } => story.updated(old, object),
                Line::Deleted { object, missed: true } => story.missed(object),
                Line::Deleted { object, missed: false } => story.deleted(object),
            };
            if let Some(what) = wrong {
                note(line, what);
            }
        }
        if trial.resync == Resync::On {
            for state in story.last.values().filter(|state| !told_again.contains(&state.key)) {
                differences.note(format!("{who} has not told {} again after the last change", state.key));
            }
        }
        story
    }

    /// The events in a window.
    pub(super) fn window(&self, window: usize) -> impl Iterator<Item = &Told> + Clone {
        self.told.iter().filter(move |told| told.window == window)
    }

    /// All deletions observed by a watch, with their versions.
    pub(super) fn seen_to_go(&self) -> impl Iterator<Item = &State> {
        self.seen_to_go.iter()
    }

    /// Each of these methods returns the inconsistency, if any.
    fn added(&mut self, object: &State) -> Option<&'static str> {
        let wrong = self.last.contains_key(&object.key).then_some("added what was there");
        self.tell(self.window_of(object.version), Kind::Added, object);
        wrong
    }

    fn updated(&mut self, old: &State, object: &State) -> Option<&'static str> {
        let wrong = match self.last.get(&object.key) {
            None => Some("updated what was not there"),
            Some(last) if last != old => Some("updated from another state than it had told"),
            Some(_) if object.version < old.version => Some("went back"),
            Some(_) => None,
        };
        self.tell(self.window_of(object.version), Kind::Updated, object);
        wrong
    }

    fn deleted(&mut self, object: &State) -> Option<&'static str> {
        let wrong = match self.last.get(&object.key) {
            None => Some("deleted what was not there"),
            Some(last) if last.uid != object.uid => Some("deleted another object than it had told of"),
            Some(last) if object.version <= last.version => Some("deleted an earlier state"),
            // A watch sends the last state with the version of the deletion.
            Some(last) if object.step != last.step => Some("deleted another state than it had told"),
            Some(_) => None,
        };
        self.seen_to_go.push(object.clone());
        self.tell(self.window_of(object.version), Kind::Deleted, object);
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
            None => Some("deleted what was not there"),
            Some(last) if last != object => Some("deleted another state than it had told"),
            Some(_) if !self.is_cut(window) => Some("missed a deletion where nothing was cut"),
            Some(_) => None,
        };
        self.missed += 1;
        self.tell(window, Kind::Deleted, object);
        wrong
    }

    /// Allowed during a relist: client-go reports a new uid under an existing name as an update.
    fn new_uid(&mut self, old: &State, object: &State) -> Option<&'static str> {
        let window = self.window_of(object.version);
        let wrong = match self.last.get(&object.key) {
            _ if self.who == Who::Ours => Some("told a new uid as an update"),
            _ if !self.is_cut(window) => Some("told a new uid as an update where nothing was cut"),
            None => Some("updated what was not there"),
            Some(last) if last != old => Some("updated from another state than it had told"),
            Some(_) => None,
        };
        self.new_uids += 1;
        self.tell(window, Kind::Deleted, old);
        self.tell(window, Kind::Added, object);
        wrong
    }

    /// A resync or, allowed during a relist: client-go reports an unchanged object as an update.
    fn unchanged(&mut self, old: &State, object: &State, resync: Resync) -> Option<&'static str> {
        // Events of a relist come in any order, so the barrier object may have come earlier.
        let window = self.window_of(self.reached);
        let relisted = self.is_cut(window) || (self.is_at_end(window) && self.is_cut(window + 1));
        let wrong = match (resync, self.who) {
            _ if old != object => Some("told another object of the same version"),
            _ if self.last.get(&object.key) != Some(object) => Some("told again what it had not told"),
            (Resync::On, _) => None,
            (Resync::Off, Who::Ours) => Some("told an update without a change"),
            (Resync::Off, Who::Theirs) if !relisted => Some("told an update without a change where nothing was cut"),
            (Resync::Off, Who::Theirs) => None,
        };
        match resync {
            Resync::On => self.resyncs += 1,
            Resync::Off => self.unchanged += 1,
        }
        wrong
    }

    fn tell(&mut self, window: usize, kind: Kind, state: &State) {
        match kind {
            Kind::Added | Kind::Updated => drop(self.last.insert(state.key.clone(), state.clone())),
            Kind::Deleted => drop(self.last.remove(&state.key)),
        }
        self.reached = self.reached.max(state.version);
        self.told.push(Told { window, kind, state: state.clone() });
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        })
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, Brief(&self.state))
    }
}
