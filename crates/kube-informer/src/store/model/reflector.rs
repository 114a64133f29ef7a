//! A reflector with bad luck: its lists break off, its watches end, repeat themselves or have expired.

use super::rng::Rng;
use super::server::Server;
use crate::body::{Obj, Untyped};
use crate::object::Version;
use crate::store::{Delta, History, Relist, WatchScope};

#[derive(Debug)]
pub(super) struct Reflector {
    pub(super) scope: WatchScope,
    doing: Doing,
    /// Everything up to this revision has been heard, if anything has.
    heard: Option<u64>,
    history: History,
}

#[derive(Debug)]
enum Doing {
    Nothing,
    Listing {
        rest: Vec<Obj<Untyped>>,
        revision: u64,
    },
    Watching,
    /// The scope is not wanted at the moment.
    Left,
}

impl Reflector {
    pub(super) fn new(scope: WatchScope) -> Self {
        Self { scope, doing: Doing::Nothing, heard: None, history: History::Continues }
    }

    pub(super) fn is_left(&self) -> bool {
        matches!(self.doing, Doing::Left)
    }

    /// What was heard before means nothing any more.
    pub(super) fn server_went_back(&mut self) {
        if !self.is_left() {
            self.doing = Doing::Nothing;
        }
        self.heard = None;
        self.history = History::WentBack;
    }

    pub(super) fn step(&mut self, server: &Server, rng: &mut Rng, deltas: &mut Vec<Delta>) {
        match &mut self.doing {
            Doing::Nothing => self.begin(server, deltas),
            Doing::Left => {
                if rng.one_in(4) {
                    self.begin(server, deltas);
                }
            }
            Doing::Listing { rest, .. } => {
                let some = rest.len().min(rng.below(5) as usize);
                deltas.extend(rest.drain(..some).map(Delta::Listed));
                match rng.below(12) {
                    // The connection broke: once more.
                    0 => self.begin(server, deltas),
                    1 if self.heard.is_some() => {
                        deltas.push(Delta::RelistAbandoned(self.scope.clone()));
                        self.doing = Doing::Watching;
                    }
                    // The old watch is still there beside the list.
                    2 if self.heard.is_some() => self.watch(server, rng.below(4), deltas),
                    _ => self.end_if_complete(deltas),
                }
            }
            Doing::Watching => {
                self.watch(server, rng.below(6), deltas);
                match rng.below(24) {
                    // Expired.
                    0 | 1 => self.begin(server, deltas),
                    // Taken up again from too early.
                    2 | 3 => self.heard = self.heard.map(|heard| heard.saturating_sub(rng.below(6)).max(1)),
                    4 => deltas.push(Delta::Resync { except: Vec::new() }),
                    5 | 6 => {
                        let version = Version::from(self.heard.unwrap_or_default());
                        deltas.push(Delta::Bookmark { scope: self.scope.clone(), version });
                    }
                    7 if matches!(self.scope, WatchScope::Namespace(_)) => {
                        deltas.push(Delta::ScopeLeft(self.scope.clone()));
                        self.doing = Doing::Left;
                        self.heard = None;
                    }
                    _ => {}
                }
            }
        }
    }

    /// No more bad luck: hears everything there is.
    pub(super) fn finish(&mut self, server: &Server, deltas: &mut Vec<Delta>) {
        if matches!(self.doing, Doing::Nothing) {
            self.begin(server, deltas);
        }
        if let Doing::Listing { rest, .. } = &mut self.doing {
            deltas.extend(rest.drain(..).map(Delta::Listed));
            self.end_if_complete(deltas);
        }
        if matches!(self.doing, Doing::Watching) {
            self.watch(server, u64::MAX, deltas);
        }
    }

    fn begin(&mut self, server: &Server, deltas: &mut Vec<Delta>) {
        let rest = server.objects.values().filter(|object| self.scope.covers(object.key())).cloned().collect();
        self.doing = Doing::Listing { rest, revision: server.revision };
        deltas.push(Delta::RelistBegun(Relist { scope: self.scope.clone(), history: self.history }));
    }

    fn end_if_complete(&mut self, deltas: &mut Vec<Delta>) {
        if let Doing::Listing { rest, revision } = &self.doing
            && rest.is_empty()
        {
            deltas.push(Delta::RelistEnded { scope: self.scope.clone(), version: Version::from(*revision) });
            self.heard = self.heard.max(Some(*revision));
            self.history = History::Continues;
            self.doing = Doing::Watching;
        }
    }

    fn watch(&mut self, server: &Server, most: u64, deltas: &mut Vec<Delta>) {
        let heard = self.heard.unwrap_or_default();
        let news = server.log.iter().filter(|(revision, _)| *revision > heard);
        for (revision, delta) in news.take(usize::try_from(most).unwrap_or(usize::MAX)) {
            self.heard = Some(*revision);
            if delta.key().is_some_and(|key| self.scope.covers(key)) {
                deltas.push(delta.clone());
            }
        }
    }
}
