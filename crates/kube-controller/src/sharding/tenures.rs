//! The ranges that this member holds, as its session and its participants share them.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::record::Versions;
use super::tenure::Tenure;

/// Shared by a session, which claims and releases, and the participants, which work.
#[derive(Debug)]
pub(super) struct Tenures {
    state: Mutex<State>,
    /// Counts changes.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<usize, HeldRange>,
    participants: BTreeSet<u64>,
    next_participant: u64,
}

#[derive(Debug)]
pub(super) struct HeldRange {
    pub(super) tenure: Tenure,
    pub(super) is_draining: bool,
    /// Participants that may still work for the range.
    working: BTreeSet<u64>,
    /// What those had seen that have ended; `None` if one did not say.
    versions: Option<Versions>,
}

impl Tenures {
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn count(&self) -> usize {
        self.state.lock().held.len()
    }

    /// Calls a function with all ranges that are held.
    pub(super) fn with<T>(&self, f: impl FnOnce(&BTreeMap<usize, HeldRange>) -> T) -> T {
        f(&self.state.lock().held)
    }

    pub(super) fn start(&self, tenures: impl IntoIterator<Item = Tenure>) {
        self.change(|state| {
            for tenure in tenures {
                let working = state.participants.clone();
                let held = HeldRange { tenure, is_draining: false, working, versions: Some(Versions::new()) };
                state.held.insert(held.tenure.index(), held);
            }
        });
    }

    /// Asks the participants to end what they do for a range.
    pub(super) fn drain(&self, index: usize) -> Option<Tenure> {
        self.change(|state| {
            let held = state.held.get_mut(&index)?;
            held.is_draining = true;
            Some(held.tenure.clone())
        })
    }

    /// Completes when no participant works for a range any more.
    pub(super) async fn drained(&self, index: usize) {
        let mut changed = self.subscribe();
        let is_drained = |_: &u64| self.state.lock().held.get(&index).is_none_or(|held| held.working.is_empty());
        // The sender is in `self`.
        drop(changed.wait_for(is_drained).await);
    }

    /// What the participants had seen of a range when they ended; `None` if one did not say.
    pub(super) fn versions(&self, index: usize) -> Option<Versions> {
        let state = self.state.lock();
        state.held.get(&index).filter(|held| held.working.is_empty())?.versions.clone()
    }

    /// Ranges are not held any more.
    pub(super) fn remove(&self, indices: impl IntoIterator<Item = usize>) -> Vec<Tenure> {
        self.change(|state| {
            indices.into_iter().filter_map(|index| state.held.remove(&index)).map(|held| held.tenure).collect()
        })
    }

    /// Adds a participant. It works for all ranges that are held now.
    pub(super) fn join(&self) -> u64 {
        self.change(|state| {
            let id = state.next_participant;
            state.next_participant += 1;
            state.participants.insert(id);
            for held in state.held.values_mut().filter(|held| !held.is_draining) {
                held.working.insert(id);
            }
            id
        })
    }

    /// A participant has ended. What it has not said, is not known.
    pub(super) fn leave(&self, id: u64) {
        self.change(|state| {
            state.participants.remove(&id);
            for held in state.held.values_mut() {
                if held.working.remove(&id) {
                    held.versions = None;
                }
            }
        });
    }

    /// A participant does nothing for a range any more, and has seen these versions.
    pub(super) fn ended(&self, id: u64, tenure: &Tenure, versions: Option<Versions>) {
        self.change(|state| {
            let held = state.held.get_mut(&tenure.index()).filter(|held| held.tenure.epoch() == tenure.epoch());
            let Some(held) = held.filter(|held| held.working.contains(&id)) else { return };
            held.working.remove(&id);
            held.versions = held.versions.take().zip(versions).map(|(before, versions)| merged(before, versions));
        });
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock());
        self.changed.send_modify(|count| *count += 1);
        changed
    }
}

/// The later version of each resource.
fn merged(mut all: Versions, more: Versions) -> Versions {
    for (resource, version) in more {
        match all.get_mut(&resource) {
            Some(before) if *before >= version => {}
            Some(before) => *before = version,
            None => drop(all.insert(resource, version)),
        }
    }
    all
}
