//! The informers of the process that are in use, by what they watch.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// What an informer watches. Two informers of the same are two watches and two caches of the same
/// objects, unless they are of different clusters, which clients do not show.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Watched {
    pub(super) api_version: String,
    pub(super) plural: String,
    pub(super) scope: String,
    pub(super) metadata_only: bool,
}

/// How many informers watch the same.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    separate: usize,
    of_factories: usize,
}

static LIVE: Mutex<BTreeMap<Watched, Counts>> = Mutex::new(BTreeMap::new());

/// An informer that is in use, until it is dropped.
#[derive(Debug)]
pub(super) struct LiveInformer {
    watched: Watched,
    is_shared: bool,
}

impl LiveInformer {
    /// Counts an informer; `is_shared` if it is one of a factory. Also returns whether it is one
    /// too many: another one watches the same, and not both are of factories, of which a program
    /// has one per cluster.
    pub(super) fn count(watched: Watched, is_shared: bool) -> (Self, bool) {
        let mut live = LIVE.lock();
        let counts = live.entry(watched.clone()).or_default();
        let is_duplicate = if is_shared { counts.separate > 0 } else { counts.separate + counts.of_factories > 0 };
        *counts.of(is_shared) += 1;
        (Self { watched, is_shared }, is_duplicate)
    }
}

impl Drop for LiveInformer {
    fn drop(&mut self) {
        let mut live = LIVE.lock();
        if let Some(counts) = live.get_mut(&self.watched) {
            *counts.of(self.is_shared) -= 1;
            if counts.separate + counts.of_factories == 0 {
                live.remove(&self.watched);
            }
        }
    }
}

impl Counts {
    fn of(&mut self, is_shared: bool) -> &mut usize {
        if is_shared { &mut self.of_factories } else { &mut self.separate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(scope: &str, is_shared: bool) -> (LiveInformer, bool) {
        let watched = Watched {
            api_version: "v1".to_owned(),
            plural: "live-tests".to_owned(),
            scope: scope.to_owned(),
            metadata_only: false,
        };
        LiveInformer::count(watched, is_shared)
    }

    #[test]
    fn two_separate_informers_of_the_same_are_one_too_many_while_both_are_in_use() {
        let (first, is_duplicate) = count("", false);
        assert!(!is_duplicate);
        assert!(!count("in other", false).1);
        assert!(count("", false).1);
        assert!(count("", true).1);
        drop(first);
        assert!(!count("", false).1);
    }

    #[test]
    fn two_factories_may_have_an_informer_of_the_same() {
        let (_first, is_duplicate) = count("of two factories", true);
        assert!(!is_duplicate);
        assert!(!count("of two factories", true).1);
    }
}
