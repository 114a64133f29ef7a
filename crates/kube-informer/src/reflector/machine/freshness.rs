//! What is known about how current the store is: when it was last caught up with the server, and
//! which failure may have made it miss something since.

use std::time::Duration;

use crate::client::ServerError;
use crate::object::Version;

/// What is known about how current the store is.
///
/// A watch that is opened begins with the changes that were missed meanwhile. While it replays
/// them, a frame shows that the server answers, but not that the store is caught up.
#[derive(Debug, Default)]
pub(super) struct Freshness {
    /// When the store was last known to have everything that the server had.
    caught_up: Option<Duration>,
    /// Whether the main watch delivers changes as they happen.
    is_live: bool,
    /// The server's version after the watch was opened: a watch that reaches it is live.
    target: Option<Version>,
    doubt: Option<Doubt>,
}

/// A failure after which it is not known what was missed.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The last failure.
    pub(super) cause: ServerError,
    /// When the first one occurred.
    pub(super) since: Duration,
    /// The server refuses to open watches: a list does not end the doubt.
    needs_watch: bool,
    /// When to probe an open watch, if it delivers nothing until then.
    probe_at: Option<Duration>,
}

impl Freshness {
    pub(super) fn caught_up(&self) -> Option<Duration> {
        self.caught_up
    }

    pub(super) fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }

    /// When to probe the watch because of a doubt.
    pub(super) fn probe_at(&self) -> Option<Duration> {
        self.doubt.as_ref().and_then(|doubt| doubt.probe_at)
    }

    /// Plans the next probe, if there is a doubt.
    pub(super) fn plan_probe(&mut self, at: Duration) {
        if let Some(doubt) = &mut self.doubt {
            doubt.probe_at = Some(at);
        }
    }

    /// Something failed: changes may have been missed from now on.
    pub(super) fn failed(&mut self, cause: &ServerError, now: Duration) {
        self.interrupted();
        match &mut self.doubt {
            Some(doubt) => doubt.cause = cause.clone(),
            None => {
                self.doubt = Some(Doubt { cause: cause.clone(), since: now, needs_watch: false, probe_at: None });
            }
        }
    }

    /// The failure was that the server refuses to open a watch.
    pub(super) fn watch_refused(&mut self) {
        if let Some(doubt) = &mut self.doubt {
            doubt.needs_watch = true;
        }
    }

    /// Frames that follow may be old.
    pub(super) fn interrupted(&mut self) {
        self.is_live = false;
        self.target = None;
    }

    /// Nothing was read while the sink was full, so what is read now may be old.
    pub(super) fn resumed(&mut self, now: Duration, tolerance: Duration) {
        if self.caught_up.is_none_or(|at| now > at + tolerance) {
            self.interrupted();
        }
    }

    /// A list is complete, and `is_watch` if its response continues as the watch. It contains what
    /// the server had when it was requested; later changes are still to come.
    pub(super) fn listed(&mut self, requested_at: Duration, now: Duration, tolerance: Duration, is_watch: bool) {
        self.caught_up = Some(requested_at);
        self.is_live = now <= requested_at + tolerance;
        self.target = None;
        self.doubt.take_if(|doubt| is_watch || !doubt.needs_watch);
    }

    /// A watch is open. After a short gap without a failure, what it replays is negligible.
    pub(super) fn watch_opened(&mut self, requested_at: Duration, now: Duration, tolerance: Duration) {
        self.is_live &= now <= requested_at + tolerance;
        // The list that preceded this watch is complete.
        self.doubt.take_if(|doubt| doubt.needs_watch);
    }

    /// The main watch has delivered a change, and the store reaches this version with it.
    pub(super) fn changed(&mut self, reached: Option<&Version>, now: Duration) {
        self.doubt = None;
        self.is_live |= self.target.as_ref().is_some_and(|target| reached.is_some_and(|reached| target <= reached));
        if self.is_live {
            self.target = None;
            self.caught_up = Some(now);
        }
    }

    /// The main watch has delivered a bookmark: servers send it after everything before it.
    pub(super) fn bookmark(&mut self, now: Duration) {
        self.nothing_missed(now);
    }

    /// The server's version, requested at that time, while the store had reached `reached`.
    pub(super) fn server_at(&mut self, version: &Version, requested_at: Duration, reached: Option<&Version>) {
        if reached.is_some_and(|reached| version <= reached) {
            self.nothing_missed(requested_at);
        } else if !self.is_live {
            self.target = Some(version.clone());
        }
    }

    /// At that time the store had everything that the server had.
    pub(super) fn nothing_missed(&mut self, at: Duration) {
        self.caught_up = self.caught_up.max(Some(at));
        self.is_live = true;
        self.target = None;
        self.doubt = None;
    }
}
