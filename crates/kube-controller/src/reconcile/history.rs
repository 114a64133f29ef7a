//! The last attempts of each key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kube_informer::ObjectKey;

use super::Outcome;

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
#[derive(Debug, Default)]
pub(crate) struct History {
    keys: HashMap<ObjectKey, KeyHistory>,
    /// Keys by the number of their last attempt, oldest first; entries that are not the last one of
    /// their key are skipped.
    order: VecDeque<(u64, ObjectKey)>,
    next: u64,
}

#[derive(Debug, Default)]
struct KeyHistory {
    last: u64,
    attempts: VecDeque<Attempt>,
}

impl History {
    /// Attempts that are kept for each key.
    const ATTEMPTS: usize = 8;
    /// Keys that are kept.
    const KEYS: usize = 1024;

    pub(crate) fn record(&mut self, key: &ObjectKey, attempt: Attempt) {
        let number = self.next;
        self.next += 1;
        let kept = self.keys.entry(key.clone()).or_default();
        kept.last = number;
        if kept.attempts.len() == Self::ATTEMPTS {
            kept.attempts.pop_front();
        }
        kept.attempts.push_back(attempt);
        self.order.push_back((number, key.clone()));
        if self.order.len() > 2 * Self::KEYS {
            self.order.retain(|(number, key)| self.keys.get(key).is_some_and(|kept| kept.last == *number));
        }
        while self.keys.len() > Self::KEYS {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.keys.get(&key).is_some_and(|kept| kept.last == number) {
                self.keys.remove(&key);
            }
        }
    }

    pub(crate) fn of(&self, key: &ObjectKey) -> Vec<Attempt> {
        self.keys.get(key).map(|kept| kept.attempts.iter().cloned().collect()).unwrap_or_default()
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
        assert!(history.keys.len() <= History::KEYS && history.order.len() <= 2 * History::KEYS);
        assert!(!history.of(&key(0)).is_empty(), "it is reconciled all the time");
        assert!(!history.of(&key(3 * History::KEYS - 1)).is_empty());
        assert!(history.of(&key(1)).is_empty());
    }
}
