//! The injected rules.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, Response};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::request::Request;
use super::rule::{Rule, Times};
use super::{Fault, GONE, Stage};
use crate::http::body::Body;
use crate::http::negotiate::Negotiated;
use crate::http::reply::{self, Filter};
use crate::http::status::Status;

/// The faults of a server. Clones share the same rules.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Mutex<Rules>>);

#[derive(Debug, Default)]
struct Rules {
    next: u64,
    /// In the order of injection. Exhausted rules are removed.
    injected: Vec<Injected>,
}

#[derive(Debug)]
struct Injected {
    id: u64,
    rule: Rule,
    since: Instant,
    passed: u64,
    fired: watch::Sender<u64>,
}

/// Handle of an injected rule. Dropping it has no effect: the rule stays until it is removed or
/// exhausted.
#[derive(Debug, Clone)]
pub struct FaultHandle {
    id: u64,
    rules: Weak<Mutex<Rules>>,
    fired: watch::Receiver<u64>,
}

impl Faults {
    /// An empty set of rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule.
    pub fn inject(&self, rule: Rule) -> FaultHandle {
        let mut rules = self.0.lock();
        let id = rules.next;
        rules.next += 1;
        let (fired, receiver) = watch::channel(0);
        rules.injected.push(Injected { id, rule, since: Instant::now(), passed: 0, fired });
        FaultHandle { id, rules: Arc::downgrade(&self.0), fired: receiver }
    }

    /// Removes every rule.
    pub fn clear(&self) {
        self.0.lock().injected.clear();
    }

    /// Decides how a request fails, and counts it for the rules that match.
    pub(crate) fn decide(&self, request: &Request<'_>) -> Verdict {
        let mut rules = self.0.lock();
        if rules.injected.is_empty() {
            return Verdict::default();
        }
        let now = Instant::now();
        let mut due: Vec<&mut Injected> = rules.injected.iter_mut().filter_map(|each| each.due(request, now)).collect();
        let answering = due.iter().position(|each| each.rule.fault.stage() == Stage::Answer);
        let mut verdict = Verdict::default();
        for (position, each) in due.iter_mut().enumerate() {
            let takes_effect = match each.rule.fault.stage() {
                Stage::Before => true,
                Stage::Answer => answering == Some(position),
                Stage::Response | Stage::Body | Stage::Events => answering.is_none(),
            };
            if takes_effect {
                verdict.add(&each.rule.fault);
                each.fired.send_modify(|fired| *fired += 1);
            }
        }
        rules.injected.retain(|each| !each.is_used_up());
        verdict
    }
}

impl Injected {
    fn due(&mut self, request: &Request<'_>, now: Instant) -> Option<&mut Self> {
        if now < self.since + self.rule.delay || !self.rule.fits(request) {
            return None;
        }
        if self.passed < self.rule.skip {
            self.passed += 1;
            return None;
        }
        // Covers `times(0)`, which is exhausted from the start.
        (!self.is_used_up()).then_some(self)
    }

    fn is_used_up(&self) -> bool {
        matches!(self.rule.times, Times::Exactly(times) if *self.fired.borrow() >= times)
    }
}

impl FaultHandle {
    /// How many times the fault took effect.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.fired.borrow()
    }

    /// Waits until the fault has taken effect this many times, or cannot any more because it was
    /// removed or exhausted. Returns how many times it did.
    pub async fn fired(&self, times: u64) -> u64 {
        let mut fired = self.fired.clone();
        match fired.wait_for(|count| *count >= times).await {
            Ok(count) => *count,
            Err(_) => self.count(),
        }
    }

    /// Removes the rule. Streams that already have the fault keep it.
    pub fn remove(&self) {
        if let Some(rules) = self.rules.upgrade() {
            rules.lock().injected.retain(|each| each.id != self.id);
        }
    }
}

/// How a request fails: first the delay, then either a replaced response or faults of the response
/// body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) delay: Duration,
    pub(crate) answer: Option<Answer>,
    /// Whether the server's response is not sent.
    pub(crate) loses_response: bool,
    /// Faults of the body, for a [`FaultyBody`](super::FaultyBody).
    pub(crate) stream: Vec<Fault>,
}

/// The response that replaces the server's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Disconnect,
    Status(Status),
    TooManyRequests,
}

impl Verdict {
    fn add(&mut self, fault: &Fault) {
        match fault {
            Fault::Delay(delay) => self.delay += *delay,
            Fault::LoseResponse => self.loses_response = true,
            Fault::Disconnect => self.answer = Some(Answer::Disconnect),
            Fault::Status(status) => self.answer = Some(Answer::Status(status.clone())),
            Fault::TooManyRequests => self.answer = Some(Answer::TooManyRequests),
            Fault::GoneAtOpen => self.answer = Some(Answer::Status(Status::expired(GONE))),
            other => self.stream.push(other.clone()),
        }
    }
}

impl Answer {
    /// The response. `None` if the connection is dropped.
    pub(crate) fn respond(&self, wish: &Negotiated) -> Option<Response<Body>> {
        match self {
            Self::Disconnect => None,
            Self::Status(status) => Some(match status.code() {
                401 => reply::denial(Filter::Authentication, status, wish),
                403 => reply::denial(Filter::Authorization, status, wish),
                _ => reply::failure(status, wish),
            }),
            Self::TooManyRequests => {
                let mut response = reply::text_response(429, "Too many requests, please try again later.\n");
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
                Some(response)
            }
        }
    }
}
