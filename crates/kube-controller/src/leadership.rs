//! Leader election on Leases, and the right to write: [`Leadership`], and the [`Writer`] that only
//! it hands out.
//!
//! ```no_run
//! # async fn work(writer: kube_controller::Writer) {}
//! # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use kube_controller::leadership::LeaderElection;
//!
//! let mut election = LeaderElection::builder(client.clone(), "websites", "website-controller").build()?;
//! let leadership = election.acquire().await;
//! tokio::select! {
//!     lost = election.hold() => return Err(lost.into()), // the process ends: another one writes soon
//!     () = work(leadership.writer(&client)) => {}
//! }
//! election.release().await?; // another process leads at once
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! The rules and constants are client-go's. A candidate takes a lease over that it has seen
//! unchanged for the duration written in it, by its own clock; the times in the lease are never
//! compared. A leader renews it every [`retry_period`](LeaseTiming::retry_period), first without
//! reading it, and if that fails, from what it reads. It has lost it when [`renew_deadline`] has
//! passed since the *start* of the last successful renewal, or when it reads another holder.
//!
//! [`renew_deadline`]: LeaseTiming::renew_deadline
//!
//! Stricter than client-go:
//!
//! - The deadline is not a timer that cancels the work. Each write of a [`Writer`] reads the clock
//!   when its body is handed to the connection, after every queue, retry and handshake. Past the
//!   deadline the request fails with [`LeadershipLost`], and the server receives nothing.
//! - A write that was sent is given up before another candidate may take the lease over.
//! - [`release`](LeaderElection::release) waits for the writes that were sent.
//! - A lease that was deleted is not taken over before it would have expired, by a candidate that
//!   has seen it.
//!
//! # What remains
//!
//! A write that has left the process cannot be called back. Between reading the clock and the
//! system call that sends the bytes is no await, but the process may be stopped there, and the
//! network and the server may execute a request long after it was sent. Kubernetes has no fencing
//! tokens. Writes that name what they replace (a `resourceVersion`, a uid) do no harm then;
//! what is outside of the cluster needs protection of its own.
//!
//! Clocks need not be synchronised, but must run at similar rates: the leader's may be slower than
//! a candidate's by a factor of up to `lease_duration / renew_deadline`, by default 1.5. What a
//! [`Clock`] does while the machine is suspended is described there.
//!
//! Coordinated election, in which the server selects the leader, is not implemented. The fields of
//! a lease that belong to it are kept as they are.

// Uses kube and k8s-openapi only. `candidate` and `timing` are pure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;

pub use self::builder::{InvalidElection, LeaderElectionBuilder};
pub use self::clock::Clock;
pub use self::election::LeaderElection;
pub use self::lost::{LeadershipLost, LossCause};
pub use self::timing::{InvalidTiming, LeaseTiming};
pub use self::writer::{WriteTimedOut, Writer};

pub(crate) use self::observation::{LeaseObservation, holder, without_holder};
pub(crate) use self::term::Term;

mod builder;
mod candidate;
mod clock;
mod election;
mod guarded_body;
mod lost;
mod observation;
mod term;
#[cfg(test)]
mod tests;
mod timing;
mod writer;

/// The right of this process to write to the cluster. Cheap to clone.
///
/// A program with several replicas has it from [`LeaderElection::acquire`], one of which only one
/// replica runs from [`unelected`](Self::unelected). Once lost it never returns; the next
/// [`acquire`](LeaderElection::acquire) returns another value.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::{Api, PostParams};
/// use kube_controller::Leadership;
///
/// let writer = Leadership::unelected().writer(&client);
/// let maps = Api::<ConfigMap>::default_namespaced(writer.client().clone());
/// # let mut map = ConfigMap::default();
/// # map.metadata.name = Some("a".to_owned());
/// maps.create(&PostParams::default(), &map).await?;
/// # Ok(()) });
/// ```
#[derive(Clone)]
pub struct Leadership {
    /// `None`: without election.
    term: Option<Arc<Term>>,
}

impl Leadership {
    /// Leadership of a program of which only one replica runs. It is never lost.
    #[must_use]
    pub fn unelected() -> Self {
        Self { term: None }
    }

    pub(crate) fn elected(term: Arc<Term>) -> Self {
        Self { term: Some(term) }
    }

    /// Returns the writing half of a client, valid as long as this leadership is held.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn writer(&self, client: &Client) -> Writer {
        Writer::new(client.clone(), self.clone())
    }

    /// Whether the leadership comes from an election.
    #[must_use]
    pub fn is_elected(&self) -> bool {
        self.term.is_some()
    }

    /// Fails if the leadership is lost: the check of every write, for what is written elsewhere
    /// than to the cluster.
    pub fn check(&self) -> Result<(), LeadershipLost> {
        self.term.as_ref().map_or(Ok(()), |term| term.check().map(drop))
    }

    /// How long the leadership lasts if it is not renewed; `None` without election.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.term.as_ref().map(|term| term.remaining())
    }

    /// Waits until the leadership is lost: for ever without election.
    pub async fn lost(&self) -> LeadershipLost {
        match &self.term {
            Some(term) => term.lost().await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn term(&self) -> Option<&Arc<Term>> {
        self.term.as_ref()
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Leadership");
        match &self.term {
            Some(term) => shown.field("lease", &term.lease()).field("remaining", &term.remaining()).finish(),
            None => shown.field("lease", &None::<()>).finish(),
        }
    }
}
