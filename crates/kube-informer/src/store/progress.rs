//! Last processed resource version per scope.

use super::{History, WatchScope};
use crate::object::ObjectKey;
use crate::object::Version;

/// Completely listed scopes, each with its last processed resource version.
#[derive(Debug, Default)]
pub(super) struct Progress(Vec<(WatchScope, Version)>);

impl Progress {
    pub(super) fn is_complete(&self, scope: &WatchScope) -> bool {
        self.0.iter().any(|(other, _)| other == scope)
    }

    pub(super) fn completed(&mut self, scope: &WatchScope, version: &Version, history: History) {
        match self.0.iter_mut().find(|(other, _)| other == scope) {
            Some((_, known)) => {
                if history == History::WentBack || !is_older(version, known) {
                    *known = version.clone();
                }
            }
            None => self.0.push((scope.clone(), version.clone())),
        }
    }

    pub(super) fn left(&mut self, scope: &WatchScope) {
        self.0.retain(|(other, _)| other != scope);
    }

    pub(super) fn reached(&mut self, scope: &WatchScope, version: &Version) {
        self.advance(version, |other| other == scope);
    }

    pub(super) fn advance_for(&mut self, key: &ObjectKey, version: &Version) {
        self.advance(version, |scope| scope.covers(key));
    }

    fn advance(&mut self, version: &Version, concerns: impl Fn(&WatchScope) -> bool) {
        for (_, known) in self.0.iter_mut().filter(|(scope, _)| concerns(scope)) {
            if version.may_follow(known) {
                *known = version.clone();
            }
        }
    }

    /// The lowest version of all scopes; none without scopes, or if versions cannot be compared.
    pub(super) fn version(&self) -> Option<Version> {
        let mut versions = self.0.iter().map(|(_, version)| version);
        let first = versions.next()?;
        let least = versions.try_fold(first, |least, other| {
            least.partial_cmp(other).map(|order| if order.is_gt() { other } else { least })
        });
        least.cloned()
    }
}

pub(super) fn is_older(version: &Version, than: &Version) -> bool {
    version < than
}
