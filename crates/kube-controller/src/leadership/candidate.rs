//! What a candidate decides: which request it sends next, and who holds the lease. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::observation::{LeaseObservation, holder, micro_time, spec, without_holder};
use super::timing::LeaseTiming;

/// A candidate, and the lease as it was last seen.
#[derive(Debug)]
pub(super) struct Candidate {
    name: Arc<str>,
    identity: Arc<str>,
    timing: LeaseTiming,
    /// Labels that a lease gets when it is created.
    labels: BTreeMap<String, String>,
    observed: Option<LeaseObservation>,
}

/// What an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Acquire,
    Renew,
}

/// The local clock, and the time that is written into the lease for people.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) clock: Duration,
    pub(super) wall: Timestamp,
}

#[derive(Debug)]
pub(super) enum Request {
    /// A renewal without reading the lease.
    ReplaceUnread(Lease),
    Get,
    Create(Lease),
    Replace(Lease),
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub(super) enum Response {
    Lease(Lease),
    NotFound,
    /// The request failed, and may have been executed.
    Failed,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub(super) enum Step {
    Send(Request),
    Done(Verdict),
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Held,
    /// The lease has this holder: no one if it is empty.
    HeldBy(String),
    Failed,
}

impl Candidate {
    pub(super) fn new(name: Arc<str>, identity: Arc<str>, timing: LeaseTiming) -> Self {
        Self { name, identity, timing, labels: BTreeMap::new(), observed: None }
    }

    pub(super) fn labelled(self, labels: BTreeMap<String, String>) -> Self {
        Self { labels, ..self }
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// The holder in the lease as it was last seen.
    pub(super) fn holder(&self) -> Option<&str> {
        self.observed.as_ref().map(|observed| holder(&observed.lease))
    }

    /// The first request of an attempt.
    pub(super) fn begin(&self, purpose: Purpose, now: Now) -> Request {
        match &self.observed {
            Some(observed) if purpose == Purpose::Renew && self.is_mine(&observed.lease) => {
                Request::ReplaceUnread(self.ours(Some(&observed.lease), purpose, now))
            }
            _ => Request::Get,
        }
    }

    /// What follows from the response to a request of an attempt.
    pub(super) fn proceed(&mut self, purpose: Purpose, sent: &Request, response: Response, now: Now) -> Step {
        match (sent, response) {
            (Request::ReplaceUnread(_), Response::Failed | Response::NotFound) => Step::Send(Request::Get),
            (Request::ReplaceUnread(_) | Request::Create(_) | Request::Replace(_), Response::Lease(lease)) => {
                self.observed = Some(LeaseObservation { lease, since: now.clock });
                Step::Done(Verdict::Held)
            }
            (Request::Get, Response::Lease(lease)) => self.read(purpose, lease, now),
            (Request::Get, Response::NotFound) => self.absent(purpose, now),
            (Request::Get | Request::Create(_) | Request::Replace(_), Response::Failed | Response::NotFound) => {
                Step::Done(Verdict::Failed)
            }
        }
    }

    fn read(&mut self, purpose: Purpose, lease: Lease, now: Now) -> Step {
        let before = self.observed.take();
        let was_acquired = before.as_ref().and_then(|before| before.lease.spec.as_ref()?.acquire_time.clone());
        let observed = LeaseObservation::update(before, lease, now.clock);
        let (holder, is_valid) = (holder(&observed.lease).to_owned(), observed.is_valid(now.clock));
        let is_mine = holder == *self.identity;
        let may_write = match purpose {
            Purpose::Acquire => is_mine || holder.is_empty() || !is_valid,
            // Another process with the same identity has acquired it at another time.
            Purpose::Renew => is_mine && acquired(&observed.lease) == was_acquired.as_ref(),
        };
        let step = if may_write {
            Step::Send(Request::Replace(self.ours(Some(&observed.lease), purpose, now)))
        } else {
            Step::Done(Verdict::HeldBy(holder))
        };
        self.observed = Some(observed);
        step
    }

    /// There is no lease. Its holder may not know that yet.
    fn absent(&mut self, purpose: Purpose, now: Now) -> Step {
        match &self.observed {
            Some(observed)
                if purpose == Purpose::Acquire
                    && !self.is_mine(&observed.lease)
                    && !holder(&observed.lease).is_empty()
                    && observed.is_valid(now.clock) =>
            {
                Step::Done(Verdict::HeldBy(holder(&observed.lease).to_owned()))
            }
            _ => Step::Send(Request::Create(self.ours(None, purpose, now))),
        }
    }

    /// The lease as this candidate writes it. Fields that others have set remain.
    fn ours(&self, lease: Option<&Lease>, purpose: Purpose, now: Now) -> Lease {
        let mut lease = lease.cloned().unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(self.name.to_string()),
                labels: (!self.labels.is_empty()).then(|| self.labels.clone()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let is_transition = !self.is_mine(&lease) && lease.metadata.resource_version.is_some();
        let spec = lease.spec.get_or_insert_default();
        let time = micro_time(now.wall);
        let transitions = spec.lease_transitions.unwrap_or_default();
        spec.lease_transitions = Some(transitions.saturating_add(i32::from(is_transition)));
        if purpose == Purpose::Acquire || spec.acquire_time.is_none() {
            spec.acquire_time = Some(time.clone());
        }
        spec.holder_identity = Some(self.identity.to_string());
        spec.lease_duration_seconds = Some(self.timing.lease_seconds());
        spec.renew_time = Some(time);
        lease
    }

    /// The lease as its holder writes it to give it up; `None` if it is not this candidate's.
    pub(super) fn released(&self, lease: Lease, now: Now) -> Option<Lease> {
        self.is_mine(&lease).then(|| without_holder(lease, now.wall))
    }

    fn is_mine(&self, lease: &Lease) -> bool {
        holder(lease) == &*self.identity
    }
}

fn acquired(lease: &Lease) -> Option<&MicroTime> {
    spec(lease)?.acquire_time.as_ref()
}
