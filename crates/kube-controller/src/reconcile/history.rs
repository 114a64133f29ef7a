//! The last attempts of each key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kube_informer::ObjectKey;

use super::Outcome;
use crate::lru::Lru;

/// An ended attempt to reconcile an object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Attempt {
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// How it ended.
    pub result: AttemptResult,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptResult {
    /// The reconciler returned this.
    Ok(Outcome),
    /// The reconciler returned this error; it is retried.
    Failed(Arc<str>),
    /// The reconciler returned this terminal error; it is not retried.
    Terminal(Arc<str>),
    /// The reconciler panicked with this message; it is retried.
    Panicked(Arc<str>),
    /// The attempt ran into its timeout; it is retried.
    TimedOut,
}

/// The last attempts of the keys that were reconciled last.
#[derive(Debug)]
pub(crate) struct History(Lru<ObjectKey, VecDeque<Attempt>>);

impl History {
    /// Attempts that are kept for each key.
    const ATTEMPTS: usize = 8;
    /// Keys that are kept.
    const KEYS: usize = 1024;

    pub(crate) fn record(&mut self, key: &ObjectKey, attempt: Attempt) {
        let (attempts, _) = self.0.get_or_insert_with(key.clone(), VecDeque::new);
        if attempts.len() == Self::ATTEMPTS {
            attempts.pop_front();
        }
        attempts.push_back(attempt);
    }

    pub(crate) fn of(&self, key: &ObjectKey) -> Vec<Attempt> {
        self.0.peek(key).map(|attempts| attempts.iter().cloned().collect()).unwrap_or_default()
    }
}

impl Default for History {
    fn default() -> Self {
        Self(Lru::new(Self::KEYS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(nth: u64) -> Attempt {
        Attempt { began: SystemTime::UNIX_EPOCH, took: Duration::from_secs(nth), result: AttemptResult::TimedOut }
    }

    fn key(nth: usize) -> ObjectKey {
        ObjectKey::cluster(nth.to_string())
    }

    #[test]
    fn each_key_keeps_its_last_attempts() {
        let mut history = History::default();
        for nth in 0..20 {
            history.record(&key(0), attempt(nth));
        }
        let kept: Vec<u64> = history.of(&key(0)).iter().map(|attempt| attempt.took.as_secs()).collect();
        assert_eq!(kept, (12..20).collect::<Vec<_>>());
        assert!(history.of(&key(1)).is_empty());
    }

    #[test]
    fn the_keys_without_an_attempt_for_longest_are_forgotten() {
        let mut history = History::default();
        for nth in 0..3 * History::KEYS {
            history.record(&key(0), attempt(0));
            history.record(&key(nth), attempt(0));
        }
        assert_eq!(history.0.len(), History::KEYS);
        assert!(!history.of(&key(0)).is_empty(), "it is reconciled all the time");
        assert!(!history.of(&key(3 * History::KEYS - 1)).is_empty());
        assert!(history.of(&key(1)).is_empty());
    }
}
