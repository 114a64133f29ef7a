//! One leadership, from the acquisition of the lease to its loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::clock::Clock;
use super::lost::{LeadershipLost, LossCause};
use super::timing::LeaseTiming;

/// Shared by the election, which renews it, and the writers, which check it.
#[derive(Debug)]
pub(crate) struct Term {
    lease: Arc<str>,
    /// The term that this one is a part of, and which it never outlasts.
    parent: Option<Arc<Self>>,
    timing: LeaseTiming,
    clock: Clock,
    /// The time until which writes may be sent, in nanoseconds by the clock; 0 once it is lost.
    deadline: AtomicU64,
    cause: Mutex<Option<LossCause>>,
    ended: watch::Sender<bool>,
    /// The number of writes that may have been sent and are not yet answered.
    in_flight: watch::Sender<usize>,
}

impl Term {
    /// A term whose lease was acquired by an attempt that began at `started`.
    pub(super) fn new(lease: Arc<str>, timing: LeaseTiming, clock: Clock, started: Duration) -> Self {
        let deadline = AtomicU64::new(nanos(started + timing.renew_deadline()));
        let (ended, in_flight) = (watch::Sender::new(false), watch::Sender::new(0));
        Self { lease, parent: None, timing, clock, deadline, cause: Mutex::default(), ended, in_flight }
    }

    /// A term that lasts until it is ended, or its parent is lost.
    pub(crate) fn within(parent: Arc<Self>, lease: Arc<str>) -> Self {
        let (timing, clock) = (parent.timing, parent.clock.clone());
        let (ended, in_flight) = (watch::Sender::new(false), watch::Sender::new(0));
        let (deadline, cause) = (AtomicU64::new(u64::MAX), Mutex::default());
        Self { lease, parent: Some(parent), timing, clock, deadline, cause, ended, in_flight }
    }

    pub(crate) fn lease(&self) -> &str {
        &self.lease
    }

    /// The time until which writes may be sent.
    pub(crate) fn deadline(&self) -> Duration {
        let own = Duration::from_nanos(self.deadline.load(Ordering::Acquire));
        self.parent.as_ref().map_or(own, |parent| own.min(parent.deadline()))
    }

    pub(crate) fn remaining(&self) -> Duration {
        self.deadline().saturating_sub(self.clock.now())
    }

    /// Whether a write may be sent now. Returns the time until which its response is waited for.
    pub(crate) fn check(&self) -> Result<WriteLimit, LeadershipLost> {
        let deadline = self.deadline();
        if deadline <= self.clock.now() {
            return Err(self.loss());
        }
        Ok(WriteLimit(deadline - self.timing.renew_deadline() + self.timing.write_limit()))
    }

    /// Extends the term after a renewal that began at `started`. Fails if the deadline has passed
    /// meanwhile: what was lost for a moment remains lost.
    pub(super) fn renew(&self, started: Duration) -> Result<(), LeadershipLost> {
        let until = nanos(started + self.timing.renew_deadline());
        let now = nanos(self.clock.now());
        self.deadline
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |deadline| {
                (now < deadline).then_some(until.max(deadline))
            })
            .map(drop)
            .map_err(|_| self.loss())
    }

    /// Ends the term: no write is sent from now on.
    pub(crate) fn end(&self, cause: LossCause) -> LeadershipLost {
        self.deadline.store(0, Ordering::Release);
        self.cause.lock().get_or_insert(cause);
        self.ended.send_replace(true);
        self.loss()
    }

    /// Waits until the term has ended or its deadline has passed.
    pub(crate) async fn lost(&self) -> LeadershipLost {
        let mut ended = self.ended.subscribe();
        let mut parent_ended = self.parent.as_ref().map(|parent| parent.ended.subscribe());
        let mut parent_ended = std::pin::pin!(async {
            match &mut parent_ended {
                Some(ended) => drop(ended.wait_for(|ended| *ended).await),
                None => std::future::pending().await,
            }
        });
        while self.check().is_ok() {
            tokio::select! {
                // The sender is in `self`.
                _ = ended.wait_for(|ended| *ended) => {}
                () = &mut parent_ended => {}
                () = self.clock.sleep_until(self.deadline()) => {}
            }
        }
        self.loss()
    }

    /// Waits for the response to a write.
    pub(super) async fn until<T>(&self, limit: WriteLimit, response: impl Future<Output = T>) -> Option<T> {
        self.clock.timeout_at(limit.0, response).await
    }

    /// Counts a write that may be sent, until the returned value is dropped.
    pub(super) fn begin_write(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|count| *count += 1);
        InFlight(Arc::clone(self))
    }

    /// Waits until every write is answered, has failed or is given up.
    pub(crate) async fn idle(&self) {
        // The sender is in `self`.
        drop(self.in_flight.subscribe().wait_for(|count| *count == 0).await);
    }

    fn loss(&self) -> LeadershipLost {
        let cause = self.cause.lock().clone();
        let inherited = || self.parent.as_ref().and_then(|parent| parent.cause.lock().clone());
        let cause = cause.or_else(inherited).unwrap_or(LossCause::Expired(self.timing.renew_deadline()));
        LeadershipLost { lease: Arc::clone(&self.lease), cause }
    }
}

/// The time by the clock until which the response to a write is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteLimit(Duration);

/// A write between its request and its response.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Term>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count -= 1);
    }
}

/// Enough for centuries.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
