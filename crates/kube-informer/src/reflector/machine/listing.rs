//! Lists: streamed, or in pages.

use std::time::Duration;

use super::super::settings::{PAGE, ReflectorSettings};
use super::super::status::Synced;
use super::super::step::{Action, Frame};
use super::watching::Watch;
use super::{From, Machine, Next, Phase, Step, Told, raise};
use crate::body::{Obj, Untyped};
use crate::client::{Doing, Failure, ServerError};
use crate::client::{ListQuery, ListVersion, WatchQuery, WatchStart};
use crate::codec::{Broken, Change, ListEnd};
use crate::object::Version;
use crate::store::{Delta, History};

/// Whether the server can stream lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// Nothing says it cannot.
    Assumed,
    /// It seems not to. If LIST works, that is remembered.
    Suspect,
    /// It cannot, or must not.
    Refused,
}

/// A streaming list on its way.
#[derive(Debug)]
pub(super) struct Streamed {
    asked: Duration,
    timeout: Duration,
    pub(super) arriving: Arriving,
}

/// A list in pages on its way.
#[derive(Debug)]
pub(super) struct Paged {
    /// The first page's query.
    query: ListQuery,
    page: Page,
    attempt: Attempt,
    version: Option<Version>,
    pub(super) arriving: Arriving,
    pub(super) remaining: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    First,
    Further,
}

/// Whether a list was already begun again, because its pages expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Again,
}

/// What has come of a list, and how long the rest is waited for.
#[derive(Debug)]
pub(super) struct Arriving {
    way: Way,
    answer: Answer,
    pub(super) objects: u64,
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Streamed,
    InPages,
}

#[derive(Debug, Clone, Copy)]
enum Answer {
    /// Asked for then.
    Asked(Duration),
    /// Last heard of then.
    Reading(Duration),
}

impl Arriving {
    fn asked(way: Way, now: Duration) -> Self {
        Self { way, answer: Answer::Asked(now), objects: 0 }
    }

    /// The answer has begun, or more of it has come.
    pub(super) fn heard(&mut self, now: Duration) {
        self.answer = Answer::Reading(now);
    }

    pub(super) fn resumed(&mut self, now: Duration) {
        match &mut self.answer {
            Answer::Asked(at) | Answer::Reading(at) => *at = now,
        }
    }

    pub(super) fn due(&self, settings: &ReflectorSettings) -> Duration {
        match (self.answer, self.way) {
            (Answer::Asked(at), _) => at + settings.answer_timeout,
            (Answer::Reading(at), Way::Streamed) => at + settings.streaming_deadline,
            (Answer::Reading(at), Way::InPages) => at + settings.list_idle_timeout,
        }
    }

    pub(super) fn overdue(&self, settings: &ReflectorSettings) -> Failure {
        match (self.answer, self.way) {
            (Answer::Asked(_), _) => Failure::TimedOut { after: settings.answer_timeout },
            (Answer::Reading(_), Way::Streamed) => Failure::NoInitialEventsEnd { after: settings.streaming_deadline },
            (Answer::Reading(_), Way::InPages) => Failure::TimedOut { after: settings.list_idle_timeout },
        }
    }
}

impl Machine {
    /// Begins a list, by whichever way is open.
    pub(super) fn list(&mut self, step: &mut Step<'_>) {
        self.leave_phase(step);
        self.abandon(step);
        if self.support == Support::Refused {
            return self.list_pages(step);
        }
        let timeout = self.settings.watch_lasts(step.rng.roll());
        let not_older_than = self.version.clone().filter(|_| self.from == From::OurVersion);
        let start = WatchStart::Everything { not_older_than };
        self.counters.streaming_lists += 1;
        step.act(Action::Watch(WatchQuery::new(start, timeout)));
        let arriving = Arriving::asked(Way::Streamed, step.now);
        self.phase = Phase::Streaming(Streamed { asked: step.now, timeout, arriving });
    }

    fn list_pages(&mut self, step: &mut Step<'_>) {
        let version = match (self.from, &self.version) {
            (From::Latest, _) => ListVersion::Latest,
            (From::OurVersion, None) => ListVersion::Any,
            (From::OurVersion, Some(version)) => ListVersion::NotOlderThan(version.clone()),
        };
        let usual = match version {
            _ if self.pages_of_any => Some(PAGE),
            ListVersion::NotOlderThan(_) => None,
            ListVersion::Latest | ListVersion::Any => Some(PAGE),
        };
        let mut query = ListQuery::new(version);
        query.limit = self.settings.page_size.or(usual);
        self.list_from(query, Attempt::First, step);
    }

    fn list_from(&mut self, query: ListQuery, attempt: Attempt, step: &mut Step<'_>) {
        self.abandon(step);
        self.counters.lists += 1;
        step.act(Action::List(query.clone()));
        self.phase = Phase::Listing(Paged {
            query,
            page: Page::First,
            attempt,
            version: None,
            arriving: Arriving::asked(Way::InPages, step.now),
            remaining: None,
        });
    }

    /// An item of a list in pages.
    pub(super) fn item(&mut self, object: Obj<Untyped>, step: &mut Step<'_>) {
        let Phase::Listing(paged) = &mut self.phase else { return };
        paged.arriving.objects += 1;
        paged.remaining = paged.remaining.map(|remaining| remaining.saturating_sub(1));
        self.listed(object, step);
    }

    fn listed(&mut self, object: Obj<Untyped>, step: &mut Step<'_>) {
        self.counters.listed += 1;
        raise(&mut self.listed, Some(object.version().clone()));
        self.begin(step);
        self.deliver(Delta::Listed(object), step);
    }

    pub(super) fn page_ended(&mut self, end: &ListEnd, step: &mut Step<'_>) {
        let Phase::Listing(paged) = &mut self.phase else { return };
        if let Some(kind) = end.other_kind() {
            let failure = Failure::NotAList { kind: kind.into() };
            return self.list_failed(self.error(Doing::List, failure), step);
        }
        if paged.page == Page::First {
            paged.version.clone_from(&end.version);
        }
        let Some(token) = end.continue_token.clone() else {
            let Some(version) = paged.version.clone() else {
                return self.list_failed(self.error(Doing::List, Failure::NoVersion), step);
            };
            return self.list_complete(version, step);
        };
        if paged.query.version == ListVersion::Any {
            self.pages_of_any = true;
        }
        paged.page = Page::Further;
        paged.remaining = end.remaining;
        paged.arriving.answer = Answer::Asked(step.now);
        let mut query = paged.query.clone();
        query.continue_token = Some(token);
        self.counters.lists += 1;
        step.act(Action::List(query));
    }

    fn list_complete(&mut self, version: Version, step: &mut Step<'_>) {
        if self.complete(version, step) {
            if self.support == Support::Suspect {
                self.support = Support::Refused;
            }
            self.watch(step);
        }
    }

    /// A frame of a streaming list.
    pub(super) fn streamed(&mut self, frame: Frame, step: &mut Step<'_>) {
        let Phase::Streaming(streamed) = &mut self.phase else { return };
        match frame {
            Frame::Changed(Change::Deleted, object) => {
                self.begin(step);
                self.deliver(Delta::Deleted(object), step);
            }
            Frame::Changed(change, object) => {
                // What changes meanwhile says nothing of whether the list is still growing.
                if change == Change::Added {
                    streamed.arriving.heard(step.now);
                    streamed.arriving.objects += 1;
                }
                self.listed(object, step);
            }
            Frame::Bookmark { version, initial_events_end: true } => {
                let watch = Watch::new(streamed.asked, streamed.timeout);
                if self.complete(version, step) {
                    self.backoff.healthy(step.now);
                    self.phase = Phase::Watching(watch);
                }
            }
            Frame::Bookmark { .. } => {}
        }
    }

    /// A list is complete. Begins it anew instead if it turns out that the server went back, which was to be told at the start.
    fn complete(&mut self, version: Version, step: &mut Step<'_>) -> bool {
        let older = |known: &Option<Version>| known.as_ref().is_some_and(|known| version < *known);
        let back = older(&self.version) || older(&self.abandoned);
        if back && self.history == History::Continues {
            self.relist_went_back(step);
            return false;
        }
        self.begin(step);
        self.relist = Told::Nothing;
        let scope = self.scope.clone();
        self.deliver(Delta::RelistEnded { scope, version: version.clone() }, step);
        self.version = Some(version);
        self.synced = Synced::Yes;
        self.history = History::Continues;
        self.from = From::OurVersion;
        self.listed = None;
        self.abandoned = None;
        self.early_ends = 0;
        self.doubted = false;
        self.quiet.heard(step.now, &self.settings);
        self.look_away(step);
        true
    }

    pub(super) fn streaming_ended(&mut self, step: &mut Step<'_>) {
        let Phase::Streaming(streamed) = &self.phase else { return };
        let at_once = streamed.arriving.objects == 0 && step.now < streamed.asked + self.settings.short_watch;
        let error = self.error(Doing::StreamingList, Failure::EndedEarly);
        self.early_ends += 1;
        self.report(&error, step);
        let given_up = self.early_ends >= self.settings.streaming_tries;
        if given_up {
            self.support = Support::Suspect;
        }
        if at_once || given_up {
            self.list_pages(step);
        } else {
            self.wait(Next::List, error, step);
        }
    }

    pub(super) fn streaming_bad_frame(&mut self, broken: Broken, step: &mut Step<'_>) {
        self.streaming_failed(self.error(Doing::StreamingList, Failure::Undecodable(broken)), step);
    }

    pub(super) fn streaming_failed(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.report(&error, step);
        let later = error.is_connection_refused() || error.is_too_many_requests() || error.is_unauthorized();
        // What the server does not know it does not know in a LIST either.
        if later || error.is_not_found() {
            return self.wait(Next::List, error, step);
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
        let Phase::Listing(paged) = &self.phase else { return };
        let expired_within = paged.page == Page::Further && paged.attempt == Attempt::First && error.is_expired();
        let again = expired_within.then(|| ListQuery { limit: None, ..paged.query.clone() });
        self.report(&error, step);
        match again {
            // Pages that are gone will be gone again: this time all at once.
            Some(query) => self.list_from(query, Attempt::Again, step),
            None if error.is_expired() || error.is_too_large_version() => self.version_refused(error, step),
            None => self.wait(Next::List, error, step),
        }
    }

    /// A list at our version is not to be had.
    fn version_refused(&mut self, error: ServerError, step: &mut Step<'_>) {
        self.abandon(step);
        if self.from == From::Latest || self.version.is_none() {
            return self.wait(Next::List, error, step);
        }
        if error.is_too_large_version() {
            return self.ask_revision(step);
        }
        self.from = From::Latest;
        match self.phase {
            Phase::Listing(_) => self.list_pages(step),
            _ => self.list(step),
        }
    }
}
