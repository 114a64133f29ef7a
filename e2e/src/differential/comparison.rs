//! Comparison of the events of two informers.
//!
//! A run is divided by resource versions into windows. Each window ends with the version of a
//! barrier object, which is created while nothing else is written and which both informers have
//! received before the run continues:
//!
//! - up to the version at which both were synced, only the final state must be the same;
//! - while both were connected, the events of each object must be the same, in the same order;
//! - while connections were cut, intermediate states may be skipped: the final state must be the
//!   same, so that a deletion missed by one informer is detected.
//!
//! Two differences during relists are intentional and are counted: see [`Agreement::new_uids`] and
//! [`Agreement::unchanged`]. All others are errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use self::event_log::{EventKind, EventLog, LoggedEvent};
use super::transcript::{Line, State, Transcript};

mod event_log;
#[cfg(test)]
mod tests;

/// A run of both informers, and the expected data.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) ours: Transcript,
    pub(crate) theirs: Transcript,
    pub(crate) windows: Vec<Window>,
    /// Every state that was written.
    pub(crate) written: BTreeSet<State>,
    /// The final objects according to a LIST.
    pub(crate) listed: Vec<State>,
    pub(crate) resync: Resync,
}

/// The versions up to and including that of the barrier object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) end: u64,
    pub(crate) terms: Terms,
}

/// How strictly a window is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms {
    /// The informers were not yet synced.
    Start,
    /// Both were connected throughout.
    Connected,
    /// Connections were cut.
    Cut,
}

/// Whether the informers resync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resync {
    Off,
    /// Each informer must have resynced at least once after the last change.
    On,
}

/// One of the two informers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Ours,
    Theirs,
}

/// Statistics of a successful comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// Number of handler calls: this project's, and client-go's.
    pub(crate) calls: [usize; 2],
    /// Events that were the same in the same order.
    pub(crate) compared: usize,
    /// States at the end of windows that were the same.
    pub(crate) states: usize,
    /// Deletions detected by a relist: this project's, and client-go's.
    pub(crate) missed: [usize; 2],
    /// Resyncs of single objects: this project's, and client-go's.
    pub(crate) resyncs: [usize; 2],
    /// Allowed: a relist finds a new uid under an existing name. This project reports a deletion
    /// and an addition, client-go an update.
    pub(crate) new_uids: usize,
    /// Allowed: a relist finds an unchanged object. This project reports nothing, client-go an
    /// update.
    pub(crate) unchanged: usize,
}

/// Descriptions of differences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Differences(pub(crate) Vec<String>);

/// Compares the two transcripts.
pub(crate) fn compare(trial: &Trial) -> Result<Agreement, Differences> {
    let mut differences = Differences::default();
    let windows = aligned(trial, &mut differences);
    let ours = EventLog::read(Side::Ours, trial, &windows, &mut differences);
    let theirs = EventLog::read(Side::Theirs, trial, &windows, &mut differences);
    let mut agreement = Agreement {
        calls: [calls(&trial.ours), calls(&trial.theirs)],
        missed: [ours.missed, theirs.missed],
        resyncs: [ours.resyncs, theirs.resyncs],
        new_uids: theirs.new_uids,
        unchanged: theirs.unchanged,
        ..Agreement::default()
    };
    same_deletions(trial, [&ours, &theirs], &mut differences);
    let mut states = [BTreeMap::new(), BTreeMap::new()];
    for (index, window) in windows.iter().enumerate() {
        let events = [ours.window(index), theirs.window(index)];
        if window.terms == Terms::Connected {
            agreement.compared += same_events(index, &events, &mut differences);
        }
        for (states, events) in states.iter_mut().zip(events) {
            events.for_each(|event| apply(states, event));
        }
        let before = differences.0.len();
        let at = format!("at the end of window {index} ({:?}, version {})", window.terms, window.end);
        agreement.states += same_states(&at, "kube-informer", &states[0], "client-go", &states[1], &mut differences);
        // A difference in one window also affects all later ones.
        if differences.0.len() > before {
            break;
        }
    }
    let [our_cache, their_cache] = [&trial.ours.cache, &trial.theirs.cache].map(by_key);
    let end = "in the end";
    same_states(end, "our handler", &by_key(ours.last.values()), "our cache", &our_cache, &mut differences);
    same_states(end, "client-go's handler", &by_key(theirs.last.values()), "its cache", &their_cache, &mut differences);
    same_states(end, "our cache", &our_cache, "the server", &by_key(&trial.listed), &mut differences);
    same_states(end, "our cache", &our_cache, "client-go's", &their_cache, &mut differences);
    if differences.0.is_empty() { Ok(agreement) } else { Err(differences) }
}

/// The windows, preceded by one up to the version at which both were synced.
fn aligned(trial: &Trial, differences: &mut Differences) -> Vec<Window> {
    let synced = |transcript: &Transcript| {
        let mut synced = transcript.lines.iter().filter_map(|line| match line {
            Line::Synced { version } => Some(*version),
            _ => None,
        });
        synced.next().filter(|_| synced.next().is_none())
    };
    let start = match (synced(&trial.ours), synced(&trial.theirs)) {
        (Some(ours), Some(theirs)) => ours.max(theirs),
        (ours, theirs) => {
            differences.note(format!("each must sync once: ours at {ours:?}, client-go at {theirs:?}"));
            0
        }
    };
    if trial.windows.first().is_none_or(|first| first.end <= start) || !trial.windows.is_sorted_by(|a, b| a.end < b.end)
    {
        differences.note(format!("windows after version {start} must follow one another: {:?}", trial.windows));
    }
    [Window { end: start, terms: Terms::Start }].into_iter().chain(trial.windows.iter().copied()).collect()
}

fn calls(transcript: &Transcript) -> usize {
    transcript.lines.iter().filter(|line| line.object().is_some()).count()
}

/// Checks that all observed deletions of an object have the same version.
fn same_deletions(trial: &Trial, logs: [&EventLog<'_>; 2], differences: &mut Differences) {
    // An object that leaves a selector may be deleted several times, each time by a write.
    let writes: BTreeSet<_> = trial.written.iter().map(|state| (&state.uid, state.version)).collect();
    let mut deletions = BTreeMap::new();
    for state in logs.into_iter().flat_map(EventLog::observed_deletions) {
        if !writes.contains(&(&state.uid, state.version)) {
            let deletion = *deletions.entry(&state.uid).or_insert(state.version);
            if deletion != state.version {
                differences.note(format!("{} is reported as deleted at {deletion} and {}", state.key, Brief(state)));
            }
        }
    }
}

/// Compares the events of each object in a window. Returns how many were the same.
fn same_events<'a>(
    window: usize,
    events: &[impl Iterator<Item = &'a LoggedEvent> + Clone; 2],
    differences: &mut Differences,
) -> usize {
    let mut same = 0;
    let [ours, theirs] = events.clone().map(|events| {
        let mut by_key = BTreeMap::<&str, Vec<(EventKind, &State)>>::new();
        events.for_each(|event| by_key.entry(&event.state.key).or_default().push((event.kind, &event.state)));
        by_key
    });
    for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let (our, their) = (ours.get(key), theirs.get(key));
        if our == their {
            same += our.map_or(0, Vec::len);
        } else {
            let [our, their] = [our, their].map(|events| describe(events.map_or(&[], Vec::as_slice)));
            differences.note(format!(
                "in window {window}, where both were connected, events of {key}: ours {our}; client-go's {their}"
            ));
        }
    }
    same
}

fn describe(events: &[(EventKind, &State)]) -> String {
    if events.is_empty() {
        return "none".to_owned();
    }
    events.iter().map(|(kind, state)| format!("{kind} {}", Brief(state))).collect::<Vec<_>>().join(", ")
}

fn apply(states: &mut BTreeMap<String, State>, event: &LoggedEvent) {
    match event.kind {
        EventKind::Added | EventKind::Updated => drop(states.insert(event.state.key.clone(), event.state.clone())),
        EventKind::Deleted => drop(states.remove(&event.state.key)),
    }
}

fn by_key<'a>(states: impl IntoIterator<Item = &'a State>) -> BTreeMap<String, State> {
    states.into_iter().map(|state| (state.key.clone(), state.clone())).collect()
}

/// Compares the current states. Returns how many were the same.
fn same_states(
    when: &str,
    one: &str,
    ones: &BTreeMap<String, State>,
    other: &str,
    others: &BTreeMap<String, State>,
    differences: &mut Differences,
) -> usize {
    let mut same = 0;
    for key in ones.keys().chain(others.keys()).collect::<BTreeSet<_>>() {
        match (ones.get(key), others.get(key)) {
            (one, other) if one == other => same += 1,
            (Some(state), None) => {
                differences.note(format!("{when}, {one} has {key} {} and {other} has not", Brief(state)));
            }
            (None, Some(state)) => {
                differences.note(format!("{when}, {other} has {key} {} and {one} has not", Brief(state)));
            }
            (Some(a), Some(b)) => {
                differences.note(format!("{when}, {one} has {key} {} and {other} {}", Brief(a), Brief(b)));
            }
            (None, None) => {}
        }
    }
    same
}

impl Differences {
    fn note(&mut self, difference: String) {
        self.0.push(difference);
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        write!(f, "{} differences", self.0.len())?;
        self.0.iter().take(SHOWN).try_for_each(|difference| write!(f, "\n  {difference}"))?;
        if self.0.len() > SHOWN { write!(f, "\n  and {} more", self.0.len() - SHOWN) } else { Ok(()) }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "kube-informer",
            Self::Theirs => "client-go",
        })
    }
}

/// Displays a state without its key.
struct Brief<'a>(&'a State);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { uid, version, step, .. } = self.0;
        write!(f, "@{version} (uid {}, step {step})", uid.get(..8).unwrap_or(uid))
    }
}
