//! What a member of a group decides: which ranges it claims, drains and releases, and which members
//! have expired. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::jiff::Timestamp;
use kube_informer::shard::{HashRange, ShardKey};

use super::assignment::assign;
use super::record::{InvalidRecord, Record, Versions, metadata};
use crate::leadership::{LeaseObservation, holder, without_holder};

/// A member in one session: from the creation of its lease to the loss of it. The next session has
/// another identity, so that what a session has lost never returns to it.
#[derive(Debug)]
pub(super) struct Member {
    group: Arc<str>,
    identity: Arc<str>,
    key: ShardKey,
    /// How many ranges a new record gets.
    ranges: usize,
    lease_duration: Duration,
    pub(super) is_leaving: bool,
    /// The leases of members, as they were observed.
    leases: BTreeMap<String, LeaseObservation>,
    /// Members that the record names and that have no lease, and since when.
    absent: BTreeMap<String, Duration>,
    /// Ranges of others, and since when they have no owner if their holder has ended.
    unowned: BTreeMap<usize, Unowned>,
    held: BTreeMap<usize, Held>,
    has_seen_record: bool,
}

/// A range that this member holds in the record.
#[derive(Debug)]
struct Held {
    epoch: u64,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
struct Unowned {
    since: Duration,
    /// Whether it was released, or never held.
    is_free: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Held,
    Draining,
    /// To be released with these versions.
    Drained(Option<Versions>),
}

/// The local clock, and the time that is written into leases for people.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) clock: Duration,
    pub(super) wall: Timestamp,
}

/// The leases of a group, as one list returned them.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The lease with the record.
    pub(super) record: Option<Lease>,
    /// The leases of members, by identity.
    pub(super) members: BTreeMap<String, Lease>,
}

/// What is to be done after a list.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Ranges that are held from now on.
    pub(super) started: Vec<Claim>,
    /// Ranges that are not held any more, though this member has not released them.
    pub(super) lost: Vec<usize>,
    /// Ranges whose release was executed, though its response was lost.
    pub(super) released: Vec<usize>,
    /// Ranges that are to be released, once what runs for them has ended.
    pub(super) drain: Vec<usize>,
    /// Leases of members that have expired.
    pub(super) fence: Vec<LeaseWrite>,
    /// Leases of members that have ended, which no range names any more.
    pub(super) delete: Vec<Lease>,
    pub(super) record: Option<RecordWrite>,
}

/// A range that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) range: usize,
    pub(super) epoch: u64,
    /// What the last holder had seen; `None` if it has not released the range.
    pub(super) versions: Option<Versions>,
    /// Whether it was taken from a member that has expired.
    pub(super) is_takeover: bool,
    /// How long no living member held the range, as far as this member has observed it.
    pub(super) unowned: Duration,
}

#[derive(Debug)]
pub(super) enum LeaseWrite {
    Create(Lease),
    Replace(Lease),
}

/// A change of the record.
#[derive(Debug)]
pub(super) struct RecordWrite {
    pub(super) request: LeaseWrite,
    pub(super) claims: Vec<Claim>,
    pub(super) released: Vec<usize>,
}

/// A member of the group, as far as it concerns the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Alive,
    /// Its lease has no holder: it cannot be renewed any more.
    Fenced,
    /// Its lease has expired, or it has none for as long.
    Expired,
    /// It has no lease, but may not know that yet.
    Absent,
}

impl Member {
    pub(super) fn new(
        group: Arc<str>,
        identity: Arc<str>,
        key: ShardKey,
        ranges: usize,
        lease_duration: Duration,
    ) -> Self {
        Self {
            group,
            identity,
            key,
            ranges,
            lease_duration,
            is_leaving: false,
            leases: BTreeMap::new(),
            absent: BTreeMap::new(),
            unowned: BTreeMap::new(),
            held: BTreeMap::new(),
            has_seen_record: false,
        }
    }

    /// Whether ranges are left that this member holds.
    pub(super) fn holds_any(&self) -> bool {
        !self.held.is_empty()
    }

    /// The hashes of a range.
    pub(super) fn range(&self, range: usize) -> Option<HashRange> {
        let size = (1_u128 << 64) / self.ranges as u128;
        let start = size.checked_mul(range as u128)?;
        HashRange::new(u64::try_from(start).ok()?, start + size)
    }

    /// Nothing runs any more for a range, and nothing more is written for it.
    pub(super) fn drained(&mut self, range: usize, versions: Option<Versions>) {
        if let Some(held) = self.held.get_mut(&range) {
            held.phase = Phase::Drained(versions);
        }
    }

    /// The server has executed a change of the record.
    pub(super) fn committed(&mut self, write: &RecordWrite) {
        for range in &write.released {
            self.held.remove(range);
        }
        for claim in &write.claims {
            self.unowned.remove(&claim.range);
            self.held.insert(claim.range, Held { epoch: claim.epoch, phase: Phase::Held });
        }
    }

    /// Decides what follows from a list of the group's leases.
    ///
    /// The list must have been requested after the last response to a change of the record.
    pub(super) fn plan(&mut self, view: View, now: Now) -> Result<Plan, InvalidRecord> {
        let View { record: lease, members } = view;
        self.observe(members, now.clock);
        let mut plan = Plan::default();
        if self.life(&self.identity, now.clock) != Life::Alive {
            // The heartbeat will fail.
            return Ok(plan);
        }
        let read = lease.as_ref().map(|lease| Record::read(lease, self.key)).transpose()?.flatten();
        if read.is_none() && self.has_seen_record {
            // Removed by hand. Members that have not read that yet may still write.
            plan.lost.extend(std::mem::take(&mut self.held).into_keys());
        }
        let before = read.unwrap_or_else(|| Record::new(self.key, self.ranges));
        self.ranges = before.ranges.len();
        self.compare(&before, &mut plan);
        self.fence(&before, now, &mut plan);
        self.change(&before, lease.as_ref(), now, &mut plan);
        self.has_seen_record |= lease.is_some();
        Ok(plan)
    }

    fn observe(&mut self, members: BTreeMap<String, Lease>, now: Duration) {
        let mut before = std::mem::take(&mut self.leases);
        for (identity, lease) in members {
            let observed = LeaseObservation::update(before.remove(&identity), lease, now);
            self.leases.insert(identity, observed);
        }
    }

    fn life(&self, identity: &str, now: Duration) -> Life {
        match self.leases.get(identity) {
            Some(observed) if holder(&observed.lease) != identity => Life::Fenced,
            Some(observed) if observed.is_valid(now) => Life::Alive,
            Some(_) => Life::Expired,
            None => match self.absent.get(identity) {
                Some(since) if now >= *since + self.lease_duration => Life::Expired,
                _ => Life::Absent,
            },
        }
    }

    /// Compares what the record says of this member with what it holds.
    fn compare(&mut self, record: &Record, plan: &mut Plan) {
        let identity = Arc::clone(&self.identity);
        let own = |range: usize| {
            let entry = record.ranges.get(range)?;
            (entry.holder.as_deref() == Some(&*identity)).then_some(entry.epoch)
        };
        for (range, held) in &self.held {
            match own(*range) {
                Some(epoch) if epoch == held.epoch => {}
                // The response to its release was lost.
                None if matches!(held.phase, Phase::Drained(_)) => plan.released.push(*range),
                _ => plan.lost.push(*range),
            }
        }
        plan.lost.iter().chain(&plan.released).for_each(|range| drop(self.held.remove(range)));
        // The response to a claim was lost.
        for range in 0..record.ranges.len() {
            if let Some(epoch) = own(range).filter(|_| !self.held.contains_key(&range)) {
                self.held.insert(range, Held { epoch, phase: Phase::Held });
                let (versions, unowned) = (None, Duration::ZERO);
                plan.started.push(Claim { range, epoch, versions, is_takeover: false, unowned });
            }
        }
    }

    /// Takes their leases from members that have expired, and removes leases without use.
    fn fence(&mut self, record: &Record, now: Now, plan: &mut Plan) {
        let named: BTreeSet<&str> = record.ranges.iter().filter_map(|entry| entry.holder.as_deref()).collect();
        let before = std::mem::take(&mut self.absent);
        for identity in named.iter().filter(|identity| !self.leases.contains_key(**identity)) {
            let since = before.get(*identity).copied().unwrap_or(now.clock);
            self.absent.insert((*identity).to_owned(), since);
        }
        for (identity, observed) in &self.leases {
            match self.life(identity, now.clock) {
                Life::Expired => {
                    plan.fence.push(LeaseWrite::Replace(without_holder(observed.lease.clone(), now.wall)));
                }
                Life::Fenced if !named.contains(identity.as_str()) => plan.delete.push(observed.lease.clone()),
                _ => {}
            }
        }
        for identity in self.absent.keys().filter(|identity| self.life(identity, now.clock) == Life::Expired) {
            // Created without a holder, so that a delayed creation by that member fails.
            let name = format!("{}.{identity}", self.group);
            let lease = Lease { metadata: metadata(&name, &self.group), spec: Some(LeaseSpec::default()) };
            plan.fence.push(LeaseWrite::Create(without_holder(lease, now.wall)));
        }
    }

    /// Decides how the record is to change.
    fn change(&mut self, before: &Record, lease: Option<&Lease>, now: Now, plan: &mut Plan) {
        let desired = self.desired(before, now.clock);
        let mut after = before.clone();
        let (mut claims, mut released) = (Vec::new(), Vec::new());
        for (range, entry) in after.ranges.iter_mut().enumerate() {
            let is_desired = desired.get(range).is_some_and(|identity| *identity == *self.identity);
            if let Some(held) = self.held.get_mut(&range) {
                match &held.phase {
                    Phase::Held if !is_desired => {
                        held.phase = Phase::Draining;
                        plan.drain.push(range);
                    }
                    Phase::Drained(versions) => {
                        (entry.holder, entry.versions) = (None, versions.clone());
                        released.push(range);
                    }
                    Phase::Held | Phase::Draining => {}
                }
                continue;
            }
            let Some(since) = self.unowned_since(range, entry.holder.as_deref(), now.clock) else { continue };
            if is_desired {
                let is_takeover = entry.holder.is_some();
                let versions = entry.versions.take().filter(|_| !is_takeover);
                entry.epoch = entry.epoch.saturating_add(1);
                entry.holder = Some(self.identity.to_string());
                let unowned = now.clock.saturating_sub(since);
                claims.push(Claim { range, epoch: entry.epoch, versions, is_takeover, unowned });
            }
        }
        if self.is_leaving {
            after.leaving.insert(self.identity.to_string());
        }
        after.leaving.retain(|identity| self.leases.get(identity).is_some_and(|seen| holder(&seen.lease) == identity));
        if after != *before {
            let written = after.written(lease, &self.group);
            let request = if lease.is_some() { LeaseWrite::Replace(written) } else { LeaseWrite::Create(written) };
            plan.record = Some(RecordWrite { request, claims, released });
        }
    }

    /// The members that are to hold the ranges.
    fn desired(&self, record: &Record, now: Duration) -> Vec<String> {
        let is_candidate = |identity: &&String| {
            let is_leaving = record.leaving.contains(*identity) || (self.is_leaving && ***identity == *self.identity);
            !is_leaving && self.life(identity, now) == Life::Alive
        };
        let members: Vec<&String> = self.leases.keys().filter(is_candidate).collect();
        let names: Vec<&str> = members.iter().map(|identity| process(identity)).collect();
        assign(record.ranges.len(), &names).into_iter().map(|member| members[member].clone()).collect()
    }

    /// Since when a range has no owner; `None` if it may have one, so that it cannot be claimed.
    fn unowned_since(&mut self, range: usize, of: Option<&str>, now: Duration) -> Option<Duration> {
        let before = self.unowned.get(&range).copied();
        let life = of.map(|identity| (identity, self.life(identity, now)));
        let since = match (life, before) {
            (None, Some(Unowned { since, is_free: true })) | (Some((_, Life::Fenced)), Some(Unowned { since, .. })) => {
                since
            }
            (None, _) | (Some((_, Life::Fenced)), None) => now,
            (Some((identity, _)), _) => {
                // From its last renewal on, should it turn out to have ended.
                let last = self.leases.get(identity).map(|observed| observed.since);
                let since = last.or_else(|| self.absent.get(identity).copied()).unwrap_or(now);
                self.unowned.insert(range, Unowned { since, is_free: false });
                return None;
            }
        };
        self.unowned.insert(range, Unowned { since, is_free: of.is_none() });
        Some(since)
    }
}

/// The name of the process of a member, which is the same in all of its sessions.
fn process(identity: &str) -> &str {
    identity.rsplit_once('.').map_or(identity, |(process, _)| process)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use super::*;

    fn member(identity: &str) -> Member {
        Member::new("group".into(), identity.into(), ShardKey::Namespace, 4, Duration::from_secs(15))
    }

    fn at(seconds: u64) -> Now {
        Now { clock: Duration::from_secs(seconds), wall: Timestamp::UNIX_EPOCH }
    }

    /// A lease of a member, as it wrote it.
    fn lease(of: &str, version: &str) -> (String, Lease) {
        let spec = LeaseSpec {
            holder_identity: Some(of.to_owned()),
            lease_duration_seconds: Some(15),
            ..LeaseSpec::default()
        };
        let mut lease = Lease { metadata: metadata(&format!("group.{of}"), "group"), spec: Some(spec) };
        lease.metadata.resource_version = Some(version.to_owned());
        (of.to_owned(), lease)
    }

    fn record(ranges: [(Option<&str>, u64); 4]) -> Record {
        let mut record = Record::new(ShardKey::Namespace, 4);
        for (entry, (holder, epoch)) in record.ranges.iter_mut().zip(ranges) {
            (entry.holder, entry.epoch) = (holder.map(str::to_owned), epoch);
        }
        record
    }

    fn view<const N: usize>(record: &Record, members: [(String, Lease); N]) -> View {
        View { record: Some(record.written(None, "group")), members: members.into() }
    }

    fn read(write: &LeaseWrite) -> Record {
        let (LeaseWrite::Create(lease) | LeaseWrite::Replace(lease)) = write;
        Record::read(lease, ShardKey::Namespace).unwrap().unwrap()
    }

    #[test]
    fn the_first_member_creates_the_record_and_claims_everything() {
        let mut a = member("a.1");
        let members = [lease("a.1", "1")].into();
        let plan = a.plan(View { record: None, members }, at(0)).unwrap();
        let write = plan.record.unwrap();
        assert!(matches!(write.request, LeaseWrite::Create(_)));
        assert_eq!(read(&write.request), record([(Some("a.1"), 1); 4]));
        assert_eq!(write.claims.len(), 4);
        assert!(!a.holds_any(), "not before the server has executed it");
        a.committed(&write);
        assert!(a.holds_any());
    }

    #[test]
    fn a_range_of_a_living_member_is_not_claimed_and_one_that_is_not_assigned_is_drained() {
        let all = record([(Some("a.1"), 1); 4]);
        let mut b = member("b.1");
        let plan = b.plan(view(&all, [lease("a.1", "1"), lease("b.1", "1")]), at(0)).unwrap();
        assert!(plan.record.is_none() && plan.drain.is_empty() && plan.fence.is_empty());
        // The response to its claims was lost, so it learns of them here.
        let mut a = member("a.1");
        let plan = a.plan(view(&all, [lease("a.1", "1"), lease("b.1", "1")]), at(0)).unwrap();
        assert_eq!((plan.started.len(), plan.drain.len()), (4, 2));
        assert!(plan.record.is_none());
        let range = plan.drain[0];
        let versions = Versions::from([("pods".to_owned(), 7.into())]);
        a.drained(range, Some(versions.clone()));
        let plan = a.plan(view(&all, [lease("a.1", "2"), lease("b.1", "2")]), at(2)).unwrap();
        let write = plan.record.unwrap();
        assert_eq!((&write.released, plan.drain.len()), (&vec![range], 0));
        let after = read(&write.request);
        assert_eq!((&after.ranges[range].holder, &after.ranges[range].versions), (&None, &Some(versions.clone())));
        a.committed(&write);
        let plan = b.plan(view(&after, [lease("a.1", "2"), lease("b.1", "2")]), at(3)).unwrap();
        let claim = Claim { range, epoch: 2, versions: Some(versions), is_takeover: false, unowned: Duration::ZERO };
        assert_eq!(plan.record.unwrap().claims, [claim]);
    }

    #[test]
    fn a_lease_that_was_seen_unchanged_for_its_duration_is_fenced_before_its_ranges_are_claimed() {
        let all = record([(Some("a.1"), 3); 4]);
        let mut b = member("b.1");
        for (second, version) in [(0, "1"), (10, "2"), (24, "2")] {
            let plan = b.plan(view(&all, [lease("a.1", version), lease("b.1", "1")]), at(second));
            assert!(plan.unwrap().fence.is_empty(), "{second}");
            // It renews its own one.
            b.leases.clear();
            b.leases.extend([lease("a.1", version)].map(|(of, lease)| {
                let since = Duration::from_secs(second.min(10));
                (of, LeaseObservation { lease, since })
            }));
        }
        let plan = b.plan(view(&all, [lease("a.1", "2"), lease("b.1", "9")]), at(25)).unwrap();
        let [LeaseWrite::Replace(fenced)] = &plan.fence[..] else { panic!("{plan:?}") };
        assert_eq!((holder(fenced), fenced.metadata.resource_version.as_deref()), ("", Some("2")));
        assert!(plan.record.is_none(), "it may have been renewed meanwhile");
        let plan = b.plan(view(&all, [("a.1".to_owned(), fenced.clone()), lease("b.1", "9")]), at(26)).unwrap();
        assert!(plan.delete.is_empty(), "the record names it");
        let write = plan.record.unwrap();
        assert_eq!(read(&write.request), record([(Some("b.1"), 4); 4]));
        assert!(write.claims.iter().all(|claim| claim.is_takeover && claim.versions.is_none()));
        assert_eq!(write.claims[0].unowned, Duration::from_secs(16), "since it was last seen to change");
        b.committed(&write);
        let after = read(&write.request);
        let plan = b.plan(view(&after, [("a.1".to_owned(), fenced.clone()), lease("b.1", "9")]), at(27)).unwrap();
        assert_eq!(plan.delete.len(), 1);
    }

    #[test]
    fn a_member_without_a_lease_is_fenced_by_creating_one_that_no_one_holds() {
        let all = record([(Some("a.1"), 1); 4]);
        let mut b = member("b.1");
        assert!(b.plan(view(&all, [lease("b.1", "1")]), at(0)).unwrap().fence.is_empty());
        assert!(b.plan(view(&all, [lease("b.1", "2")]), at(14)).unwrap().fence.is_empty());
        let plan = b.plan(view(&all, [lease("b.1", "3")]), at(15)).unwrap();
        let [LeaseWrite::Create(fenced)] = &plan.fence[..] else { panic!("{plan:?}") };
        assert_eq!((fenced.metadata.name.as_deref(), holder(fenced)), (Some("group.a.1"), ""));
        assert!(plan.record.is_none());
    }

    #[test]
    fn ranges_that_the_record_gives_to_another_one_are_lost() {
        let mut a = member("a.1");
        a.plan(view(&record([(Some("a.1"), 1); 4]), [lease("a.1", "1")]), at(0)).unwrap();
        let forced = record([(Some("a.1"), 1), (Some("a.1"), 2), (None, 1), (Some("x.1"), 2)]);
        let plan = a.plan(view(&forced, [lease("a.1", "2"), lease("x.1", "1")]), at(2)).unwrap();
        assert_eq!(plan.lost, [1, 2, 3]);
        assert_eq!(plan.started.iter().map(|claim| (claim.range, claim.epoch)).collect::<Vec<_>>(), [(1, 2)]);
        let gone = View { record: None, members: [lease("a.1", "3")].into() };
        assert_eq!(a.plan(gone, at(4)).unwrap().lost, [0, 1]);
    }

    #[test]
    fn a_member_that_leaves_drains_everything_and_is_assigned_nothing() {
        let mut a = member("a.1");
        let all = record([(Some("a.1"), 1); 4]);
        a.plan(view(&all, [lease("a.1", "1")]), at(0)).unwrap();
        a.is_leaving = true;
        let plan = a.plan(view(&all, [lease("a.1", "2")]), at(2)).unwrap();
        assert_eq!(plan.drain, [0, 1, 2, 3]);
        let leaving = read(&plan.record.unwrap().request);
        assert_eq!(leaving.leaving.iter().collect::<Vec<_>>(), ["a.1"]);
        // Others expect nothing of it any more.
        let mut b = member("b.1");
        let free = Record { leaving: leaving.leaving, ..record([(None, 1); 4]) };
        let plan = b.plan(view(&free, [lease("a.1", "2"), lease("b.1", "1")]), at(3)).unwrap();
        assert_eq!(plan.record.unwrap().claims.len(), 4);
    }

    #[test]
    fn a_member_whose_own_lease_is_not_valid_does_nothing() {
        let mut a = member("a.1");
        let plan = a.plan(view(&record([(None, 1); 4]), [lease("b.1", "1")]), at(0)).unwrap();
        assert!(plan.record.is_none());
    }

    #[test]
    fn ranges_cover_all_hashes() {
        let a = member("a.1");
        let all: Vec<HashRange> = (0..4).map(|range| a.range(range).unwrap()).collect();
        assert_eq!((all[0].start(), all[3].end()), (0, 1 << 64));
        assert!(all.windows(2).all(|pair| pair[0].end() == u128::from(pair[1].start())));
    }
}
