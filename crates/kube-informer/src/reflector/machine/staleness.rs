//! A watch that says nothing: is nothing happening, is it stalled, or did the server go back?

use std::time::Duration;

use super::super::settings::ReflectorSettings;
use super::super::status::RelistReason;
use super::super::step::{Action, Frame};
use super::watching::Watch;
use super::{Machine, Phase, Step, revision_query};
use crate::client::{Doing, ServerError};
use crate::client::{WatchQuery, WatchStart};
use crate::object::Version;

/// How long nothing has come, and how long that is borne.
///
/// Opening a watch anew is no news: a server that went back opens it gladly and says nothing.
#[derive(Debug)]
pub(super) struct Quiet {
    pub(super) since: Duration,
    patience: Duration,
}

/// What is being found out about a watch.
#[derive(Debug)]
pub(super) struct Doubt {
    since: Duration,
    /// Our version when the question was asked: a server that has lost it went back.
    ours: Version,
    revised: Revised,
    beside: Beside,
}

/// The server's present version.
#[derive(Debug, PartialEq)]
pub(super) enum Revised {
    Asked,
    At(Version),
    Unknown,
}

/// The second watch.
#[derive(Debug)]
enum Beside {
    /// None: the connection is new, only the server's version is in doubt.
    None,
    Asked {
        timeout: Duration,
    },
    Open {
        at: Duration,
        timeout: Duration,
    },
    /// It has brought this, which the first watch has not.
    Brought {
        at: Duration,
        timeout: Duration,
        frame: Box<Frame>,
    },
}

impl Quiet {
    pub(super) fn new(patience: Duration) -> Self {
        Self { since: Duration::ZERO, patience }
    }

    pub(super) fn heard(&mut self, now: Duration, settings: &ReflectorSettings) {
        self.since = now;
        self.patience = settings.quiet_after;
    }
}

impl Machine {
    pub(super) fn watch_due(&self, watch: &Watch) -> Duration {
        let overtime = watch.asked + watch.timeout + self.settings.watch_overtime;
        let doubt = match &watch.doubt {
            None => self.quiet.since + self.quiet.patience,
            Some(doubt) => doubt.due(&self.settings),
        };
        overtime.min(doubt)
    }

    pub(super) fn watch_tick(&mut self, step: &mut Step<'_>) {
        let Phase::Watching(watch) = &self.phase else { return };
        if step.now >= watch.asked + watch.timeout + self.settings.watch_overtime {
            // The server was to end it long ago: nobody is there any more.
            self.counters.stalls += 1;
            return self.watch(step);
        }
        match watch.doubt {
            None => self.doubt(step),
            Some(_) => self.doubt_due(step),
        }
    }

    /// Something came on the main stream: it lives.
    pub(super) fn heard_watching(&mut self, step: &mut Step<'_>) {
        self.quiet.heard(step.now, &self.settings);
        let Phase::Watching(watch) = &mut self.phase else { return };
        if watch.doubt.as_ref().is_some_and(|doubt| !matches!(doubt.beside, Beside::None)) {
            watch.doubt = None;
            step.act(Action::CloseBeside);
        }
    }

    /// A connection was made after a failure: is it still the server that we know?
    pub(super) fn ask_after_failure(&mut self, step: &mut Step<'_>) {
        self.ask(Beside::None, step);
    }

    fn doubt(&mut self, step: &mut Step<'_>) {
        let Some(version) = self.version.clone() else { return };
        let timeout = self.settings.watch_lasts(step.rng.roll());
        self.ask(Beside::Asked { timeout }, step);
        self.counters.watches += 1;
        step.act(Action::WatchBeside(WatchQuery::new(WatchStart::After(version), timeout)));
    }

    fn ask(&mut self, beside: Beside, step: &mut Step<'_>) {
        let (Phase::Watching(watch), Some(ours)) = (&mut self.phase, self.version.clone()) else { return };
        watch.doubt = Some(Doubt { since: step.now, ours, revised: Revised::Asked, beside });
        self.counters.probes += 1;
        step.act(Action::AskRevision(revision_query()));
    }

    pub(super) fn opened_beside(&mut self, now: Duration) {
        self.last_contact = Some(now);
        if let Some(doubt) = self.doubt_mut()
            && let Beside::Asked { timeout } = doubt.beside
        {
            doubt.beside = Beside::Open { at: now, timeout };
        }
    }

    pub(super) fn frame_beside(&mut self, frame: Frame, step: &mut Step<'_>) {
        // A bookmark is no proof: the first watch may have had its own already.
        let Frame::Changed(..) = frame else { return };
        if let Some(doubt) = self.doubt_mut()
            && let Beside::Open { timeout, .. } | Beside::Asked { timeout } = doubt.beside
        {
            doubt.beside = Beside::Brought { at: step.now, timeout, frame: Box::new(frame) };
            step.act(Action::HoldBeside);
        }
    }

    pub(super) fn failed_beside(&mut self, error: ServerError, step: &mut Step<'_>) {
        if self.doubt_mut().is_none() {
            return;
        }
        self.report(&error, step);
        if error.is_expired() {
            // If the first watch is stalled, what it missed can no longer be had.
            self.relist(RelistReason::Expired, error, step);
        } else {
            self.give_up_doubt(step);
        }
    }

    pub(super) fn revised_watching(&mut self, revised: Revised, step: &mut Step<'_>) {
        let Some(doubt) = self.doubt_mut() else { return };
        if matches!(&revised, Revised::At(revision) if *revision < doubt.ours) {
            return self.relist_went_back(step);
        }
        if !matches!(revised, Revised::Unknown) {
            self.last_contact = Some(step.now);
        }
        let Phase::Watching(watch) = &mut self.phase else { return };
        if let Some(doubt) = &mut watch.doubt {
            doubt.revised = revised;
        }
        watch.doubt.take_if(|doubt| matches!(doubt.beside, Beside::None));
    }

    fn doubt_due(&mut self, step: &mut Step<'_>) {
        let settings = self.settings;
        let Phase::Watching(watch) = &mut self.phase else { return };
        let Some(doubt) = watch.doubt.take_if(|doubt| doubt.due(&settings) <= step.now) else { return };
        match (doubt.beside, doubt.revised) {
            (Beside::Brought { timeout, frame, .. }, _) => {
                self.counters.stalls += 1;
                step.act(Action::Switch);
                self.phase = Phase::Watching(Watch::new(doubt.since, timeout).progressed());
                self.quiet.heard(step.now, &settings);
                self.frame(*frame, step);
            }
            (Beside::Open { .. }, Revised::At(_)) => {
                // Nothing to be heard anywhere. Ask less often.
                let longest = watch.timeout;
                self.quiet.since = step.now;
                self.quiet.patience = (self.quiet.patience * 2).min(longest);
                step.act(Action::CloseBeside);
            }
            (Beside::Open { .. }, Revised::Unknown) => self.doubt_remains(step),
            (Beside::None | Beside::Asked { .. }, _) | (_, Revised::Asked) => {
                let error = self.no_answer(Doing::Probe);
                self.report(&error, step);
                self.doubt_remains(step);
            }
        }
    }

    /// Nothing could be found out.
    pub(super) fn give_up_doubt(&mut self, step: &mut Step<'_>) {
        if let Phase::Watching(watch) = &mut self.phase
            && watch.doubt.take().is_some()
        {
            self.doubt_remains(step);
        }
    }

    /// Asks again, no later than this time.
    fn doubt_remains(&mut self, step: &mut Step<'_>) {
        self.quiet.since = step.now;
        step.act(Action::CloseBeside);
    }

    fn doubt_mut(&mut self) -> Option<&mut Doubt> {
        match &mut self.phase {
            Phase::Watching(watch) => watch.doubt.as_mut(),
            _ => None,
        }
    }
}

impl Doubt {
    pub(super) fn resumed(&mut self, now: Duration) {
        self.since = now;
        if let Beside::Open { at, .. } | Beside::Brought { at, .. } = &mut self.beside {
            *at = now;
        }
    }

    fn due(&self, settings: &ReflectorSettings) -> Duration {
        match (&self.beside, &self.revised) {
            (Beside::Brought { at, .. }, _) => *at + settings.stall_grace,
            (Beside::Open { at, .. }, Revised::At(_) | Revised::Unknown) => *at + settings.probe_window,
            _ => self.since + settings.answer_timeout,
        }
    }
}
