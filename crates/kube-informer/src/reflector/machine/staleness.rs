//! Detection of stalled watches: a silent watch may be idle or stalled, or the server went back in
//! time.

use std::time::Duration;

use super::super::settings::ReflectorSettings;
use super::super::status::RelistReason;
use super::super::step::{Action, Frame};
use super::watching::Watch;
use super::{Machine, MachinePhase, Step};
use crate::client::WatchStart;
use crate::client::{Failure, Operation, ServerError};
use crate::object::Version;

/// How long nothing has been received, and how long that is tolerated before a probe.
///
/// Reopening a watch does not reset it: a server that went back in time accepts the watch and sends
/// nothing.
#[derive(Debug)]
pub(super) struct Silence {
    pub(super) since: Duration,
    tolerance: Duration,
}

/// The probe of a watch that may be stalled.
#[derive(Debug)]
pub(super) struct StallProbe {
    since: Duration,
    /// The reached version when the probe began: a server with an older version went back in time.
    expected: Version,
    server_version: ServerVersion,
    second: SecondWatch,
}

/// The server's current version.
#[derive(Debug, PartialEq)]
pub(super) enum ServerVersion {
    Requested,
    At(Version),
    Unknown,
}

/// The second watch.
#[derive(Debug)]
enum SecondWatch {
    /// None: the connection is new, only the server's version is verified.
    None,
    Requested {
        timeout: Duration,
    },
    Open {
        at: Duration,
        timeout: Duration,
    },
    /// It has delivered this change, which the main watch has not.
    Delivered {
        at: Duration,
        timeout: Duration,
        frame: Box<Frame>,
    },
}

impl Silence {
    pub(super) fn new(tolerance: Duration) -> Self {
        Self { since: Duration::ZERO, tolerance }
    }

    pub(super) fn reset(&mut self, now: Duration, settings: &ReflectorSettings) {
        self.since = now;
        self.tolerance = settings.quiet_after;
    }
}

impl Machine {
    pub(super) fn watch_due(&self, watch: &Watch) -> Duration {
        let overtime = watch.requested_at + watch.timeout + self.settings.watch_overtime;
        let silent = self.silence.since + self.silence.tolerance;
        let probe = match &watch.probe {
            Some(probe) => probe.due(&self.settings, self.tolerated_delay()),
            None => self.freshness.probe_at().map_or(silent, |at| silent.min(at)),
        };
        overtime.min(probe)
    }

    pub(super) fn watch_tick(&mut self, step: &mut Step<'_>) {
        let MachinePhase::Watching(watch) = &self.phase else { return };
        if step.now >= watch.requested_at + watch.timeout + self.settings.watch_overtime {
            // The server should have ended it long ago: the connection is dead.
            self.counters.stalls += 1;
            self.silent_for_too_long(step.now);
            self.server_may_differ(step.now);
            return self.watch(step);
        }
        match watch.probe {
            None => self.start_probe(step),
            Some(_) => self.probe_due(step),
        }
    }

    /// The watch has probably missed changes.
    fn silent_for_too_long(&mut self, now: Duration) {
        let after = now.saturating_sub(self.silence.since);
        let error = self.error(Operation::Watch, Failure::TimedOut { after });
        self.freshness.failed(&error, now);
    }

    /// Data has arrived on the main stream: it is not stalled.
    pub(super) fn watch_alive(&mut self, step: &mut Step<'_>) {
        self.silence.reset(step.now, &self.settings);
        self.freshness.plan_probe(step.now + self.settings.degraded_after);
        let MachinePhase::Watching(watch) = &mut self.phase else { return };
        if watch.probe.as_ref().is_some_and(|probe| !matches!(probe.second, SecondWatch::None)) {
            watch.probe = None;
            step.act(Action::CloseSecond);
        }
    }

    /// Verifies, after a reconnect, that the server did not go back in time.
    pub(super) fn verify_after_failure(&mut self, step: &mut Step<'_>) {
        self.probe_version(SecondWatch::None, step);
    }

    fn start_probe(&mut self, step: &mut Step<'_>) {
        let Some(version) = self.version.clone() else { return };
        let timeout = self.settings.watch_duration(step.rng.next_fraction());
        self.probe_version(SecondWatch::Requested { timeout }, step);
        self.counters.watches += 1;
        step.act(Action::WatchSecond(self.watch_query(WatchStart::After(version), timeout)));
    }

    fn probe_version(&mut self, second: SecondWatch, step: &mut Step<'_>) {
        let (MachinePhase::Watching(watch), Some(expected)) = (&mut self.phase, self.version.clone()) else { return };
        watch.probe = Some(StallProbe { since: step.now, expected, server_version: ServerVersion::Requested, second });
        self.counters.probes += 1;
        self.request_witness(step);
    }

    pub(super) fn second_opened(&mut self, now: Duration) {
        self.last_contact = Some(now);
        if let Some(probe) = self.probe_mut()
            && let SecondWatch::Requested { timeout } = probe.second
        {
            probe.second = SecondWatch::Open { at: now, timeout };
        }
    }

    pub(super) fn second_frame(&mut self, frame: Frame, step: &mut Step<'_>) {
        // A bookmark proves nothing: the main watch may already have received its own.
        let Frame::Changed(..) = frame else { return };
        if let Some(probe) = self.probe_mut()
            && let SecondWatch::Open { timeout, .. } | SecondWatch::Requested { timeout } = probe.second
        {
            probe.second = SecondWatch::Delivered { at: step.now, timeout, frame: Box::new(frame) };
            step.act(Action::PauseSecond);
            self.silent_for_too_long(step.now);
        }
    }

    pub(super) fn second_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        if self.probe_mut().is_none() {
            return;
        }
        self.report(&error, step);
        self.freshness.failed(&error, step.now);
        if error.is_expired() {
            // If the main watch is stalled, the changes it missed are no longer available.
            self.relist(RelistReason::Expired, error, step);
        } else {
            self.abandon_probe(step);
        }
    }

    pub(super) fn revision_while_watching(&mut self, server_version: ServerVersion, step: &mut Step<'_>) {
        let Some(probe) = self.probe_mut() else { return };
        if matches!(&server_version, ServerVersion::At(revision) if *revision < probe.expected) {
            return self.relist_went_back(step);
        }
        let requested_at = probe.since;
        if let ServerVersion::At(revision) = &server_version {
            self.last_contact = Some(step.now);
            self.freshness.server_at(revision, requested_at, self.version.as_ref());
        }
        let MachinePhase::Watching(watch) = &mut self.phase else { return };
        if let Some(probe) = &mut watch.probe {
            probe.server_version = server_version;
        }
        watch.probe.take_if(|probe| matches!(probe.second, SecondWatch::None));
    }

    /// The server's version could not be obtained.
    pub(super) fn revision_unknown(&mut self, error: &ServerError, step: &mut Step<'_>) {
        self.report(error, step);
        match self.probe_mut().map(|probe| &probe.second) {
            // The next connection is verified instead.
            Some(SecondWatch::None) => self.must_verify_server = true,
            Some(_) => self.freshness.failed(error, step.now),
            None => {}
        }
        self.revision_while_watching(ServerVersion::Unknown, step);
    }

    fn probe_due(&mut self, step: &mut Step<'_>) {
        let (settings, tolerated) = (self.settings, self.tolerated_delay());
        let MachinePhase::Watching(watch) = &mut self.phase else { return };
        let Some(probe) = &watch.probe else { return };
        if step.now < probe.due(&settings, tolerated) {
            return;
        }
        if step.now < probe.due(&settings, settings.answer_timeout) {
            return self.late(Operation::Probe, step.now);
        }
        let Some(probe) = watch.probe.take() else { return };
        match (probe.second, probe.server_version) {
            (SecondWatch::Delivered { timeout, frame, .. }, server_version) => {
                self.counters.stalls += 1;
                step.act(Action::Switch);
                self.phase = MachinePhase::Watching(Watch::new(probe.since, timeout).progressed());
                self.silence.reset(step.now, &settings);
                if let ServerVersion::At(version) = server_version {
                    self.freshness.server_at(&version, probe.since, None);
                }
                self.frame(*frame, step);
            }
            (SecondWatch::Open { .. }, ServerVersion::At(_)) if self.witnesses.is_deletion_due() => {
                // An object is gone, but neither watch has delivered its deletion.
                step.act(Action::CloseSecond);
                self.relist_went_back(step);
            }
            (SecondWatch::Open { at, .. }, ServerVersion::At(_)) => {
                // No changes on either watch: probe less often.
                self.freshness.nothing_missed(at);
                let longest = watch.timeout;
                self.silence.since = step.now;
                self.silence.tolerance = (self.silence.tolerance * 2).min(longest);
                step.act(Action::CloseSecond);
            }
            (SecondWatch::Open { .. }, ServerVersion::Unknown) => self.retry_probe_later(step),
            (SecondWatch::None | SecondWatch::Requested { .. }, _) | (_, ServerVersion::Requested) => {
                let error = self.timed_out(Operation::Probe);
                self.report(&error, step);
                self.freshness.failed(&error, step.now);
                self.must_verify_server |= self.witnesses.unverified_since().is_some();
                self.retry_probe_later(step);
            }
        }
    }

    /// The probe has failed.
    pub(super) fn abandon_probe(&mut self, step: &mut Step<'_>) {
        if let MachinePhase::Watching(watch) = &mut self.phase
            && watch.probe.take().is_some()
        {
            self.retry_probe_later(step);
        }
    }

    /// Schedules the next probe after the same interval, or sooner, while it is not known what was
    /// missed.
    fn retry_probe_later(&mut self, step: &mut Step<'_>) {
        self.silence.since = step.now;
        self.freshness.plan_probe(step.now + self.settings.backoff.cap);
        step.act(Action::CloseSecond);
    }

    fn probe_mut(&mut self) -> Option<&mut StallProbe> {
        match &mut self.phase {
            MachinePhase::Watching(watch) => watch.probe.as_mut(),
            _ => None,
        }
    }
}

impl StallProbe {
    pub(super) fn resumed(&mut self, now: Duration) {
        self.since = now;
        if let SecondWatch::Open { at, .. } | SecondWatch::Delivered { at, .. } = &mut self.second {
            *at = now;
        }
    }

    /// When the probe ends, or is considered late: `tolerated` is how long it may be unanswered.
    fn due(&self, settings: &ReflectorSettings, tolerated: Duration) -> Duration {
        match (&self.second, &self.server_version) {
            (SecondWatch::Delivered { at, .. }, _) => *at + settings.stall_grace,
            (SecondWatch::Open { at, .. }, ServerVersion::At(_) | ServerVersion::Unknown) => {
                *at + settings.probe_window
            }
            (SecondWatch::None, _) => self.since + settings.answer_timeout,
            _ => self.since + tolerated,
        }
    }
}
