//! Watches.

use std::time::Duration;

use super::super::status::RelistReason;
use super::super::step::{Action, Frame};
use super::staleness::StallProbe;
use super::{Machine, MachinePhase, NextRequest, Step};
use crate::client::WatchStart;
use crate::client::{Failure, Operation, ServerError};
use crate::codec::Change;
use crate::object::Version;
use crate::store::Delta;

/// A watch that is open or being opened.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) requested_at: Duration,
    pub(super) timeout: Duration,
    /// Whether it has advanced the version.
    progress: Progress,
    /// The probe of this watch, if it has been silent.
    pub(super) probe: Option<StallProbe>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    None,
    Some,
}

/// Consecutive failures that a relist may resolve.
#[derive(Debug, Default)]
pub(super) struct Strikes {
    short: u32,
    /// Whether the last watch was closed at once, though it had delivered something.
    brief: bool,
    open: u32,
    frame: u32,
    /// When the first and the last of a series of internal errors occurred.
    internal: Option<(Duration, Duration)>,
}

impl Watch {
    pub(super) fn new(requested_at: Duration, timeout: Duration) -> Self {
        Self { requested_at, timeout, progress: Progress::None, probe: None }
    }

    /// Nothing was read during a pause: the server may have ended the watch meanwhile, and the end
    /// can still be read.
    pub(super) fn resumed(&mut self, now: Duration) {
        self.requested_at = self.requested_at.max(now.saturating_sub(self.timeout));
        if let Some(probe) = &mut self.probe {
            probe.resumed(now);
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
        if let Some(entering) = self.sharding.entering() {
            return self.list_entering(entering, step);
        }
        self.leave_phase(step);
        let timeout = self.settings.watch_duration(step.rng.next_fraction());
        self.counters.watches += 1;
        step.act(Action::Watch(self.watch_query(WatchStart::After(version), timeout)));
        self.phase = MachinePhase::Opening(Watch::new(step.now, timeout));
    }

    pub(super) fn watch_opened(&mut self, step: &mut Step<'_>) {
        let MachinePhase::Opening(watch) = &self.phase else { return };
        self.freshness.watch_opened(watch.requested_at, step.now, self.settings.short_watch);
        if self.freshness.probe_at().is_none() {
            self.freshness.plan_probe(step.now + self.settings.degraded_after);
        }
        self.phase = MachinePhase::Watching(Watch::new(watch.requested_at, watch.timeout));
        self.strikes.open = 0;
        self.backoff.healthy(step.now);
        self.ask_shard_support(step);
        if std::mem::take(&mut self.must_verify_server) {
            self.verify_after_failure(step);
        }
    }

    pub(super) fn open_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        if error.is_expired() {
            return self.relist(RelistReason::Expired, error, step);
        }
        if error.is_too_large_version() {
            return self.wait(NextRequest::Revision, error, step);
        }
        let next = match error.code() {
            // The version cannot be sent.
            None if matches!(error.failure(), Failure::Request(_)) => NextRequest::List,
            None | Some(401 | 408 | 429) => NextRequest::Watch,
            Some(500..) => {
                self.strikes.open += 1;
                if self.strikes.open < self.settings.relist_after_failures {
                    NextRequest::Watch
                } else {
                    NextRequest::List
                }
            }
            // Where watches are forbidden or not supported, lists may still work.
            Some(_) => NextRequest::List,
        };
        if next == NextRequest::List {
            self.strikes.open = 0;
            self.relist(RelistReason::Refused, error, step);
            return self.freshness.watch_refused();
        }
        self.wait(next, error, step);
    }

    /// A frame of the main stream.
    pub(super) fn frame(&mut self, frame: Frame, step: &mut Step<'_>) {
        if let MachinePhase::Streaming(_) = self.phase {
            return self.streamed(frame, step);
        }
        let MachinePhase::Watching(_) = self.phase else { return };
        match frame {
            Frame::Changed(change, object) => {
                self.counters.changes += 1;
                // A version that the server cannot have sent shows nothing about what was missed.
                if self.version.as_ref().is_none_or(|ours| object.version().has_form_of(ours)) {
                    self.reached(object.version().clone());
                    self.freshness.changed(self.version.as_ref(), step.now);
                }
                self.witnesses.changed(change, &object);
                if self.sharding.is_in_list(change, &object, self.version.as_ref()) {
                    return;
                }
                if change == Change::Deleted {
                    self.deliver(Delta::Deleted(object), step);
                } else {
                    let bytes = object.weight() as u64;
                    self.deliver(Delta::Changed(object), step);
                    self.measure_growth(bytes, step);
                }
            }
            Frame::Outside { version } => {
                self.counters.outside += 1;
                self.sharding.received_outside();
                if self.version.as_ref().is_none_or(|ours| version.has_form_of(ours)) {
                    self.reached(version);
                    self.freshness.changed(self.version.as_ref(), step.now);
                }
            }
            Frame::Bookmark { version, .. } => {
                self.counters.bookmarks += 1;
                // Nor does a bookmark that is older than what was delivered before it.
                if self.version.as_ref().is_none_or(|ours| version.may_follow(ours)) {
                    self.reached(version);
                    self.freshness.bookmark(step.now);
                }
                if let Some(version) = self.version.clone() {
                    self.deliver(Delta::Bookmark { scope: self.scope.clone(), version }, step);
                }
            }
        }
        if self.witnesses.is_deletion_overdue(self.version.as_ref()) {
            self.relist_went_back(step);
        }
    }

    /// Advances the reached version. It never decreases here; only a list of a server that went
    /// back in time does that.
    fn reached(&mut self, version: Version) {
        if self.version.as_ref().is_some_and(|ours| version == *ours || !version.may_follow(ours)) {
            return;
        }
        self.version = Some(version);
        self.strikes.frame = 0;
        if let MachinePhase::Watching(watch) = &mut self.phase {
            watch.progress = Progress::Some;
        }
    }

    /// The main stream has ended regularly.
    pub(super) fn ended(&mut self, step: &mut Step<'_>) {
        match &self.phase {
            MachinePhase::Streaming(_) => self.streaming_ended(step),
            // A response that ends before its page does arrives as a failure.
            MachinePhase::Listing(_) => {}
            MachinePhase::Watching(watch) => {
                let brought_nothing = watch.progress == Progress::None;
                let is_short = self.is_short(watch, step.now);
                let again_at = watch.requested_at + self.settings.short_watch;
                let was_brief = std::mem::replace(&mut self.strikes.brief, is_short);
                if brought_nothing && is_short {
                    self.too_short(step);
                } else if is_short && was_brief {
                    self.watch_later(again_at, step);
                } else {
                    self.watch_again(step);
                }
            }
            MachinePhase::Idle
            | MachinePhase::Probing { .. }
            | MachinePhase::Opening(_)
            | MachinePhase::Waiting { .. } => {}
        }
    }

    fn is_short(&self, watch: &Watch, now: Duration) -> bool {
        now < watch.requested_at + self.settings.short_watch
    }

    fn watch_again(&mut self, step: &mut Step<'_>) {
        self.strikes.short = 0;
        self.watch(step);
    }

    /// Watches are closed at once again and again, though each delivers something: one is opened
    /// per [`short_watch`](super::super::ReflectorSettings::short_watch).
    fn watch_later(&mut self, until: Duration, step: &mut Step<'_>) {
        self.strikes.short = 0;
        let cause = self.error(Operation::Watch, Failure::ShortWatch);
        self.report(&cause, step);
        self.freshness.failed(&cause, step.now);
        self.leave_phase(step);
        step.act(Action::Close);
        self.phase = MachinePhase::Waiting { next: NextRequest::Watch, until, cause };
    }

    fn too_short(&mut self, step: &mut Step<'_>) {
        let error = self.error(Operation::Watch, Failure::ShortWatch);
        self.report(&error, step);
        self.strikes.short += 1;
        if self.strikes.short >= self.settings.relist_after_bad_frames {
            self.strikes.short = 0;
            self.relist(RelistReason::ShortWatches, error, step);
        } else {
            self.wait(NextRequest::Watch, error, step);
        }
    }

    /// The stream broke. If it had lasted, or after a failure-free time, it is reopened
    /// immediately, because changes may be pending: an intermediary may cut connections every
    /// minute.
    pub(super) fn watch_broke(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        self.freshness.failed(&error, step.now);
        if !matches!(error.failure(), Failure::BodyCut(_) | Failure::Transport(_)) {
            return self.frame_strike(error, step);
        }
        let lasted = matches!(&self.phase, MachinePhase::Watching(watch) if !self.is_short(watch, step.now));
        if lasted {
            self.server_may_differ(step.now);
            self.watch_again(step);
        } else if self.backoff.is_at_rest(step.now) {
            self.backoff.failed(step.now, 0.0);
            self.server_may_differ(step.now);
            self.watch(step);
        } else {
            self.wait(NextRequest::Watch, error, step);
        }
    }

    pub(super) fn watch_undecodable(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        self.frame_strike(error, step);
    }

    /// The stream cannot be decoded: retries from the reached version, and finally relists: the
    /// object may have changed since.
    fn frame_strike(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.strikes.frame += 1;
        if self.strikes.frame >= self.settings.relist_after_bad_frames {
            self.strikes.frame = 0;
            self.relist(RelistReason::Undecodable, error, step);
        } else {
            self.wait(NextRequest::Watch, error, step);
        }
    }

    /// The server has sent an error as a watch event.
    pub(super) fn watch_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        if error.is_expired() {
            self.relist(RelistReason::Expired, error, step);
        } else if error.is_too_many_requests() || (error.is_internal() && self.tolerates_internal_error(step.now)) {
            self.wait(NextRequest::Watch, error, step);
        } else {
            self.relist(RelistReason::ServerError, error, step);
        }
    }

    /// Whether another internal error is tolerated without a relist.
    fn tolerates_internal_error(&mut self, now: Duration) -> bool {
        let (tolerance, apart) = (self.settings.internal_error_tolerance, self.settings.internal_errors_apart);
        let first = match self.strikes.internal {
            Some((first, last)) if now.saturating_sub(last) <= apart => first,
            _ => now,
        };
        let tolerated = !tolerance.is_zero() && now.saturating_sub(first) <= tolerance;
        self.strikes.internal = tolerated.then_some((first, now));
        tolerated
    }
}
