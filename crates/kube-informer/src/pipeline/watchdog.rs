//! The watchdog of handlers that block the thread of their runtime.
//!
//! On a runtime with one thread, such a handler stops everything else, timers and logs included.
//! So the watchdog has a thread of its own: one for the process, while there are handlers.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::processor::{Mailbox, Progress};

/// How long a handler may block its thread without a warning.
const LIMIT: Duration = Duration::from_secs(10);
/// How often the watchdog looks.
const PERIOD: Duration = Duration::from_secs(5);

static WATCHDOG: Watchdog = Watchdog {
    state: Mutex::new(WatchdogState { handlers: Vec::new(), next_id: 0, is_running: false }),
    handlers_changed: Condvar::new(),
};

struct Watchdog {
    state: Mutex<WatchdogState>,
    handlers_changed: Condvar,
}

struct WatchdogState {
    handlers: Vec<WatchedHandler>,
    next_id: u64,
    is_running: bool,
}

struct WatchedHandler {
    id: u64,
    what: Arc<str>,
    mailbox: Arc<Mailbox>,
    blockage: Blockage,
}

/// Held by the task of a handler, which is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch(u64);

impl Watch {
    /// Watches a handler of the resource `what`.
    pub(crate) fn begin(what: &Arc<str>, mailbox: &Arc<Mailbox>) -> Self {
        let mut state = WATCHDOG.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let blockage = Blockage::new(mailbox.progress(), Instant::now());
        state.handlers.push(WatchedHandler { id, what: Arc::clone(what), mailbox: Arc::clone(mailbox), blockage });
        if !state.is_running {
            let started = thread::Builder::new().name("kube-informer-watchdog".to_owned()).spawn(|| WATCHDOG.run());
            state.is_running = started.is_ok();
        }
        Self(id)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = WATCHDOG.state.lock();
        let ended = state.handlers.iter().position(|handler| handler.id == self.0);
        let ended = ended.map(|nth| state.handlers.swap_remove(nth));
        if state.handlers.is_empty() {
            WATCHDOG.handlers_changed.notify_one();
        }
        drop(state);
        drop(ended);
    }
}

impl Watchdog {
    /// Looks at all handlers again and again, until none is left.
    fn run(&self) {
        let mut state = self.state.lock();
        while !state.handlers.is_empty() {
            self.handlers_changed.wait_for(&mut state, PERIOD);
            let now = Instant::now();
            let mut blocked = Vec::new();
            for handler in &mut state.handlers {
                if let Some(since) = handler.blockage.look(handler.mailbox.progress(), now) {
                    blocked.push((Arc::clone(&handler.what), handler.mailbox.handling(), since));
                }
            }
            // A subscriber of `tracing` is code of the user.
            MutexGuard::unlocked(&mut state, || {
                for (what, key, since) in blocked {
                    let key = key.map(|key| key.to_string()).unwrap_or_default();
                    tracing::warn!(
                        resource = %what, %key, seconds = since.as_secs(),
                        "a handler blocks the thread of its runtime: use spawn_blocking, or an async handler"
                    );
                }
            });
        }
        state.is_running = false;
    }
}

/// Detects that a handler has not returned to its runtime for a long time.
#[derive(Debug)]
struct Blockage {
    progress: Progress,
    since: Instant,
    next_warning: Instant,
}

impl Blockage {
    fn new(progress: Progress, now: Instant) -> Self {
        Self { progress, since: now, next_warning: now + LIMIT }
    }

    /// For how long the handler has blocked its thread, at least, if it is time for a warning.
    fn look(&mut self, progress: Progress, now: Instant) -> Option<Duration> {
        if !progress.is_polled() || progress != self.progress {
            *self = Self::new(progress, now);
            return None;
        }
        if now < self.next_warning {
            return None;
        }
        let since = now - self.since;
        // Each warning comes after twice the time of the one before.
        self.next_warning = now + since;
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);
    const NONE: [u64; 0] = [];

    fn warnings(looks: impl IntoIterator<Item = (u32, Progress)>) -> Vec<u64> {
        let begun = Instant::now();
        let mut blockage = Blockage::new(Progress::default(), begun);
        let looks = looks.into_iter();
        looks.filter_map(|(at, progress)| Some(blockage.look(progress, begun + at * S)?.as_secs())).collect()
    }

    fn polled(polls: u64, taken: u64) -> Progress {
        Progress { polls, taken }
    }

    #[test]
    fn a_handler_that_blocks_is_named_after_the_limit_and_then_ever_less_often() {
        assert_eq!(warnings((1..20).map(|nth| (nth * 5, polled(1, 1)))), [10, 20, 40, 80]);
    }

    #[test]
    fn a_handler_that_waits_without_blocking_is_not_named() {
        assert_eq!(warnings((1..20).map(|nth| (nth * 5, polled(2, 1)))), NONE);
    }

    #[test]
    fn a_handler_that_is_always_busy_with_another_event_is_not_named() {
        assert_eq!(warnings((1..20).map(|nth| (nth * 5, polled(1, nth.into())))), NONE);
        assert_eq!(warnings((1..20).map(|nth| (nth * 5, polled(1 + 2 * u64::from(nth), 1)))), NONE);
    }
}
