//! A session of a member: sends the requests that the member decides on.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Error, ResourceExt};
use kube_informer::shard::HashRange;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::figures::ShardFiguresRecorder;
use super::member::{Claim, LeaseWrite, Member, Now, Plan, RecordWrite, View};
use super::record::{GROUP, Versions};
use super::tenure::Tenure;
use super::tenures::Tenures;
use super::{GroupParts, Settings};
use crate::leadership::{Leadership, LeadershipLost, LossCause, Term};
use crate::rng::Rng;

/// A session, from the acquisition of the member's lease to its loss or release. Dropping it ends
/// all of its tenures.
pub(super) struct Session<'a> {
    group: &'a str,
    settings: &'a Settings,
    tenures: &'a Arc<Tenures>,
    figures: &'a ShardFiguresRecorder,
    identity: Arc<str>,
    leases: Api<Lease>,
    member: Member,
    leadership: Leadership,
    rng: Rng,
    /// The last error, if the last request failed: each cause is reported once.
    failure: Option<String>,
}

/// Waits for the work of ranges to end.
type Drains = FuturesUnordered<BoxFuture<'static, Drained>>;

/// A range whose work has ended.
struct Drained {
    range: usize,
    versions: Option<Versions>,
}

/// When the next round follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Something has changed, or was changed by another member meanwhile.
    Soon,
    Later,
}

impl<'a> Session<'a> {
    pub(super) fn new(parts: &'a GroupParts, identity: Arc<str>, leadership: Leadership) -> Self {
        let GroupParts { name, settings, tenures, figures, .. } = parts;
        let duration = settings.timing.lease_duration();
        let member = Member::new(Arc::clone(name), Arc::clone(&identity), settings.key, settings.ranges, duration);
        Self {
            group: name,
            settings,
            tenures,
            figures,
            identity,
            leases: Api::namespaced(settings.client.clone(), &settings.namespace),
            member,
            leadership,
            rng: parts.rng(),
            failure: None,
        }
    }

    /// Claims and releases ranges, until the member is to leave and has released all of them.
    pub(super) async fn coordinate(&mut self, mut leave: watch::Receiver<bool>) {
        let (clock, mut drains) = (self.settings.clock.clone(), Drains::new());
        loop {
            self.member.is_leaving = *leave.borrow();
            let next = self.round(&mut drains).await;
            if self.member.is_leaving && !self.member.holds_any() {
                return;
            }
            let period = self.settings.timing.retry_period();
            let wait = match next {
                Next::Soon => period.mul_f64(0.02 * self.rng.next_fraction()),
                Next::Later => period.mul_f64(1.0 + 0.2 * self.rng.next_fraction()),
            };
            let until = clock.now() + wait;
            tokio::select! {
                biased;
                _ = leave.wait_for(|is_leaving| *is_leaving), if !self.member.is_leaving => {}
                Some(drained) = drains.next(), if !drains.is_empty() => {
                    self.drained(drained);
                    // One change of the record releases all ranges that have ended.
                    while let Some(Some(drained)) = drains.next().now_or_never() {
                        self.drained(drained);
                    }
                }
                () = clock.sleep_until(until) => {}
            }
        }
    }

    fn drained(&mut self, Drained { range, versions }: Drained) {
        self.member.drained(range, versions);
    }

    /// Reads the leases of the group, and does what follows from them.
    async fn round(&mut self, drains: &mut Drains) -> Next {
        let params = ListParams::default().labels(&format!("{GROUP}={}", self.group));
        let listed = self.within_time(self.leases.list(&params)).await;
        let leases = match listed {
            Ok(listed) => listed.items,
            Err(error) => {
                self.failed("reading the leases of the group", &error);
                return Next::Later;
            }
        };
        let plan = match self.member.plan(view(self.group, leases), self.now()) {
            Ok(plan) => plan,
            Err(error) => {
                self.failed("using the record of the group", &error);
                return Next::Later;
            }
        };
        self.execute(plan, drains).await
    }

    async fn execute(&mut self, plan: Plan, drains: &mut Drains) -> Next {
        let Plan { started, lost, released, drain, fence, delete, record } = plan;
        self.lose(lost);
        self.released(released);
        self.start(started);
        drains.extend(drain.into_iter().filter_map(|range| self.drain(range)));
        let (mut next, mut is_answered) = (Next::Later, true);
        for lease in fence {
            match self.write(&lease).await {
                Ok(()) => {
                    let (LeaseWrite::Create(lease) | LeaseWrite::Replace(lease)) = &lease;
                    info!(group = self.group, lease = lease.name_any(), "the lease of a member has expired");
                    next = Next::Soon;
                }
                Err(error) if is_conflict(&error) => next = Next::Soon,
                Err(error) => {
                    is_answered = false;
                    self.failed("writing the lease of a member that has expired", &error);
                }
            }
        }
        if let Some(write) = record {
            match self.write(&write.request).await {
                Ok(()) => self.committed(write),
                Err(error) if is_conflict(&error) => next = Next::Soon,
                Err(error) => {
                    is_answered = false;
                    self.failed("writing the record of the group", &error);
                }
            }
        }
        for lease in delete {
            let preconditions = Preconditions {
                uid: lease.metadata.uid.clone(),
                resource_version: lease.metadata.resource_version.clone(),
            };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            let name = lease.name_any();
            // Others try it too, and it does no harm.
            if let Err(error) = self.within_time(self.leases.delete(&name, &params)).await {
                debug!(group = self.group, lease = name, %error, "not deleted");
            }
        }
        if is_answered && self.failure.take().is_some() {
            info!(group = self.group, "requests for the leases of the group succeed again");
        }
        next
    }

    fn committed(&mut self, write: RecordWrite) {
        self.member.committed(&write);
        let released = write.released.len();
        self.released(write.released);
        self.start(write.claims);
        let (group, member, held) = (self.group, &*self.identity, self.tenures.count());
        info!(group, member, released, held, "ranges were claimed or released");
    }

    fn released(&self, ranges: Vec<usize>) {
        let released = self.tenures.remove(ranges).len();
        self.figures.record(|figures| figures.released += released as u64);
    }

    fn start(&self, claims: Vec<Claim>) {
        let Some(parent) = self.leadership.term() else { return };
        self.figures.record(|figures| {
            for claim in &claims {
                let count = if claim.is_takeover { &mut figures.taken_over } else { &mut figures.claimed };
                *count += 1;
                figures.without_owner += claim.unowned;
                figures.longest_without_owner = figures.longest_without_owner.max(claim.unowned);
            }
        });
        self.tenures.start(claims.into_iter().map(|claim| {
            let name = format!("{}/{}[{}]", self.settings.namespace, self.group, claim.range);
            let term = Arc::new(Term::within(Arc::clone(parent), name.into()));
            let range = self.member.range(claim.range).unwrap_or(HashRange::ALL);
            Tenure::new(range, claim.range, claim.epoch, claim.versions, Leadership::elected(term))
        }));
    }

    fn lose(&self, lost: Vec<usize>) {
        let lost = self.tenures.remove(lost);
        if lost.is_empty() {
            return;
        }
        warn!(group = self.group, member = &*self.identity, ranges = lost.len(), "ranges were taken by force");
        self.figures.record(|figures| figures.lost += lost.len() as u64);
        end(&lost, &LossCause::TakenOver(String::new()));
    }

    /// Waits until nothing runs any more for a range, and nothing more is written.
    fn drain(&self, range: usize) -> Option<BoxFuture<'static, Drained>> {
        let tenure = self.tenures.drain(range)?;
        let (tenures, clock) = (Arc::clone(self.tenures), self.settings.clock.clone());
        let deadline = clock.now() + self.settings.drain_deadline;
        Some(Box::pin(async move {
            let versions = match clock.timeout_at(deadline, tenures.drained(range)).await {
                Some(()) => tenures.versions(range),
                None => None,
            };
            if let Some(term) = tenure.leadership().term() {
                term.end(LossCause::Released);
                term.idle().await;
            }
            Drained { range, versions }
        }))
    }

    async fn write(&self, write: &LeaseWrite) -> Result<(), Error> {
        let params = PostParams::default();
        let request = async {
            match write {
                LeaseWrite::Create(lease) => self.leases.create(&params, lease).await,
                LeaseWrite::Replace(lease) => self.leases.replace(&lease.name_any(), &params, lease).await,
            }
        };
        self.within_time(request).await.map(drop)
    }

    /// Limits the time of a request, so that a round does not outlast the leadership it began with.
    async fn within_time<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let until = self.settings.clock.now() + self.settings.timing.renew_deadline() / 2;
        // Boxed, because the futures of kube are large.
        let done = self.settings.clock.timeout_at(until, Box::pin(request)).await;
        done.unwrap_or_else(|| Err(Error::Service("no response in time".into())))
    }

    fn failed(&mut self, doing: &str, error: &dyn std::error::Error) {
        let causes = std::iter::successors(error.source(), |error| error.source());
        let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
        let error = text.escape_debug().to_string();
        if self.failure.as_ref() == Some(&error) {
            debug!(group = self.group, error, "still {doing} fails");
        } else {
            warn!(group = self.group, error, "{doing} has failed; it is tried again");
            self.failure = Some(error);
        }
    }

    fn now(&self) -> Now {
        Now { clock: self.settings.clock.now(), wall: Timestamp::now() }
    }

    /// The session has lost its lease.
    pub(super) fn lost(self, lost: &LeadershipLost) {
        let tenures = self.tenures.remove(0..super::record::MAX_RANGES);
        let ranges = tenures.len();
        warn!(group = self.group, member = &*self.identity, ranges, cause = %lost.cause(), "the ranges are lost");
        self.figures.record(|figures| figures.lost += ranges as u64);
        end(&tenures, lost.cause());
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        end(&self.tenures.remove(0..super::record::MAX_RANGES), &LossCause::Released);
    }
}

fn end(tenures: &[Tenure], cause: &LossCause) {
    for term in tenures.iter().filter_map(|tenure| tenure.leadership().term()) {
        term.end(cause.clone());
    }
}

/// Sorts the leases of a group.
fn view(group: &str, leases: Vec<Lease>) -> View {
    let mut view = View::default();
    for lease in leases {
        let name = lease.name_any();
        if name == group {
            view.record = Some(lease);
        } else if let Some(identity) = name.strip_prefix(group).and_then(|rest| rest.strip_prefix('.')) {
            view.members.insert(identity.to_owned(), lease);
        }
    }
    view
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}
