//! A lease as a process has observed it: expiry by the local clock. Pure.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

/// A lease, and for how long it has been seen unchanged. The times written in it are never
/// compared.
#[derive(Debug)]
pub(crate) struct LeaseObservation {
    pub(crate) lease: Lease,
    /// When it was first seen as it is, by the local clock.
    pub(crate) since: Duration,
}

impl LeaseObservation {
    /// The observation after reading the lease at `now`.
    pub(crate) fn update(before: Option<Self>, lease: Lease, now: Duration) -> Self {
        let since = match before {
            Some(before) if is_same(&before.lease, &lease) => before.since,
            _ => now,
        };
        Self { lease, since }
    }

    /// Whether the lease may still be held: it was seen unchanged for less than its duration.
    pub(crate) fn is_valid(&self, now: Duration) -> bool {
        let seconds = spec(&self.lease).and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        now < self.since + duration
    }
}

/// The holder of a lease: an empty text if it has none.
pub(crate) fn holder(lease: &Lease) -> &str {
    spec(lease).and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

/// The lease without a holder: whoever held it cannot renew it any more.
pub(crate) fn without_holder(mut lease: Lease, wall: Timestamp) -> Lease {
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some(String::new());
    spec.lease_duration_seconds = Some(1);
    spec.renew_time = Some(micro_time(wall));
    spec.acquire_time = Some(micro_time(wall));
    lease
}

/// A time as the server keeps it, so that what was written equals what is read.
pub(super) fn micro_time(wall: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(wall.as_microsecond()).unwrap_or(wall))
}

pub(super) fn spec(lease: &Lease) -> Option<&LeaseSpec> {
    lease.spec.as_ref()
}

/// Whether nothing was written between two reads. Not only the spec: a holder whose wall clock
/// stands still renews its lease too.
fn is_same(before: &Lease, lease: &Lease) -> bool {
    before.metadata.uid == lease.metadata.uid
        && before.metadata.resource_version == lease.metadata.resource_version
        && before.spec == lease.spec
}
