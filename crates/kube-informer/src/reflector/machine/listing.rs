//! Lists: streaming lists and LISTs, paginated or not.

use std::sync::Arc;
use std::time::Duration;

use super::super::settings::{PAGE, ReflectorSettings};
use super::super::status::Synced;
use super::super::step::{Action, Frame};
use super::watching::Watch;
use super::{ListStart, Machine, MachinePhase, NextRequest, RelistState, Step, raise};
use crate::body::{Obj, Untyped};
use crate::client::{Failure, Operation, ServerError};
use crate::client::{ListQuery, ListVersion, WatchStart};
use crate::codec::{Change, ListEnd};
use crate::object::Version;
use crate::shard::{Echo, Shard};
use crate::store::{Delta, History};

/// Whether the server supports streaming lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// Assumed, until a failure indicates otherwise.
    Assumed,
    /// It seems not to. Once LIST has worked, that is final.
    Suspect,
    /// It does not, or streaming lists are disabled.
    Refused,
}

/// A streaming list in progress.
#[derive(Debug)]
pub(super) struct Streamed {
    requested_at: Duration,
    timeout: Duration,
    pub(super) progress: ListProgress,
}

/// A LIST in progress.
#[derive(Debug)]
pub(super) struct Paged {
    /// The query of the first page.
    query: ListQuery,
    page: Page,
    attempt: Attempt,
    extent: ListExtent,
    /// When the first page was requested.
    requested_at: Duration,
    version: Option<Version>,
    /// The continue token of the current page.
    token: Option<String>,
    pub(super) progress: ListProgress,
    pub(super) remaining: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    First,
    Further,
}

/// What a LIST is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListExtent {
    /// All objects of the scope, or of its shard.
    Everything,
    /// The objects that have entered the shard.
    Entering,
}

/// Whether the list has already been restarted because its pages expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Again,
}

/// The progress of a list, and its timeouts.
#[derive(Debug)]
pub(super) struct ListProgress {
    mode: ListMode,
    response: Response,
    /// When the current response was requested, or the first of several without objects.
    requested_at: Duration,
    /// How many objects had been received then.
    objects_before: u64,
    pub(super) objects: u64,
    /// Objects that do not belong to the shard.
    outside: u64,
}

#[derive(Debug, Clone, Copy)]
enum ListMode {
    Streamed,
    Paged,
}

#[derive(Debug, Clone, Copy)]
enum Response {
    /// Requested at this time.
    Requested(Duration),
    /// Data last received at this time.
    Reading(Duration),
}

impl ListProgress {
    fn new(mode: ListMode, now: Duration) -> Self {
        Self { mode, response: Response::Requested(now), requested_at: now, objects_before: 0, objects: 0, outside: 0 }
    }

    /// The next page is requested.
    fn requested(&mut self, now: Duration) {
        self.response = Response::Requested(now);
        let received = self.objects + self.outside;
        if received > self.objects_before {
            self.requested_at = now;
            self.objects_before = received;
        }
    }

    /// An object has arrived that does not belong to the shard.
    pub(super) fn received_outside(&mut self) {
        self.outside += 1;
    }

    /// Whether all objects so far belong to the shard.
    fn is_within_shard(&self) -> bool {
        self.outside == 0
    }

    /// The response has begun, or more of it has arrived.
    pub(super) fn received(&mut self, now: Duration) {
        self.response = Response::Reading(now);
    }

    pub(super) fn resumed(&mut self, now: Duration) {
        match &mut self.response {
            Response::Requested(at) | Response::Reading(at) => *at = now,
        }
        self.requested_at = now;
    }

    pub(super) fn due(&self, settings: &ReflectorSettings) -> Duration {
        self.stalled_at(settings).min(self.requested_at.saturating_add(settings.list_timeout))
    }

    /// When the response counts as stalled.
    fn stalled_at(&self, settings: &ReflectorSettings) -> Duration {
        match (self.response, self.mode) {
            (Response::Requested(at), _) => at + settings.answer_timeout,
            (Response::Reading(at), ListMode::Streamed) => at + settings.streaming_deadline,
            (Response::Reading(at), ListMode::Paged) => at + settings.list_idle_timeout,
        }
    }

    pub(super) fn overdue(&self, settings: &ReflectorSettings) -> Failure {
        if self.due(settings) < self.stalled_at(settings) {
            return Failure::ListTooSlow { after: settings.list_timeout };
        }
        match (self.response, self.mode) {
            (Response::Requested(_), _) => Failure::TimedOut { after: settings.answer_timeout },
            (Response::Reading(_), ListMode::Streamed) => {
                Failure::NoInitialEventsEnd { after: settings.streaming_deadline }
            }
            (Response::Reading(_), ListMode::Paged) => Failure::TimedOut { after: settings.list_idle_timeout },
        }
    }
}

impl Machine {
    /// Starts a list: a streaming list unless the server does not support it, otherwise a LIST.
    pub(super) fn list(&mut self, step: &mut Step<'_>) {
        self.leave_phase(step);
        self.abandon_relist(step);
        self.witnesses.forget();
        self.sharding.lists_everything();
        if self.support == Support::Refused {
            return self.list_pages(step);
        }
        let timeout = self.settings.watch_duration(step.rng.next_fraction());
        let not_older_than = self.version.clone().filter(|_| self.list_start == ListStart::ReachedVersion);
        let start = WatchStart::Everything { not_older_than };
        self.counters.streaming_lists += 1;
        step.act(Action::Watch(self.watch_query(start, timeout)));
        let progress = ListProgress::new(ListMode::Streamed, step.now);
        self.phase = MachinePhase::Streaming(Streamed { requested_at: step.now, timeout, progress });
    }

    fn list_pages(&mut self, step: &mut Step<'_>) {
        let version = match (self.list_start, &self.version) {
            (ListStart::Latest, _) => ListVersion::Latest,
            (ListStart::ReachedVersion, None) => ListVersion::Any,
            (ListStart::ReachedVersion, Some(version)) => ListVersion::NotOlderThan(version.clone()),
        };
        let usual = match version {
            _ if self.has_no_watch_cache => Some(PAGE),
            ListVersion::NotOlderThan(_) => None,
            ListVersion::Latest | ListVersion::Any => Some(PAGE),
        };
        let mut query = ListQuery::new(version);
        query.limit = self.settings.page_size.or(usual);
        query.shard = self.sharding.shard();
        self.witnesses.forget();
        self.list_from(query, Attempt::First, ListExtent::Everything, step);
    }

    /// Lists the objects that have entered the shard. The watch continues after that from where it
    /// was.
    pub(super) fn list_entering(&mut self, shard: Shard, step: &mut Step<'_>) {
        self.leave_phase(step);
        // The newest version: what was written before the move is in the list.
        let mut query = ListQuery::new(ListVersion::Latest);
        query.limit = self.settings.page_size.or(Some(PAGE));
        query.shard = Some(Arc::new(shard));
        self.list_from(query, Attempt::First, ListExtent::Entering, step);
    }

    fn list_from(&mut self, query: ListQuery, attempt: Attempt, extent: ListExtent, step: &mut Step<'_>) {
        self.abandon_relist(step);
        self.counters.lists += 1;
        step.act(Action::List(query.clone()));
        self.phase = MachinePhase::Listing(Paged {
            query,
            page: Page::First,
            attempt,
            extent,
            requested_at: step.now,
            version: None,
            token: None,
            progress: ListProgress::new(ListMode::Paged, step.now),
            remaining: None,
        });
    }

    /// An item of a LIST.
    pub(super) fn item(&mut self, object: Obj<Untyped>, step: &mut Step<'_>) {
        if self.is_listing_entering() {
            return self.entered(object, step);
        }
        if !self.is_within_limit(&object) {
            return self.failed(self.too_large(Operation::List), step);
        }
        let MachinePhase::Listing(paged) = &mut self.phase else { return };
        paged.progress.objects += 1;
        paged.remaining = paged.remaining.map(|remaining| remaining.saturating_sub(1));
        self.listed(object, step);
    }

    /// An object of a list after a move of the shard.
    fn entered(&mut self, object: Obj<Untyped>, step: &mut Step<'_>) {
        let MachinePhase::Listing(paged) = &mut self.phase else { return };
        paged.progress.objects += 1;
        paged.remaining = paged.remaining.map(|remaining| remaining.saturating_sub(1));
        self.counters.listed += 1;
        // Delivered, so a server that does not have this version later went back in time.
        raise(&mut self.abandoned, Some(object.version().clone()));
        let bytes = object.weight() as u64;
        self.deliver(Delta::Entered(object), step);
        self.measure_growth(bytes, step);
    }

    fn is_listing_entering(&self) -> bool {
        matches!(&self.phase, MachinePhase::Listing(paged) if paged.extent == ListExtent::Entering)
    }

    fn listed(&mut self, object: Obj<Untyped>, step: &mut Step<'_>) {
        self.counters.listed += 1;
        raise(&mut self.listed, Some(object.version().clone()));
        self.witnesses.listed(&object);
        self.begin_relist(step);
        self.deliver(Delta::Listed(object), step);
    }

    pub(super) fn page_ended(&mut self, end: &ListEnd, step: &mut Step<'_>) {
        let MachinePhase::Listing(paged) = &mut self.phase else { return };
        if let Some(kind) = end.other_kind() {
            let failure = Failure::NotAList { kind: kind.into() };
            return self.list_failed(self.error(Operation::List, failure), step);
        }
        if paged.page == Page::First {
            paged.version.clone_from(&end.version);
        }
        let echo = paged.query.shard.as_ref().map(|shard| Echo::of(end.shard_selector.as_deref(), shard));
        if let (Some(Echo::Other), Some(applied)) = (echo, &end.shard_selector) {
            let failure = Failure::OtherShard { applied: applied.as_str().into() };
            return self.list_failed(self.error(Operation::List, failure), step);
        }
        let Some(token) = end.continue_token.clone() else {
            let Some(version) = paged.version.clone() else {
                return self.list_failed(self.error(Operation::List, Failure::NoVersion), step);
            };
            let (requested_at, extent) = (paged.requested_at, paged.extent);
            let is_within_shard = paged.progress.is_within_shard();
            self.sharding.listed(is_within_shard, echo);
            return match extent {
                ListExtent::Everything => self.list_complete(version, requested_at, step),
                ListExtent::Entering => self.entering_complete(version, step),
            };
        };
        if paged.token.as_ref() == Some(&token) {
            return self.list_failed(self.error(Operation::List, Failure::RepeatedPage), step);
        }
        if paged.query.version == ListVersion::Any {
            self.has_no_watch_cache = true;
        }
        paged.page = Page::Further;
        paged.remaining = end.remaining;
        paged.progress.requested(step.now);
        paged.token = Some(token.clone());
        let mut query = paged.query.clone();
        query.continue_token = Some(token);
        self.counters.lists += 1;
        step.act(Action::List(query));
    }

    fn list_complete(&mut self, version: Version, requested_at: Duration, step: &mut Step<'_>) {
        if self.complete(version, step) {
            self.freshness.listed(requested_at, step.now, self.settings.short_watch, false);
            if self.support == Support::Suspect {
                self.support = Support::Refused;
            }
            self.watch(step);
        }
    }

    /// A frame of a streaming list.
    pub(super) fn streamed(&mut self, frame: Frame, step: &mut Step<'_>) {
        if let Frame::Changed(Change::Added | Change::Modified, object) = &frame
            && !self.is_within_limit(object)
        {
            return self.failed(self.too_large(Operation::StreamingList), step);
        }
        let MachinePhase::Streaming(streamed) = &mut self.phase else { return };
        match frame {
            Frame::Changed(Change::Deleted, object) => {
                self.witnesses.changed(Change::Deleted, &object);
                self.begin_relist(step);
                self.deliver(Delta::Deleted(object), step);
            }
            Frame::Changed(change, object) => {
                // Modifications do not show that the list is still growing.
                if change == Change::Added {
                    streamed.progress.received(step.now);
                    streamed.progress.objects += 1;
                }
                self.listed(object, step);
            }
            Frame::Bookmark { version, initial_events_end: true } => {
                let requested_at = streamed.requested_at;
                let watch = Watch::new(requested_at, streamed.timeout);
                let is_within_shard = streamed.progress.is_within_shard();
                self.sharding.listed(is_within_shard, None);
                if self.complete(version, step) {
                    self.freshness.listed(requested_at, step.now, self.settings.short_watch, true);
                    self.backoff.healthy(step.now);
                    self.phase = MachinePhase::Watching(watch);
                }
            }
            Frame::Outside { .. } => {
                streamed.progress.received(step.now);
                streamed.progress.received_outside();
                self.counters.outside += 1;
            }
            Frame::Bookmark { .. } => {}
        }
    }

    /// Completes a list. Restarts it instead if it turns out that the server went back in time,
    /// because that must be delivered at the start of a relist.
    fn complete(&mut self, version: Version, step: &mut Step<'_>) -> bool {
        let older = |known: &Option<Version>| known.as_ref().is_some_and(|known| version < *known);
        let back = older(&self.version) || older(&self.abandoned);
        if back && self.history == History::Continues {
            self.relist_went_back(step);
            return false;
        }
        self.begin_relist(step);
        self.relist = RelistState::NotBegun;
        let scope = self.scope.clone();
        self.deliver(Delta::RelistEnded { scope, version: version.clone() }, step);
        self.version = Some(version);
        self.synced = Synced::Yes;
        self.history = History::Continues;
        self.list_start = ListStart::ReachedVersion;
        self.listed = None;
        let list = std::mem::take(&mut self.listed_bytes);
        self.abandoned = None;
        self.abandoned_bytes = 0;
        self.early_ends = 0;
        self.must_verify_server = false;
        self.witnesses.verified();
        self.silence.reset(step.now, &self.settings);
        self.unwatch_definition(step);
        self.measure_listed(list, step);
        self.shard_held(step);
        true
    }

    pub(super) fn streaming_ended(&mut self, step: &mut Step<'_>) {
        let MachinePhase::Streaming(streamed) = &self.phase else { return };
        let at_once = streamed.progress.objects == 0 && step.now < streamed.requested_at + self.settings.short_watch;
        let error = self.error(Operation::StreamingList, Failure::EndedEarly);
        self.early_ends += 1;
        self.report(&error, step);
        let given_up = self.early_ends >= self.settings.streaming_tries;
        if given_up {
            self.support = Support::Suspect;
        }
        if at_once || given_up {
            self.list_pages(step);
        } else {
            self.wait(NextRequest::List, error, step);
        }
    }

    pub(super) fn streaming_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        let later = error.is_connection_refused() || error.is_too_many_requests() || error.is_unauthorized();
        // A LIST would fail as well.
        let alike = matches!(error.failure(), Failure::UndecodableObject(_) | Failure::ListTooLarge { .. });
        if later || error.is_not_found() || alike {
            return self.wait(NextRequest::List, error, step);
        }
        if error.is_expired() || error.is_too_large_version() {
            return self.version_refused(error, step);
        }
        let unable = matches!(error.code(), Some(400 | 405 | 406 | 415 | 422 | 501));
        if unable || matches!(error.failure(), Failure::NoInitialEventsEnd { .. }) {
            self.support = Support::Suspect;
        }
        self.list_pages(step);
    }

    pub(super) fn list_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        let MachinePhase::Listing(paged) = &self.phase else { return };
        let expired_within = paged.page == Page::Further && paged.attempt == Attempt::First && error.is_expired();
        let extent = paged.extent;
        let again = expired_within.then(|| ListQuery { limit: None, ..paged.query.clone() });
        self.report(&error, step);
        match again {
            // The pages would expire again: this time without pagination.
            Some(query) => self.list_from(query, Attempt::Again, extent, step),
            // Before the watch, what has entered is listed again.
            None if extent == ListExtent::Entering => self.wait(NextRequest::Watch, error, step),
            None if error.is_expired() || error.is_too_large_version() || may_be_the_version(&error) => {
                self.version_refused(error, step);
            }
            None => self.wait(NextRequest::List, error, step),
        }
    }

    /// Counts the bytes of a listed object. Returns whether the list stays within the limit.
    fn is_within_limit(&mut self, object: &Obj<Untyped>) -> bool {
        self.listed_bytes = self.listed_bytes.saturating_add(object.weight() as u64);
        self.listed_bytes <= self.settings.max_list_bytes
    }

    fn too_large(&self, operation: Operation) -> ServerError {
        self.error(operation, Failure::ListTooLarge { limit: self.settings.max_list_bytes })
    }

    /// The server cannot list at the reached version.
    fn version_refused(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.abandon_relist(step);
        if self.list_start == ListStart::Latest || self.version.is_none() {
            return self.wait(NextRequest::List, error, step);
        }
        if error.is_too_large_version() {
            return self.request_revision(step);
        }
        self.list_start = ListStart::Latest;
        match self.phase {
            MachinePhase::Listing(_) => self.list_pages(step),
            _ => self.list(step),
        }
    }
}

/// Whether the request may be wrong because of its version, which a server may have made up.
fn may_be_the_version(error: &ServerError) -> bool {
    error.code() == Some(400) || matches!(error.failure(), Failure::Request(_))
}
