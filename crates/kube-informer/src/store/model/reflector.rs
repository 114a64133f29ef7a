//! A reflector with faults: its lists break off, its watches end, repeat events or expire.

use super::rng::Rng;
use super::server::Server;
use crate::body::{Obj, Untyped};
use crate::object::Version;
use crate::store::{Delta, History, Relist, WatchScope};

#[derive(Debug)]
pub(super) struct Reflector {
    pub(super) scope: WatchScope,
    phase: Phase,
    /// The last received revision, if any.
    received: Option<u64>,
    history: History,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Listing {
        rest: Vec<Obj<Untyped>>,
        revision: u64,
    },
    Watching,
    /// The scope is currently not watched.
    Left,
}

impl Reflector {
    pub(super) fn new(scope: WatchScope) -> Self {
        Self { scope, phase: Phase::Idle, received: None, history: History::Continues }
    }

    pub(super) fn is_left(&self) -> bool {
        matches!(self.phase, Phase::Left)
    }

    /// Invalidates everything received before.
    pub(super) fn server_went_back(&mut self) {
        if !self.is_left() {
            self.phase = Phase::Idle;
        }
        self.received = None;
        self.history = History::WentBack;
    }

    pub(super) fn step(&mut self, server: &Server, rng: &mut Rng, deltas: &mut Vec<Delta>) {
        match &mut self.phase {
            Phase::Idle => self.begin(server, deltas),
            Phase::Left => {
                if rng.one_in(4) {
                    self.begin(server, deltas);
                }
            }
            Phase::Listing { rest, .. } => {
                let some = rest.len().min(rng.below(5) as usize);
                deltas.extend(rest.drain(..some).map(Delta::Listed));
                match rng.below(12) {
                    // The connection broke: the list restarts.
                    0 => self.begin(server, deltas),
                    1 if self.received.is_some() => {
                        deltas.push(Delta::RelistAbandoned(self.scope.clone()));
                        self.phase = Phase::Watching;
                    }
                    // The list is too large; another one follows.
                    3 => {
                        deltas.push(Delta::RelistDropped(self.scope.clone()));
                        self.phase = Phase::Idle;
                    }
                    // The old watch still runs in parallel with the list.
                    2 if self.received.is_some() => self.watch(server, rng.below(4), deltas),
                    _ => self.end_if_complete(deltas),
                }
            }
            Phase::Watching => {
                self.watch(server, rng.below(6), deltas);
                match rng.below(24) {
                    // The watch has expired.
                    0 | 1 => self.begin(server, deltas),
                    // The watch is resumed from too early a revision.
                    2 | 3 => self.received = self.received.map(|received| received.saturating_sub(rng.below(6)).max(1)),
                    4 => deltas.push(Delta::Resync { except: Vec::new() }),
                    5 | 6 => {
                        let version = Version::from(self.received.unwrap_or_default());
                        deltas.push(Delta::Bookmark { scope: self.scope.clone(), version });
                    }
                    7 if matches!(self.scope, WatchScope::Namespace(_)) => {
                        deltas.push(Delta::ScopeLeft(self.scope.clone()));
                        self.phase = Phase::Left;
                        self.received = None;
                    }
                    _ => {}
                }
            }
        }
    }

    /// Receives everything that is left, without faults.
    pub(super) fn finish(&mut self, server: &Server, deltas: &mut Vec<Delta>) {
        if matches!(self.phase, Phase::Idle) {
            self.begin(server, deltas);
        }
        if let Phase::Listing { rest, .. } = &mut self.phase {
            deltas.extend(rest.drain(..).map(Delta::Listed));
            self.end_if_complete(deltas);
        }
        if matches!(self.phase, Phase::Watching) {
            self.watch(server, u64::MAX, deltas);
        }
    }

    fn begin(&mut self, server: &Server, deltas: &mut Vec<Delta>) {
        let rest = server.objects.values().filter(|object| self.scope.covers(object.key())).cloned().collect();
        self.phase = Phase::Listing { rest, revision: server.revision };
        deltas.push(Delta::RelistBegun(Relist { scope: self.scope.clone(), history: self.history }));
    }

    fn end_if_complete(&mut self, deltas: &mut Vec<Delta>) {
        if let Phase::Listing { rest, revision } = &self.phase
            && rest.is_empty()
        {
            deltas.push(Delta::RelistEnded { scope: self.scope.clone(), version: Version::from(*revision) });
            self.received = self.received.max(Some(*revision));
            self.history = History::Continues;
            self.phase = Phase::Watching;
        }
    }

    fn watch(&mut self, server: &Server, most: u64, deltas: &mut Vec<Delta>) {
        let received = self.received.unwrap_or_default();
        let events = server.log.iter().filter(|(revision, _)| *revision > received);
        for (revision, delta) in events.take(usize::try_from(most).unwrap_or(usize::MAX)) {
            self.received = Some(*revision);
            if delta.key().is_some_and(|key| self.scope.covers(key)) {
                deltas.push(delta.clone());
            }
        }
    }
}
