//! The settings of an election.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use kube::Client;
use kube::api::Api;

use super::candidate::Candidate;
use super::clock::Clock;
use super::election::LeaderElection;
use super::timing::{InvalidTiming, LeaseTiming};
use crate::names::{host_name, is_dns_name};
use crate::rng::Rng;

/// Builds a [`LeaderElection`].
#[must_use]
pub struct LeaderElectionBuilder {
    client: Client,
    namespace: String,
    name: String,
    identity: Option<String>,
    timing: (Duration, Duration, Duration),
    clock: Option<Clock>,
    seed: Option<u64>,
    labels: BTreeMap<String, String>,
}

/// An election was built with a setting that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidElection {
    /// The times do not fit together.
    #[error(transparent)]
    Timing(#[from] InvalidTiming),
    /// No object can have this namespace or name.
    #[error("no lease can be named {name:?} in namespace {namespace:?}: both must be lower case names of DNS")]
    Lease {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A lease without a holder counts as free.
    #[error("the identity of a candidate must not be empty")]
    NoIdentity,
}

impl LeaderElectionBuilder {
    pub(super) fn new(client: Client, namespace: String, name: String) -> Self {
        let timing = LeaseTiming::default();
        let timing = (timing.lease_duration(), timing.renew_deadline(), timing.retry_period());
        Self { client, namespace, name, identity: None, timing, clock: None, seed: None, labels: BTreeMap::new() }
    }

    /// Sets the identity of this candidate. By default it is the name of the host, in a pod that of
    /// the pod, and a random suffix.
    ///
    /// It must be unique for each process: of two with the same identity both lead.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets how long other candidates wait for a lease that does not change: whole seconds. 15 by
    /// default.
    pub fn lease_duration(mut self, lease_duration: Duration) -> Self {
        self.timing.0 = lease_duration;
        self
    }

    /// Sets how long after the start of a successful renewal a leader may write. 10 s by default.
    pub fn renew_deadline(mut self, renew_deadline: Duration) -> Self {
        self.timing.1 = renew_deadline;
        self
    }

    /// Sets the time between two attempts. 2 s by default.
    pub fn retry_period(mut self, retry_period: Duration) -> Self {
        self.timing.2 = retry_period;
        self
    }

    /// Sets all times.
    pub fn timing(mut self, timing: LeaseTiming) -> Self {
        self.timing = (timing.lease_duration(), timing.renew_deadline(), timing.retry_period());
        self
    }

    /// Sets the clock by which leases expire. [`Clock::system`] by default.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the seed of the jitter, for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the labels that the lease gets when it is created.
    pub(crate) fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels = labels;
        self
    }

    /// Checks the settings. Sends nothing.
    pub fn build(self) -> Result<LeaderElection, InvalidElection> {
        let Self { client, namespace, name, identity, timing, clock, seed, labels } = self;
        if !is_dns_name(&namespace) || !is_dns_name(&name) {
            return Err(InvalidElection::Lease { namespace, name });
        }
        let timing = LeaseTiming::new(timing.0, timing.1, timing.2)?;
        let mut rng = seed.map_or_else(Rng::random, Rng::seeded);
        let identity = identity.unwrap_or_else(|| format!("{}_{:016x}", host_name(), rng.next_u64()));
        if identity.is_empty() {
            return Err(InvalidElection::NoIdentity);
        }
        let candidate = Candidate::new(name.as_str().into(), identity.into(), timing).labelled(labels);
        let lease = format!("{namespace}/{name}").into();
        let leases = Api::namespaced(client, &namespace);
        Ok(LeaderElection::new(leases, lease, candidate, timing, clock.unwrap_or_default(), rng))
    }
}

impl fmt::Debug for LeaderElectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderElectionBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}
