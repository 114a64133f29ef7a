//! The reflector's mind: what to do next, given what happened. No clock, no chance, no I/O: all three are handed in.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::absence::Absence;
use self::listing::{Paged, Streamed, Support};
use self::staleness::{Quiet, Revised};
use self::watching::{Strikes, Watch};
use super::backoff::Backoff;
use super::rng::Rng;
use super::settings::{ReflectorSettings, Streaming};
use super::status::{Counters, ReflectorState, ReflectorStatus, RelistReason, Synced};
use super::step::{Action, Input, Lane};
use crate::client::{Doing, Failure, ServerError};
use crate::client::{ListQuery, ListVersion};
use crate::object::Version;
use crate::store::{Delta, History, Relist, WatchScope};

mod absence;
mod listing;
mod staleness;
#[cfg(test)]
mod tests;
mod watching;

/// The state machine. Times are counted from the reflector's start.
///
/// ```text
///          ┌──────────────── too large, or silent ◀── Asking ──┐ (did the server go back?)
///          ▼                                                   │
///  Idle ─▶ Streaming ──end mark──────────────┐                 │
///          │  ▲                              ▼                 │
///          │  └──── Waiting ◀──failure── Watching ──closed──▶ Opening
///          ▼          ▲  ▲                   ▲                 │
///          Listing ───┘  └───────────────────┼─────────────────┘
///             └────────────complete──────────┴─────▶ Opening
/// ```
///
/// A list is streamed where the server can do that, otherwise asked for in pages. Every failure leads through `Waiting`, whose
/// waits grow until all has been well for a while, except where another way is open at once: LIST for a failed streaming list,
/// the newest version for one that is not to be had, a new watch for one that broke after a healthy time.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: ReflectorSettings,
    scope: WatchScope,
    what: Arc<str>,
    phase: Phase,
    /// The version reached.
    version: Option<Version>,
    synced: Synced,
    /// How the next list stands to what has been told so far.
    history: History,
    /// Whether the next list can ask for at least our version.
    from: From,
    support: Support,
    /// A list of any version came in pages: there is no cache behind this server, and it wants to be asked for pages.
    pages_of_any: bool,
    /// How many streaming lists in a row ended before they were complete.
    early_ends: u32,
    /// Whether a list has been begun downstream and not ended.
    relist: Told,
    /// The newest version of an object in the list that is on its way.
    listed: Option<Version>,
    /// The newest version of an object in lists that were broken off since the last complete one. Downstream knows it, so a
    /// server that does not have it went back.
    abandoned: Option<Version>,
    backoff: Backoff,
    quiet: Quiet,
    /// Something failed since the server was last known to be the one we know.
    doubted: bool,
    strikes: Strikes,
    absence: Absence,
    counters: Counters,
    last_contact: Option<Duration>,
}

#[derive(Debug)]
enum Phase {
    Idle,
    Streaming(Streamed),
    Listing(Paged),
    /// The server has not reached our version: which one has it?
    Asking {
        since: Duration,
    },
    Opening(Watch),
    Watching(Watch),
    Waiting {
        next: Next,
        until: Duration,
        cause: ServerError,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    List,
    Watch,
    Ask,
}

/// Where lists begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// At least at our version.
    OurVersion,
    /// Our version is not to be had: at the newest.
    Latest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Begun,
}

/// When a step happens, what chance says, and where actions go.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) now: Duration,
    pub(crate) rng: &'a mut Rng,
    pub(crate) actions: &'a mut Vec<Action>,
}

impl Step<'_> {
    fn act(&mut self, action: Action) {
        self.actions.push(action);
    }
}

impl Machine {
    pub(crate) fn new(what: Arc<str>, scope: WatchScope, settings: ReflectorSettings) -> Self {
        Self {
            settings,
            scope,
            what,
            phase: Phase::Idle,
            version: None,
            synced: Synced::No,
            history: History::Continues,
            from: From::OurVersion,
            support: match settings.streaming {
                Streaming::Preferred => Support::Assumed,
                Streaming::Never => Support::Refused,
            },
            pages_of_any: false,
            early_ends: 0,
            relist: Told::Nothing,
            listed: None,
            abandoned: None,
            backoff: Backoff::new(settings.backoff),
            quiet: Quiet::new(settings.quiet_after),
            doubted: false,
            strikes: Strikes::default(),
            absence: Absence::default(),
            counters: Counters::default(),
            last_contact: None,
        }
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, input: Input, step: &mut Step<'_>) {
        match input {
            Input::Start => self.list(step),
            Input::Tick => self.tick(step),
            Input::Sighted(sight) => self.sighted(sight, step),
            Input::Resumed => self.resumed(step.now),
            Input::Revision(answer) => self.revised(answer, step),
            Input::Opened(Lane::Main) => self.opened(step),
            Input::Bytes(Lane::Main) => self.contact(step),
            Input::Opened(Lane::Beside) => self.opened_beside(step.now),
            Input::Bytes(Lane::Beside) => self.last_contact = Some(step.now),
            Input::Item(object) => self.item(object, step),
            Input::PageEnded(end) => self.page_ended(&end, step),
            Input::Frame(Lane::Main, frame) => self.frame(frame, step),
            Input::Frame(Lane::Beside, frame) => self.frame_beside(frame, step),
            Input::BadObject(Lane::Main) => self.bad_object(step),
            Input::BadFrame(Lane::Main, broken) => self.bad_frame(broken, step),
            Input::FailureFrame(Lane::Main, error) => self.failure_frame(error, step),
            Input::Ended(Lane::Main) => self.ended(step),
            Input::Failed(Lane::Main, error) => self.failed(error, step),
            Input::FailureFrame(Lane::Beside, error) | Input::Failed(Lane::Beside, error) => {
                self.failed_beside(error, step);
            }
            Input::Ended(Lane::Beside) | Input::BadObject(Lane::Beside) | Input::BadFrame(Lane::Beside, _) => {
                self.give_up_doubt(step);
            }
        }
    }

    /// When the next [`Input::Tick`] is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Streaming(Streamed { arriving, .. }) | Phase::Listing(Paged { arriving, .. }) => {
                Some(arriving.due(&self.settings))
            }
            Phase::Asking { since } => Some(*since + self.settings.answer_timeout),
            Phase::Opening(watch) => Some(watch.asked + self.settings.answer_timeout),
            Phase::Watching(watch) => Some(self.watch_due(watch)),
            Phase::Waiting { until, .. } => Some(*until),
        }
    }

    /// Whether objects that come now are part of a list.
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.phase, Phase::Streaming(_) | Phase::Listing(_))
    }

    /// What can be seen of it from outside, except for the state, which is seldom looked at.
    pub(crate) fn show(&self, started: Instant, status: &mut ReflectorStatus) {
        status.version.clone_from(&self.version);
        status.synced = self.synced;
        status.last_contact = self.last_contact.map(|at| started + at);
        status.counters = self.counters;
    }

    /// What it is doing.
    pub(crate) fn state(&self, started: Instant) -> ReflectorState {
        match &self.phase {
            Phase::Idle => ReflectorState::Idle,
            Phase::Streaming(streamed) => {
                ReflectorState::Listing { objects: streamed.arriving.objects, remaining: None }
            }
            Phase::Listing(paged) => {
                ReflectorState::Listing { objects: paged.arriving.objects, remaining: paged.remaining }
            }
            Phase::Asking { .. } => ReflectorState::Listing { objects: 0, remaining: None },
            Phase::Opening(_) => ReflectorState::Opening,
            Phase::Watching(_) => ReflectorState::Watching,
            Phase::Waiting { until, cause, .. } => {
                ReflectorState::Waiting { cause: cause.clone(), until: started + *until }
            }
        }
    }

    fn tick(&mut self, step: &mut Step<'_>) {
        if self.due().is_none_or(|due| step.now < due) {
            return;
        }
        match &self.phase {
            Phase::Idle => {}
            Phase::Waiting { next: Next::List, .. } => self.list(step),
            Phase::Waiting { next: Next::Watch, .. } => self.watch(step),
            Phase::Waiting { next: Next::Ask, .. } => self.ask_revision(step),
            Phase::Streaming(Streamed { arriving, .. }) | Phase::Listing(Paged { arriving, .. }) => {
                let error = self.error(self.doing(), arriving.overdue(&self.settings));
                self.failed(error, step);
            }
            Phase::Asking { .. } => self.revised(Err(self.no_answer(Doing::Probe)), step),
            Phase::Opening(_) => self.failed(self.no_answer(Doing::Watch), step),
            Phase::Watching(_) => self.watch_tick(step),
        }
    }

    /// Nothing was done for a while, through no fault of the server's: all clocks begin anew.
    fn resumed(&mut self, now: Duration) {
        self.quiet.since = now;
        match &mut self.phase {
            Phase::Streaming(Streamed { arriving, .. }) | Phase::Listing(Paged { arriving, .. }) => {
                arriving.resumed(now);
            }
            Phase::Asking { since } => *since = now,
            Phase::Opening(watch) => watch.asked = now,
            Phase::Watching(watch) => watch.resumed(now),
            Phase::Idle | Phase::Waiting { .. } => {}
        }
    }

    /// Bytes came on the main stream.
    fn contact(&mut self, step: &mut Step<'_>) {
        self.last_contact = Some(step.now);
        match &mut self.phase {
            Phase::Listing(paged) => paged.arriving.heard(step.now),
            Phase::Watching(_) => self.heard_watching(step),
            Phase::Idle | Phase::Streaming(_) | Phase::Asking { .. } | Phase::Opening(_) | Phase::Waiting { .. } => {}
        }
    }

    fn opened(&mut self, step: &mut Step<'_>) {
        self.last_contact = Some(step.now);
        match &mut self.phase {
            Phase::Streaming(Streamed { arriving, .. }) | Phase::Listing(Paged { arriving, .. }) => {
                arriving.heard(step.now);
            }
            Phase::Opening(_) => self.watch_opened(step),
            Phase::Idle | Phase::Asking { .. } | Phase::Watching(_) | Phase::Waiting { .. } => {}
        }
    }

    fn failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        match &self.phase {
            Phase::Streaming(_) => self.streaming_failed(error, step),
            Phase::Listing(_) => self.list_failed(error, step),
            Phase::Opening(_) => self.open_failed(error, step),
            Phase::Watching(_) => self.watch_broke(error, step),
            Phase::Idle | Phase::Asking { .. } | Phase::Waiting { .. } => {}
        }
    }

    fn failure_frame(&mut self, error: ServerError, step: &mut Step<'_>) {
        match &self.phase {
            Phase::Watching(_) => self.watch_failed(error, step),
            _ => self.failed(error, step),
        }
    }

    fn bad_object(&mut self, step: &mut Step<'_>) {
        self.counters.decode_errors += 1;
        self.report(&self.error(self.doing(), Failure::UndecodableObject), step);
    }

    /// What brings objects now.
    fn doing(&self) -> Doing {
        match &self.phase {
            Phase::Streaming(_) => Doing::StreamingList,
            Phase::Listing(_) => Doing::List,
            _ => Doing::Watch,
        }
    }

    // What all phases do.

    fn error(&self, doing: Doing, failure: Failure) -> ServerError {
        ServerError::new(doing, Arc::clone(&self.what), failure)
    }

    fn no_answer(&self, doing: Doing) -> ServerError {
        self.error(doing, Failure::TimedOut { after: self.settings.answer_timeout })
    }

    fn report(&mut self, error: &ServerError, step: &mut Step<'_>) {
        self.counters.errors += 1;
        step.act(Action::Report(error.clone()));
    }

    fn deliver(&self, delta: Delta, step: &mut Step<'_>) {
        step.act(Action::Deliver(delta));
    }

    /// Waits, longer than the last time unless that was long ago, and as long as the server asks.
    fn wait(&mut self, next: Next, cause: ServerError, step: &mut Step<'_>) {
        self.doubted |= may_be_another_server(&cause);
        self.abandon(step);
        self.note_absence(&cause);
        let wait = self.backoff.after(&cause, step.now, step.rng.roll(), self.settings.longest_retry_after);
        self.leave_phase(step);
        step.act(Action::Close);
        self.phase = Phase::Waiting { next, until: step.now + wait, cause };
        self.look_out(step);
    }

    /// Makes the list anew, after a wait.
    fn relist(&mut self, reason: RelistReason, cause: ServerError, step: &mut Step<'_>) {
        self.counters.relists.count(reason);
        self.wait(Next::List, cause, step);
    }

    /// The server went back in time: the list is made anew at once, and told as what it is.
    fn relist_went_back(&mut self, step: &mut Step<'_>) {
        self.counters.relists.count(RelistReason::WentBack);
        self.history = History::WentBack;
        self.from = From::Latest;
        self.list(step);
    }

    /// Ends what only this phase needs.
    fn leave_phase(&mut self, step: &mut Step<'_>) {
        if let Phase::Watching(watch) = &mut self.phase
            && watch.doubt.take().is_some()
        {
            step.act(Action::CloseBeside);
        }
    }

    fn begin(&mut self, step: &mut Step<'_>) {
        if self.relist == Told::Nothing {
            self.relist = Told::Begun;
            let relist = Relist { scope: self.scope.clone(), history: self.history };
            self.deliver(Delta::RelistBegun(relist), step);
        }
    }

    fn abandon(&mut self, step: &mut Step<'_>) {
        if self.relist == Told::Begun {
            self.relist = Told::Nothing;
            let listed = self.listed.take();
            raise(&mut self.abandoned, listed);
            self.deliver(Delta::RelistAbandoned(self.scope.clone()), step);
        }
    }

    /// Asks which version the server has, since it says it has not reached ours.
    fn ask_revision(&mut self, step: &mut Step<'_>) {
        self.leave_phase(step);
        self.abandon(step);
        step.act(Action::Close);
        step.act(Action::AskRevision(revision_query()));
        self.counters.probes += 1;
        self.phase = Phase::Asking { since: step.now };
    }

    fn revised(&mut self, answer: Result<Version, ServerError>, step: &mut Step<'_>) {
        match (&self.phase, answer) {
            (Phase::Asking { .. }, Ok(revision)) => {
                self.last_contact = Some(step.now);
                if self.version.as_ref().is_some_and(|ours| revision < *ours) {
                    self.relist_went_back(step);
                } else {
                    self.counters.relists.count(RelistReason::TooLarge);
                    self.from = From::Latest;
                    self.list(step);
                }
            }
            (Phase::Asking { .. }, Err(error)) => {
                self.report(&error, step);
                step.act(Action::CloseBeside);
                self.wait(Next::Ask, error, step);
            }
            (Phase::Watching(_), Ok(revision)) => self.revised_watching(Revised::At(revision), step),
            (Phase::Watching(_), Err(error)) => {
                self.report(&error, step);
                self.revised_watching(Revised::Unknown, step);
            }
            _ => {}
        }
    }
}

/// Raises a version to another one, if that is newer.
fn raise(version: &mut Option<Version>, other: Option<Version>) {
    if version.is_none() || *version < other {
        *version = other;
    }
}

/// Whether who answers next may be another server, or this one restored from a backup.
fn may_be_another_server(cause: &ServerError) -> bool {
    match cause.failure() {
        Failure::ConnectionRefused
        | Failure::Transport(_)
        | Failure::Tls(_)
        | Failure::BodyCut(_)
        | Failure::TimedOut { .. } => true,
        Failure::Answered { status, .. } => status.code >= 500,
        _ => false,
    }
}

/// The cheapest list there is, for its version.
fn revision_query() -> ListQuery {
    let mut query = ListQuery::new(ListVersion::Latest);
    query.limit = Some(1);
    query.detail = crate::client::Detail::Metadata;
    query
}
