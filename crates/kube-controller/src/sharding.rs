//! Dividing the objects of a controller between processes: [`ShardGroup`].
//!
//! ```
//! # kube_embedded::doctest([], async |server| {
//! # let client = kube::Client::new(server.service(), "default");
//! # tokio::time::pause();
//! use kube_controller::sharding::{Change, ShardGroup};
//!
//! let group = ShardGroup::builder(client, "default", "website-shards").build()?;
//! let mut participant = group.participate();
//! let work = async {
//!     // The first member of a group claims all ranges.
//!     let Change::Gained(tenure) = participant.next().await else { panic!("nothing was held") };
//!     tenure.leadership().check().unwrap(); // its writer may write for the objects of the range
//!     drop(participant);
//! };
//! group.run(work).await; // until the work has ended: everything is released
//! # Ok(()) });
//! ```
//!
//! # Rules
//!
//! The hashes of the [key](ShardGroupBuilder::key), the namespace or the uid of an object, are
//! divided into ranges of equal size. *The record*, an annotation of the group's lease, says which
//! member holds which range.
//!
//! - Each member has a lease, which only shows that it lives: it is held by the rules of
//!   [`leadership`](crate::leadership). A member writes for a range as long as it holds its lease,
//!   by its own clock and up to the renew deadline, *and* has the range by the record.
//! - A range is claimed only if no member holds it by the record, or if the lease of its holder has
//!   no holder any more. A lease that has expired, by the local observation of another member, is
//!   first written without a holder, by an update that names the version that was observed: so a
//!   renewal that was on its way fails, or that update does.
//! - The record is changed only by updates that name the version that was read. Two members can
//!   never both claim a range.
//! - Members are assigned ranges by rendezvous hashing with bounded loads: numbers of ranges differ
//!   by one at most, and all members compute the same. A member releases what is assigned to
//!   another one that lives, when all attempts for the range have ended, with the versions its
//!   caches had. The next holder begins when its own caches are there.
//! - A session that has lost its lease never writes again. The process begins another one, with
//!   another identity, and claims anew.
//!
//! # How long a range has no owner
//!
//! With a server that answers at once: after a release, up to `1.2 × retry_period`; after a crash,
//! up to `lease_duration + 4 × retry_period`: by default 2.4 and 23 seconds. The time in which
//! attempts for the range end comes before a release, and that in which the caches of the next
//! holder catch up after it.
//!
//! # What remains
//!
//! What is said of [leadership](crate::leadership#what-remains). The record and the leases must not
//! be edited or deleted by hand while members run.

// `assignment`, `member` and `record` are pure. Uses `leadership` for leases and writes.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, DeleteParams};
use kube_informer::shard::ShardKey;
use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{error, info};

pub use self::builder::{InvalidShardGroup, ShardGroupBuilder};
pub use self::figures::ShardFigures;
pub use self::participant::{Change, Participant};
pub use self::record::Versions;
pub use self::tenure::Tenure;

use self::figures::ShardFiguresRecorder;
use self::session::Session;
use self::tenures::Tenures;
use crate::leadership::{Clock, LeaderElection, LeaseTiming};
use crate::rng::Rng;

mod assignment;
mod builder;
mod figures;
mod member;
mod participant;
mod record;
mod session;
mod tenure;
mod tenures;

/// A group of processes that divide the objects of their controllers, and this process as a member
/// of it. Cheap to clone; see the [module](self).
///
/// Its requests need `list`, `get`, `create`, `update` and `delete` for `leases` in the group
/// `coordination.k8s.io`. The client should not repeat requests by itself: use
/// [`kube_informer::client()`].
#[derive(Clone)]
pub struct ShardGroup {
    parts: Arc<GroupParts>,
}

struct GroupParts {
    name: Arc<str>,
    settings: Settings,
    tenures: Arc<Tenures>,
    figures: ShardFiguresRecorder,
    rng: Mutex<Rng>,
    is_running: AtomicBool,
}

/// The checked settings of a group.
struct Settings {
    client: Client,
    namespace: String,
    key: ShardKey,
    /// The name of this process.
    member: String,
    ranges: usize,
    timing: LeaseTiming,
    drain_deadline: Duration,
    clock: Clock,
}

impl ShardGroup {
    /// Returns a builder for a group whose leases are in this namespace, and begin with this name.
    pub fn builder(client: Client, namespace: impl Into<String>, name: impl Into<String>) -> ShardGroupBuilder {
        ShardGroupBuilder::new(client, namespace.into(), name.into())
    }

    fn new(name: Arc<str>, settings: Settings, rng: Rng) -> Self {
        let (tenures, figures) = (Arc::new(Tenures::new()), ShardFiguresRecorder::default());
        let (rng, is_running) = (Mutex::new(rng), AtomicBool::new(false));
        Self { parts: Arc::new(GroupParts { name, settings, tenures, figures, rng, is_running }) }
    }

    /// The name of the group.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The name of this process among the members.
    #[must_use]
    pub fn member(&self) -> &str {
        &self.parts.settings.member
    }

    /// What decides to which range an object belongs.
    #[must_use]
    pub fn key(&self) -> ShardKey {
        self.parts.settings.key
    }

    /// Returns a snapshot of what was counted.
    #[must_use]
    pub fn figures(&self) -> ShardFigures {
        ShardFigures { ranges_held: self.parts.tenures.count(), ..self.parts.figures.snapshot() }
    }

    /// Whether both are the same member of the same group.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }

    /// Adds a participant, which works for the ranges that this member holds and will hold.
    #[must_use]
    pub fn participate(&self) -> Participant {
        Participant::new(&self.parts.tenures)
    }

    /// Is a member of the group until `stop` completes, and then until all ranges are released.
    ///
    /// Failed requests are logged and repeated. If this future is dropped, all ranges are lost at
    /// once, without a request: others take them over when the lease has expired. Only one call
    /// runs at a time; another one returns at once.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        if self.parts.is_running.swap(true, Ordering::AcqRel) {
            error!(group = self.name(), member = self.member(), "the member runs already");
            return;
        }
        let _running = Running(&self.parts.is_running);
        let (leaving, leave) = watch::channel(false);
        let mut sessions = pin!(self.parts.sessions(leave));
        tokio::select! {
            biased;
            () = stop => {}
            () = &mut sessions => return,
        }
        leaving.send_replace(true);
        sessions.await;
    }
}

/// Says that a member runs, until it is dropped.
struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl GroupParts {
    /// One session after another, until the member is to leave.
    async fn sessions(&self, mut leave: watch::Receiver<bool>) {
        let mut number = self.rng().next_u64() & 0xffff;
        loop {
            number += 1;
            let identity: Arc<str> = format!("{}.{number}", self.settings.member).into();
            let Some(mut election) = self.election(&identity) else { return };
            let acquired = tokio::select! {
                biased;
                _ = leave.wait_for(|is_leaving| *is_leaving) => None,
                leadership = election.acquire() => Some(leadership),
            };
            let mut has_lost = false;
            if let Some(leadership) = acquired {
                let mut session = Session::new(self, Arc::clone(&identity), leadership);
                let lost = tokio::select! {
                    biased;
                    lost = election.hold() => Some(lost),
                    () = session.coordinate(leave.clone()) => None,
                };
                if let Some(lost) = lost {
                    has_lost = true;
                    session.lost(&lost);
                }
            }
            // Logged. Others see then that the session has ended.
            election.release().await.ok();
            if *leave.borrow() {
                // As long as the record names it, its lease shows others that it has ended.
                if !has_lost {
                    self.delete(&identity).await;
                }
                return;
            }
        }
    }

    /// The heartbeat of a session.
    fn election(&self, identity: &str) -> Option<LeaderElection> {
        let Settings { client, namespace, timing, clock, .. } = &self.settings;
        let name = format!("{}.{identity}", self.name);
        let labels = record::metadata(&name, &self.name).labels.unwrap_or_default();
        let election = LeaderElection::builder(client.clone(), namespace, name).identity(identity).timing(*timing);
        let election = election.clock(clock.clone()).seed(self.rng().next_u64()).labels(labels).build();
        // The names were checked.
        election.inspect_err(|error| error!(group = &*self.name, %error, "there is no member")).ok()
    }

    /// Deletes the lease of a session that has ended. It is deleted by others otherwise.
    async fn delete(&self, identity: &str) {
        let leases = Api::<Lease>::namespaced(self.settings.client.clone(), &self.settings.namespace);
        let (name, params) = (format!("{}.{identity}", self.name), DeleteParams::default());
        let until = self.settings.clock.now() + self.settings.timing.renew_deadline() / 2;
        if let Some(Err(error)) = self.settings.clock.timeout_at(until, Box::pin(leases.delete(&name, &params))).await {
            info!(group = &*self.name, lease = name, %error, "not deleted");
        }
    }

    /// A generator of its own.
    fn rng(&self) -> Rng {
        Rng::seeded(self.rng.lock().next_u64())
    }
}

impl fmt::Debug for ShardGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardGroup")
            .field("name", &self.name())
            .field("member", &self.member())
            .field("ranges_held", &self.parts.tenures.count())
            .finish_non_exhaustive()
    }
}
