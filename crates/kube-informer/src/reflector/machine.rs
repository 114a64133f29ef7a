//! The reflector's state machine: decides the next actions for each input. It has no clock,
//! randomness or I/O; all three are passed in.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::absence::Absence;
use self::freshness::Freshness;
use self::growth::Growth;
use self::listing::{Paged, Streamed, Support};
use self::sharding::Sharding;
use self::staleness::{ServerVersion, Silence};
use self::watching::{Strikes, Watch};
use self::witness::{Verdict, Witnesses};
use super::backoff::Backoff;
use super::rng::Rng;
use super::settings::{ReflectorSettings, Streaming};
use super::status::{Counters, Degradation, ReflectorState, ReflectorStatus, RelistReason, Synced};
use super::step::{Action, Input, Lane, ServerState};
use crate::client::{Failure, Operation, ServerError};
use crate::client::{ListQuery, ListVersion};
use crate::object::{ObjectKey, Version};
use crate::store::{Delta, History, Relist, WatchScope};

mod absence;
mod freshness;
mod growth;
mod listing;
mod sharding;
mod staleness;
#[cfg(test)]
mod tests;
mod watching;
mod witness;

/// The state machine. Times are counted from the reflector's start.
///
/// ```text
///          ┌──────────────── too large, or silent ◀─ Probing ──┐ (did the server go back?)
///          ▼                                                   │
///  Idle ─▶ Streaming ──end mark──────────────┐                 │
///          │  ▲                              ▼                 │
///          │  └──── Waiting ◀──failure── Watching ──closed──▶ Opening
///          ▼          ▲  ▲                   ▲                 │
///          Listing ───┘  └───────────────────┼─────────────────┘
///             └────────────complete──────────┴─────▶ Opening
/// ```
///
/// Lists are streaming lists where the server supports them, otherwise LISTs. Every failure leads
/// through `Waiting`, whose backoff grows until there has been a failure-free time, except where an
/// alternative is available immediately: LIST for a failed streaming list, the newest version for
/// one that is not available, a new watch for one that broke after a failure-free time.
#[derive(Debug)]
pub(crate) struct Machine {
    settings: ReflectorSettings,
    scope: WatchScope,
    what: Arc<str>,
    phase: MachinePhase,
    /// The last processed resource version.
    version: Option<Version>,
    synced: Synced,
    /// Whether the next list continues the delivered history or the server went back in time.
    history: History,
    /// Whether the next list can request at least the reached version.
    list_start: ListStart,
    support: Support,
    /// A LIST of any version was paginated: the server has no watch cache, so LISTs request pages.
    has_no_watch_cache: bool,
    /// How many consecutive streaming lists ended before they were complete.
    early_ends: u32,
    /// Whether a relist has begun downstream and not ended.
    relist: RelistState,
    /// The newest object version in the current list.
    listed: Option<Version>,
    /// The newest object version in the lists abandoned since the last complete one. These objects
    /// were delivered downstream, so a server that does not have this version went back in time.
    abandoned: Option<Version>,
    /// Bytes of the objects in the current list, and in the abandoned ones that were delivered
    /// since the last complete one.
    listed_bytes: u64,
    abandoned_bytes: u64,
    growth: Growth,
    backoff: Backoff,
    silence: Silence,
    /// Something failed since the server was last known not to have gone back in time.
    must_verify_server: bool,
    strikes: Strikes,
    absence: Absence,
    counters: Counters,
    last_contact: Option<Duration>,
    freshness: Freshness,
    witnesses: Witnesses,
    sharding: Sharding,
}

#[derive(Debug)]
enum MachinePhase {
    Idle,
    Streaming(Streamed),
    Listing(Paged),
    /// The server has not reached the reflector's version: its current version is requested.
    Probing {
        since: Duration,
    },
    Opening(Watch),
    Watching(Watch),
    Waiting {
        next: NextRequest,
        until: Duration,
        cause: ServerError,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextRequest {
    List,
    Watch,
    Revision,
}

/// Where lists start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListStart {
    /// At least at the reached version.
    ReachedVersion,
    /// At the newest version, because the reached one is not available.
    Latest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelistState {
    NotBegun,
    Begun,
}

/// The time, randomness and output of one step.
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
            phase: MachinePhase::Idle,
            version: None,
            synced: Synced::No,
            history: History::Continues,
            list_start: ListStart::ReachedVersion,
            support: match settings.streaming {
                Streaming::Preferred => Support::Assumed,
                Streaming::Never => Support::Refused,
            },
            has_no_watch_cache: false,
            early_ends: 0,
            relist: RelistState::NotBegun,
            listed: None,
            abandoned: None,
            listed_bytes: 0,
            abandoned_bytes: 0,
            growth: Growth::default(),
            backoff: Backoff::new(settings.backoff),
            silence: Silence::new(settings.quiet_after),
            must_verify_server: false,
            strikes: Strikes::default(),
            absence: Absence::default(),
            counters: Counters::default(),
            last_contact: None,
            freshness: Freshness::default(),
            witnesses: Witnesses::default(),
            sharding: Sharding::default(),
        }
    }

    /// Processes one input.
    pub(crate) fn step(&mut self, input: Input, step: &mut Step<'_>) {
        match input {
            Input::Start => self.list(step),
            Input::Tick => self.tick(step),
            Input::Definition(state) => self.definition_changed(state, step),
            Input::Resumed => self.resumed(step.now),
            Input::Held(bytes) => self.held(bytes, step),
            Input::Revision(answer) => self.revision_received(answer, step),
            Input::Opened(Lane::Main) => self.opened(step),
            Input::Bytes(Lane::Main) => self.contact(step),
            Input::Opened(Lane::Second) => self.second_opened(step.now),
            Input::Bytes(Lane::Second) => self.last_contact = Some(step.now),
            Input::Item(object) => self.item(object, step),
            Input::ItemOutside => self.item_outside(step.now),
            Input::ShardMoved(shard) => self.shard_moved(shard, step),
            Input::ShardSupport(answer) => self.shard_support_received(answer, step),
            Input::PageEnded(end) => self.page_ended(&end, step),
            Input::Frame(Lane::Main, frame) => self.frame(frame, step),
            Input::Frame(Lane::Second, frame) => self.second_frame(frame, step),
            Input::BadFrame(Lane::Main, failure) => self.bad_frame(failure, step),
            Input::FailureFrame(Lane::Main, error) => self.failure_frame(error, step),
            Input::Ended(Lane::Main) => self.ended(step),
            Input::Failed(Lane::Main, error) => self.failed(error, step),
            Input::FailureFrame(Lane::Second, error) | Input::Failed(Lane::Second, error) => {
                self.second_failed(error, step);
            }
            Input::Ended(Lane::Second) | Input::BadFrame(Lane::Second, _) => self.abandon_probe(step),
        }
    }

    /// When the next [`Input::Tick`] is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        match &self.phase {
            MachinePhase::Idle => None,
            MachinePhase::Streaming(Streamed { progress, .. }) | MachinePhase::Listing(Paged { progress, .. }) => {
                Some(progress.due(&self.settings))
            }
            MachinePhase::Probing { since } => Some(*since + self.settings.answer_timeout),
            MachinePhase::Opening(watch) => Some(watch.requested_at + self.tolerated_delay()),
            MachinePhase::Watching(watch) => Some(self.watch_due(watch)),
            MachinePhase::Waiting { until, .. } => Some(*until),
        }
    }

    /// Whether received objects belong to a list.
    pub(crate) fn is_listing(&self) -> bool {
        matches!(self.phase, MachinePhase::Streaming(_) | MachinePhase::Listing(_))
    }

    /// Updates the observable status, except the state, which [`state`](Self::state) returns.
    pub(crate) fn show(&self, started: Instant, status: &mut ReflectorStatus) {
        status.version.clone_from(&self.version);
        status.synced = self.synced;
        status.last_contact = self.last_contact.map(|at| started + at);
        status.caught_up = self.freshness.caught_up().map(|at| started + at);
        status.degraded =
            self.degraded().map(|(cause, since)| Degradation { cause: cause.clone(), since: started + since });
        status.unverified_since = self.witnesses.unverified_since().map(|at| started + at);
        status.shard = self.sharding.support();
        status.counters = self.counters;
    }

    /// The failure after which it is not known what was missed, and since when.
    pub(crate) fn degraded(&self) -> Option<(&ServerError, Duration)> {
        self.freshness.doubt().map(|doubt| (&doubt.cause, doubt.since))
    }

    /// What it is doing.
    pub(crate) fn state(&self, started: Instant) -> ReflectorState {
        match &self.phase {
            MachinePhase::Idle => ReflectorState::Idle,
            MachinePhase::Streaming(streamed) => {
                ReflectorState::Listing { objects: streamed.progress.objects, remaining: None }
            }
            MachinePhase::Listing(paged) => {
                ReflectorState::Listing { objects: paged.progress.objects, remaining: paged.remaining }
            }
            MachinePhase::Probing { .. } => ReflectorState::Listing { objects: 0, remaining: None },
            MachinePhase::Opening(_) => ReflectorState::Opening,
            MachinePhase::Watching(_) => ReflectorState::Watching,
            MachinePhase::Waiting { until, cause, .. } => {
                ReflectorState::Waiting { cause: cause.clone(), until: started + *until }
            }
        }
    }

    fn tick(&mut self, step: &mut Step<'_>) {
        if self.due().is_none_or(|due| step.now < due) {
            return;
        }
        match &self.phase {
            MachinePhase::Idle => {}
            MachinePhase::Waiting { next: NextRequest::List, .. } => self.list(step),
            MachinePhase::Waiting { next: NextRequest::Watch, .. } => self.watch(step),
            MachinePhase::Waiting { next: NextRequest::Revision, .. } => self.request_revision(step),
            MachinePhase::Streaming(Streamed { progress, .. }) | MachinePhase::Listing(Paged { progress, .. }) => {
                let error = self.error(self.operation(), progress.overdue(&self.settings));
                self.failed(error, step);
            }
            MachinePhase::Probing { .. } => self.revision_received(Err(self.timed_out(Operation::Probe)), step),
            MachinePhase::Opening(watch) if step.now < watch.requested_at + self.settings.answer_timeout => {
                self.late(Operation::Watch, step.now);
            }
            MachinePhase::Opening(_) => self.failed(self.timed_out(Operation::Watch), step),
            MachinePhase::Watching(_) => self.watch_tick(step),
        }
    }

    /// Restarts all timeouts after a pause that the server did not cause.
    fn resumed(&mut self, now: Duration) {
        self.silence.since = now;
        self.freshness.resumed(now, self.settings.short_watch);
        match &mut self.phase {
            MachinePhase::Streaming(Streamed { progress, .. }) | MachinePhase::Listing(Paged { progress, .. }) => {
                progress.resumed(now);
            }
            MachinePhase::Probing { since } => *since = now,
            MachinePhase::Opening(watch) => watch.requested_at = now,
            MachinePhase::Watching(watch) => watch.resumed(now),
            MachinePhase::Idle | MachinePhase::Waiting { .. } => {}
        }
    }

    /// Bytes have arrived on the main stream.
    fn contact(&mut self, step: &mut Step<'_>) {
        self.last_contact = Some(step.now);
        match &mut self.phase {
            MachinePhase::Listing(paged) => paged.progress.received(step.now),
            MachinePhase::Watching(_) => self.watch_alive(step),
            MachinePhase::Idle
            | MachinePhase::Streaming(_)
            | MachinePhase::Probing { .. }
            | MachinePhase::Opening(_)
            | MachinePhase::Waiting { .. } => {}
        }
    }

    fn opened(&mut self, step: &mut Step<'_>) {
        self.last_contact = Some(step.now);
        match &mut self.phase {
            MachinePhase::Streaming(Streamed { progress, .. }) | MachinePhase::Listing(Paged { progress, .. }) => {
                progress.received(step.now);
            }
            MachinePhase::Opening(_) => self.watch_opened(step),
            MachinePhase::Idle
            | MachinePhase::Probing { .. }
            | MachinePhase::Watching(_)
            | MachinePhase::Waiting { .. } => {}
        }
    }

    fn failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        if *error.failure() == Failure::OtherVersion {
            return self.relist_other_version(step);
        }
        match &self.phase {
            MachinePhase::Streaming(_) => self.streaming_failed(error, step),
            MachinePhase::Listing(_) => self.list_failed(error, step),
            MachinePhase::Opening(_) => self.open_failed(error, step),
            MachinePhase::Watching(_) => self.watch_broke(error, step),
            MachinePhase::Idle | MachinePhase::Probing { .. } | MachinePhase::Waiting { .. } => {}
        }
    }

    fn failure_frame(&mut self, error: ServerError, step: &mut Step<'_>) {
        match &self.phase {
            MachinePhase::Watching(_) => self.watch_failed(error, step),
            _ => self.failed(error, step),
        }
    }

    /// An object or a frame could not be decoded. A list that contains it fails, a watch is opened
    /// again: skipping it could lose a deletion, and in a list it would look like one.
    fn bad_frame(&mut self, failure: Failure, step: &mut Step<'_>) {
        let error = self.error(self.operation(), failure);
        match &self.phase {
            MachinePhase::Streaming(_) => self.streaming_failed(error, step),
            MachinePhase::Listing(_) => self.list_failed(error, step),
            MachinePhase::Watching(_) => self.watch_undecodable(error, step),
            MachinePhase::Idle
            | MachinePhase::Probing { .. }
            | MachinePhase::Opening(_)
            | MachinePhase::Waiting { .. } => return,
        }
        self.counters.decode_errors += 1;
    }

    /// The request that currently delivers objects.
    fn operation(&self) -> Operation {
        match &self.phase {
            MachinePhase::Streaming(_) => Operation::StreamingList,
            MachinePhase::Listing(_) => Operation::List,
            _ => Operation::Watch,
        }
    }

    // Shared by all phases.

    fn error(&self, operation: Operation, failure: Failure) -> ServerError {
        ServerError::new(operation, Arc::clone(&self.what), failure)
    }

    fn timed_out(&self, operation: Operation) -> ServerError {
        self.error(operation, Failure::TimedOut { after: self.settings.answer_timeout })
    }

    /// How long a request of the watch may be unanswered: until that counts as a failure, and
    /// before that, until the store is no longer considered current.
    fn tolerated_delay(&self) -> Duration {
        match self.freshness.doubt() {
            Some(_) => self.settings.answer_timeout,
            None => self.settings.degraded_after.min(self.settings.answer_timeout),
        }
    }

    /// A request has been unanswered for long, but not for too long.
    fn late(&mut self, operation: Operation, now: Duration) {
        let error = self.error(operation, Failure::TimedOut { after: self.settings.degraded_after });
        self.freshness.failed(&error, now);
    }

    fn report(&mut self, error: &ServerError, step: &mut Step<'_>) {
        self.counters.errors += 1;
        step.act(Action::Report(error.clone()));
    }

    fn deliver(&self, delta: Delta, step: &mut Step<'_>) {
        step.act(Action::Deliver(delta));
    }

    /// Backs off: the wait grows unless the last failure was long ago, and is at least the server's
    /// `Retry-After`.
    fn wait(&mut self, next: NextRequest, cause: ServerError, step: &mut Step<'_>) {
        if may_be_another_server(&cause) {
            self.server_may_differ(step.now);
        }
        self.freshness.failed(&cause, step.now);
        self.abandon_relist(step);
        self.note_absence(&cause);
        let chance = step.rng.next_fraction();
        let wait = if cause.is_rejected() {
            self.backoff.failed_up_to(self.settings.rejected_retry, step.now, chance)
        } else {
            self.backoff.after(&cause, step.now, chance, self.settings.longest_retry_after)
        };
        self.leave_phase(step);
        step.act(Action::Close);
        self.phase = MachinePhase::Waiting { next, until: step.now + wait, cause };
        self.watch_definition(step);
    }

    /// The next connection may lead to another server, or to this one restored from a backup.
    fn server_may_differ(&mut self, now: Duration) {
        self.must_verify_server = true;
        if let Some(reached) = &self.version {
            self.witnesses.may_be_another_server(reached, now);
        }
    }

    /// Relists after a wait.
    fn relist(&mut self, reason: RelistReason, cause: ServerError, step: &mut Step<'_>) {
        self.counters.relists.count(reason);
        self.wait(NextRequest::List, cause, step);
    }

    /// Relists immediately, and delivers the relist as one of a server that went back in time.
    fn relist_went_back(&mut self, step: &mut Step<'_>) {
        self.counters.relists.count(RelistReason::WentBack);
        self.freshness.interrupted();
        self.history = History::WentBack;
        self.list_start = ListStart::Latest;
        self.sharding.went_back();
        self.list(step);
    }

    /// Relists immediately: in another API version, the bodies of unchanged objects differ, and
    /// replace those in the store although the resource versions do not.
    fn relist_other_version(&mut self, step: &mut Step<'_>) {
        self.leave_phase(step);
        self.abandon_relist(step);
        step.act(Action::Close);
        self.history = History::WentBack;
        self.list_start = ListStart::Latest;
        self.list(step);
    }

    /// Ends the parts that only the current phase needs.
    fn leave_phase(&mut self, step: &mut Step<'_>) {
        if let MachinePhase::Watching(watch) = &mut self.phase
            && watch.probe.take().is_some()
        {
            step.act(Action::CloseSecond);
        }
    }

    fn begin_relist(&mut self, step: &mut Step<'_>) {
        if self.relist == RelistState::NotBegun {
            self.relist = RelistState::Begun;
            let relist = Relist { scope: self.scope.clone(), history: self.history };
            self.deliver(Delta::RelistBegun(relist), step);
        }
    }

    /// Ends a list that is not complete. Its new objects are delivered all the same, as long as
    /// such lists together stay within the limit of one: otherwise a server that breaks off every
    /// list could fill the cache with ever new objects.
    fn abandon_relist(&mut self, step: &mut Step<'_>) {
        let bytes = self.abandoned_bytes.saturating_add(std::mem::take(&mut self.listed_bytes));
        if self.relist == RelistState::NotBegun {
            return;
        }
        self.relist = RelistState::NotBegun;
        if bytes > self.settings.max_list_bytes {
            self.listed = None;
            return self.deliver(Delta::RelistDropped(self.scope.clone()), step);
        }
        self.abandoned_bytes = bytes;
        let listed = self.listed.take();
        raise(&mut self.abandoned, listed);
        self.deliver(Delta::RelistAbandoned(self.scope.clone()), step);
    }

    /// Requests the server's current version, because it has not reached the reflector's.
    fn request_revision(&mut self, step: &mut Step<'_>) {
        self.leave_phase(step);
        self.abandon_relist(step);
        step.act(Action::Close);
        step.act(Action::RequestRevision(revision_query(None)));
        self.counters.probes += 1;
        self.phase = MachinePhase::Probing { since: step.now };
    }

    fn revision_received(&mut self, answer: Result<ServerState, ServerError>, step: &mut Step<'_>) {
        match (&self.phase, answer) {
            (MachinePhase::Probing { .. }, Ok(state)) => {
                self.last_contact = Some(step.now);
                if self.version.as_ref().is_some_and(|ours| state.version < *ours) {
                    self.relist_went_back(step);
                } else {
                    self.counters.relists.count(RelistReason::TooLarge);
                    self.list_start = ListStart::Latest;
                    self.list(step);
                }
            }
            (MachinePhase::Probing { .. }, Err(error)) => {
                self.report(&error, step);
                step.act(Action::CloseSecond);
                self.wait(NextRequest::Revision, error, step);
            }
            (MachinePhase::Watching(_), Ok(state)) => match self.hear_witness(&state, step) {
                Verdict::Continues => self.revision_while_watching(ServerVersion::At(state.version), step),
                Verdict::WentBack => self.relist_went_back(step),
                Verdict::Pending => {}
            },
            (MachinePhase::Watching(_), Err(error)) => self.revision_unknown(&error, step),
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

/// Whether the next response may come from another server, or from this one restored from a backup.
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

/// The cheapest list, requested for its version, and for the state of an object.
fn revision_query(object: Option<ObjectKey>) -> ListQuery {
    let mut query = ListQuery::new(ListVersion::Latest);
    query.object = object;
    query.limit = Some(1);
    query.detail = crate::client::Detail::Metadata;
    query
}
