//! The election: sends the requests that a candidate decides on.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use tracing::{debug, info, warn};

use super::Leadership;
use super::builder::LeaderElectionBuilder;
use super::candidate::{Candidate, Now, Purpose, Request, Response, Step, Verdict};
use super::clock::Clock;
use super::lost::{LeadershipLost, LossCause};
use super::term::Term;
use super::timing::{JITTER, LeaseTiming};
use crate::error_chain::ErrorChain;
use crate::rng::Rng;

/// One candidate of an election.
///
/// [`acquire`](Self::acquire) waits for leadership, [`hold`](Self::hold) keeps it as long as it is
/// polled, [`release`](Self::release) gives it up. No task is started: an election that is not
/// polled loses its lease, and one that is dropped ends the leadership at once, without a request.
///
/// Its requests need `get`, `create` and `update` for `leases` in the group `coordination.k8s.io`.
/// The client should not repeat requests by itself: use [`kube_informer::client()`].
#[doc(alias = "LeaderElector")]
pub struct LeaderElection {
    leases: Api<Lease>,
    /// The namespace and name of the lease.
    lease: Arc<str>,
    candidate: Candidate,
    timing: LeaseTiming,
    clock: Clock,
    rng: Rng,
    term: Option<Arc<Term>>,
    /// Whether the lease may name this candidate as its holder.
    may_be_holder: bool,
    /// The error of the last request, if it failed: each cause is reported once.
    failure: Option<String>,
}

impl LeaderElection {
    /// Returns a builder for an election by the lease of this namespace and name.
    pub fn builder(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> LeaderElectionBuilder {
        LeaderElectionBuilder::new(client, namespace.into(), name.into())
    }

    pub(super) fn new(
        leases: Api<Lease>,
        lease: Arc<str>,
        candidate: Candidate,
        timing: LeaseTiming,
        clock: Clock,
        rng: Rng,
    ) -> Self {
        Self { leases, lease, candidate, timing, clock, rng, term: None, may_be_holder: false, failure: None }
    }

    /// The namespace and name of the lease.
    #[must_use]
    pub fn lease(&self) -> &str {
        &self.lease
    }

    /// The identity of this candidate.
    #[must_use]
    pub fn identity(&self) -> &str {
        self.candidate.identity()
    }

    /// The holder of the lease as it was last seen: an empty text if it is free, `None` if it has
    /// not been seen.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.candidate.holder()
    }

    /// Waits for leadership. A leadership that this election has handed out before ends.
    ///
    /// Failed requests are logged and repeated. If this future is dropped while a request is sent,
    /// the lease may have been acquired; [`release`](Self::release) gives it up.
    pub async fn acquire(&mut self) -> Leadership {
        self.end(LossCause::Released);
        let mut holder = None;
        loop {
            let started = self.clock.now();
            let (clock, until) = (self.clock.clone(), started + self.timing.renew_deadline());
            match clock.timeout_at(until, self.attempt(Purpose::Acquire)).await {
                Some(Verdict::Held) => {
                    let term = Term::new(Arc::clone(&self.lease), self.timing, self.clock.clone(), started);
                    let term = Arc::new(term);
                    // The attempt may have taken too long for any write.
                    if term.check().is_ok() {
                        info!(lease = %self.lease, identity = self.identity(), "leadership acquired");
                        self.term = Some(Arc::clone(&term));
                        return Leadership::elected(term);
                    }
                }
                Some(Verdict::HeldBy(other)) if holder.as_ref() != Some(&other) => {
                    info!(lease = %self.lease, identity = self.identity(), holder = %other.escape_debug(), "waiting for leadership");
                    holder = Some(other);
                }
                Some(Verdict::HeldBy(_) | Verdict::Failed) => {}
                None => self.failed("acquiring the lease", "no response".to_owned()),
            }
            let wait = self.timing.retry_period().mul_f64(1.0 + JITTER * self.rng.next_fraction());
            self.clock.sleep_until(self.clock.now() + wait).await;
        }
    }

    /// Renews the lease, until the leadership is lost. Returns at once if there is none.
    ///
    /// The leadership lasts only as long as this is polled: give it a task of its own, or select
    /// between it and the work.
    pub async fn hold(&mut self) -> LeadershipLost {
        let Some(term) = self.term.clone() else {
            return LeadershipLost { lease: Arc::clone(&self.lease), cause: LossCause::Released };
        };
        let expired = LossCause::Expired(self.timing.renew_deadline());
        let lost = loop {
            let deadline = term.deadline();
            let next = self.clock.now() + self.timing.retry_period();
            self.clock.sleep_until(next.min(deadline)).await;
            let started = self.clock.now();
            if started >= deadline {
                break term.end(expired);
            }
            let verdict = self.clock.clone().timeout_at(deadline, self.attempt(Purpose::Renew)).await;
            match verdict {
                Some(Verdict::Held) => {
                    if term.renew(started).is_err() {
                        break term.end(expired);
                    }
                }
                Some(Verdict::HeldBy(holder)) => break term.end(LossCause::TakenOver(holder)),
                Some(Verdict::Failed) => debug!(lease = %self.lease, remaining = ?term.remaining(), "not renewed"),
                None => break term.end(expired),
            }
        };
        warn!(lease = %self.lease, identity = self.identity(), cause = %lost.cause(), "leadership lost");
        lost
    }

    /// Gives the lease up, so that another candidate takes it at once. No write is sent from now
    /// on, and those that were sent are waited for.
    ///
    /// Takes at most [`renew_deadline`](LeaseTiming::renew_deadline), twice if writes are not
    /// answered. Does nothing if the lease is not held.
    pub async fn release(&mut self) -> Result<(), Error> {
        if let Some(term) = self.term.take() {
            let last = term.deadline();
            term.end(LossCause::Released);
            let clock = self.clock.clone();
            if clock.timeout_at(last, term.idle()).await.is_none() {
                // They may be executed when another one leads: the lease has to expire.
                warn!(lease = %self.lease, "not released: writes are not answered");
                return Ok(());
            }
        }
        if !std::mem::take(&mut self.may_be_holder) {
            return Ok(());
        }
        let deadline = self.clock.now() + self.timing.renew_deadline();
        loop {
            let error = match self.try_release().await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let next = self.clock.now() + self.timing.retry_period();
            if is_conflict(&error) && self.clock.now() < deadline {
                continue;
            }
            if next >= deadline {
                warn!(lease = %self.lease, %error, "not released");
                return Err(error);
            }
            self.clock.sleep_until(next).await;
        }
    }

    async fn try_release(&self) -> Result<(), Error> {
        let requests = Box::pin(async {
            let Some(lease) = self.leases.get_opt(self.name()).await? else { return Ok(()) };
            let Some(lease) = self.candidate.released(lease, self.now()) else { return Ok(()) };
            self.leases.replace(self.name(), &PostParams::default(), &lease).await?;
            info!(lease = %self.lease, identity = self.identity(), "leadership released");
            Ok(())
        });
        let until = self.clock.now() + self.timing.request_timeout();
        self.clock.timeout_at(until, requests).await.unwrap_or_else(|| Err(no_response()))
    }

    async fn attempt(&mut self, purpose: Purpose) -> Verdict {
        let mut request = self.candidate.begin(purpose, self.now());
        loop {
            self.may_be_holder |= !matches!(request, Request::Get);
            let response = self.send(&request).await;
            match self.candidate.proceed(purpose, &request, response, self.now()) {
                Step::Send(next) => request = next,
                Step::Done(verdict) => return verdict,
            }
        }
    }

    async fn send(&mut self, request: &Request) -> Response {
        let (name, params) = (self.name(), PostParams::default());
        // Boxed, because the futures of kube are large.
        let sent = Box::pin(async {
            match request {
                Request::Get => self.leases.get(name).await,
                Request::Create(lease) => self.leases.create(&params, lease).await,
                Request::ReplaceUnread(lease) | Request::Replace(lease) => {
                    self.leases.replace(name, &params, lease).await
                }
            }
        });
        let until = self.clock.now() + self.timing.request_timeout();
        match self.clock.timeout_at(until, sent).await.unwrap_or_else(|| Err(no_response())) {
            Ok(lease) => {
                self.answered();
                Response::Lease(lease)
            }
            Err(Error::Api(status)) if status.code == 404 && matches!(request, Request::Get) => Response::NotFound,
            // Another candidate was faster.
            Err(error) if is_conflict(&error) => {
                debug!(lease = %self.lease, %error, "the lease has changed");
                Response::Failed
            }
            Err(error) => {
                self.failed(doing(request), ErrorChain(&error).to_string().escape_debug().to_string());
                Response::Failed
            }
        }
    }

    fn failed(&mut self, doing: &str, error: String) {
        if self.failure.as_ref() == Some(&error) {
            debug!(lease = %self.lease, error, "still {doing} fails");
        } else {
            warn!(lease = %self.lease, error, "{doing} has failed; it is tried again");
            self.failure = Some(error);
        }
    }

    fn answered(&mut self) {
        if self.failure.take().is_some() {
            info!(lease = %self.lease, "requests for the lease succeed again");
        }
    }

    fn name(&self) -> &str {
        self.lease.split_once('/').map_or(&self.lease, |(_, name)| name)
    }

    fn now(&self) -> Now {
        Now { clock: self.clock.now(), wall: Timestamp::now() }
    }

    fn end(&mut self, cause: LossCause) {
        if let Some(term) = self.term.take() {
            term.end(cause);
        }
    }
}

impl Drop for LeaderElection {
    fn drop(&mut self) {
        self.end(LossCause::Released);
    }
}

impl fmt::Debug for LeaderElection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElection")
            .field("lease", &self.lease)
            .field("candidate", &self.candidate)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

fn doing(request: &Request) -> &'static str {
    match request {
        Request::Get => "reading the lease",
        Request::Create(_) => "creating the lease",
        Request::ReplaceUnread(_) | Request::Replace(_) => "writing the lease",
    }
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}

fn no_response() -> Error {
    Error::Service("no response in time".into())
}
