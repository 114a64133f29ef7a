//! Watches.

use std::time::Duration;

use super::super::status::RelistReason;
use super::super::step::{Action, Frame};
use super::staleness::Doubt;
use super::{Machine, Next, Phase, Step};
use crate::client::{Doing, Failure, ServerError};
use crate::client::{WatchQuery, WatchStart};
use crate::codec::{Broken, Change};
use crate::object::Version;
use crate::store::Delta;

/// A watch, open or being opened.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) asked: Duration,
    pub(super) timeout: Duration,
    /// Whether it has brought anything new.
    progress: Progress,
    /// What is being found out about it, if it has been silent.
    pub(super) doubt: Option<Doubt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    None,
    Some,
}

/// Failures in a row that a new list may help with.
#[derive(Debug, Default)]
pub(super) struct Strikes {
    short: u32,
    open: u32,
    frame: u32,
    /// The first and the last of a row of internal errors.
    internal: Option<(Duration, Duration)>,
}

impl Watch {
    pub(super) fn new(asked: Duration, timeout: Duration) -> Self {
        Self { asked, timeout, progress: Progress::None, doubt: None }
    }

    /// Nothing was read for a while: the server may have ended it long ago, and that is still to be read.
    pub(super) fn resumed(&mut self, now: Duration) {
        self.asked = self.asked.max(now.saturating_sub(self.timeout));
        if let Some(doubt) = &mut self.doubt {
            doubt.resumed(now);
        }
    }

    pub(super) fn progressed(mut self) -> Self {
        self.progress = Progress::Some;
        self
    }
}

impl Machine {
    pub(super) fn watch(&mut self, step: &mut Step<'_>) {
        let Some(version) = self.version.clone() else { return self.list(step) };
        self.leave_phase(step);
        let timeout = self.settings.watch_lasts(step.rng.roll());
        self.counters.watches += 1;
        step.act(Action::Watch(WatchQuery::new(WatchStart::After(version), timeout)));
        self.phase = Phase::Opening(Watch::new(step.now, timeout));
    }

    pub(super) fn watch_opened(&mut self, step: &mut Step<'_>) {
        let Phase::Opening(watch) = &self.phase else { return };
        self.phase = Phase::Watching(Watch::new(watch.asked, watch.timeout));
        self.strikes.open = 0;
        self.backoff.healthy(step.now);
        if std::mem::take(&mut self.doubted) {
            self.ask_after_failure(step);
        }
    }

    pub(super) fn open_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        if error.is_expired() {
            return self.relist(RelistReason::Expired, error, step);
        }
        if error.is_too_large_version() {
            return self.wait(Next::Ask, error, step);
        }
        let next = match error.code() {
            None | Some(401 | 408 | 429) => Next::Watch,
            Some(500..) => {
                self.strikes.open += 1;
                if self.strikes.open < self.settings.relist_after_failures { Next::Watch } else { Next::List }
            }
            // Where watching is not allowed, or not possible, listing may be.
            Some(_) => Next::List,
        };
        if next == Next::List {
            self.strikes.open = 0;
            return self.relist(RelistReason::Refused, error, step);
        }
        self.wait(next, error, step);
    }

    /// A frame of the main stream.
    pub(super) fn frame(&mut self, frame: Frame, step: &mut Step<'_>) {
        if let Phase::Streaming(_) = self.phase {
            return self.streamed(frame, step);
        }
        let Phase::Watching(_) = self.phase else { return };
        match frame {
            Frame::Changed(change, object) => {
                self.counters.changes += 1;
                self.reached(object.version().clone());
                let delta = match change {
                    Change::Added | Change::Modified => Delta::Changed(object),
                    Change::Deleted => Delta::Deleted(object),
                };
                self.deliver(delta, step);
            }
            Frame::Bookmark { version, .. } => {
                self.counters.bookmarks += 1;
                self.reached(version);
                if let Some(version) = self.version.clone() {
                    self.deliver(Delta::Bookmark { scope: self.scope.clone(), version }, step);
                }
            }
        }
    }

    /// Notes how far we have come. Never goes back: only a list of a server that did may.
    fn reached(&mut self, version: Version) {
        if version.is_empty() || self.version.as_ref().is_some_and(|ours| version <= *ours) {
            return;
        }
        self.version = Some(version);
        self.strikes.frame = 0;
        if let Phase::Watching(watch) = &mut self.phase {
            watch.progress = Progress::Some;
        }
    }

    /// The main stream has ended as it should.
    pub(super) fn ended(&mut self, step: &mut Step<'_>) {
        match &self.phase {
            Phase::Streaming(_) => self.streaming_ended(step),
            // An answer that ends before its page does is told as broken.
            Phase::Listing(_) => {}
            Phase::Watching(watch) => {
                let brought_nothing = watch.progress == Progress::None;
                if brought_nothing && self.is_short(watch, step.now) {
                    self.too_short(step);
                } else {
                    self.watch_again(step);
                }
            }
            Phase::Idle | Phase::Asking { .. } | Phase::Opening(_) | Phase::Waiting { .. } => {}
        }
    }

    fn is_short(&self, watch: &Watch, now: Duration) -> bool {
        now < watch.asked + self.settings.short_watch
    }

    fn watch_again(&mut self, step: &mut Step<'_>) {
        self.strikes.short = 0;
        self.watch(step);
    }

    fn too_short(&mut self, step: &mut Step<'_>) {
        let error = self.error(Doing::Watch, Failure::ShortWatch);
        self.report(&error, step);
        self.strikes.short += 1;
        if self.strikes.short >= self.settings.relist_after_strikes {
            self.strikes.short = 0;
            self.relist(RelistReason::ShortWatches, error, step);
        } else {
            self.wait(Next::Watch, error, step);
        }
    }

    /// The stream broke. If it had lasted, or after a healthy time, it is opened again at once, for changes wait behind it:
    /// something on the way may cut connections every minute.
    pub(super) fn watch_broke(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        if !matches!(error.failure(), Failure::BodyCut(_) | Failure::Transport(_)) {
            return self.frame_strike(error, step);
        }
        let lasted = matches!(&self.phase, Phase::Watching(watch) if !self.is_short(watch, step.now));
        if lasted {
            self.doubted = true;
            self.watch_again(step);
        } else if self.backoff.is_at_rest(step.now) {
            self.backoff.failed(step.now, 0.0);
            self.doubted = true;
            self.watch(step);
        } else {
            self.wait(Next::Watch, error, step);
        }
    }

    pub(super) fn bad_frame(&mut self, broken: Broken, step: &mut Step<'_>) {
        self.counters.decode_errors += 1;
        match &self.phase {
            Phase::Streaming(_) => self.streaming_bad_frame(broken, step),
            Phase::Watching(_) => {
                let error = self.error(Doing::Watch, Failure::Undecodable(broken));
                self.report(&error, step);
                self.frame_strike(error, step);
            }
            _ => {}
        }
    }

    /// What comes cannot be read: once more from where we are, and in the end without what stands in the way.
    fn frame_strike(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.strikes.frame += 1;
        if self.strikes.frame >= self.settings.relist_after_strikes {
            self.strikes.frame = 0;
            self.relist(RelistReason::Undecodable, error, step);
        } else {
            self.wait(Next::Watch, error, step);
        }
    }

    /// The server has sent a failure in the watch.
    pub(super) fn watch_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        if error.is_expired() {
            self.relist(RelistReason::Expired, error, step);
        } else if error.is_too_many_requests() || (error.is_internal() && self.bears_internal_error(step.now)) {
            self.wait(Next::Watch, error, step);
        } else {
            self.relist(RelistReason::ServerError, error, step);
        }
    }

    /// Whether another internal error is borne without a list.
    fn bears_internal_error(&mut self, now: Duration) -> bool {
        let (patience, apart) = (self.settings.internal_error_patience, self.settings.internal_errors_apart);
        let first = match self.strikes.internal {
            Some((first, last)) if now.saturating_sub(last) <= apart => first,
            _ => now,
        };
        let bears = !patience.is_zero() && now.saturating_sub(first) <= patience;
        self.strikes.internal = bears.then_some((first, now));
        bears
    }
}
