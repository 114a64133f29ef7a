//! The controllers' state of a deployment, its replica sets and their pods.

use super::write::PodRef;
use crate::generate::app::{Counts, FIRST_REVISION, Member};
use crate::generate::course::Stage;
use crate::generate::rng::mix;

/// A deployment.
#[derive(Debug)]
pub(super) struct Deployment {
    /// The index of the deployment in the generator.
    pub(super) index: u64,
    pub(super) wanted: u64,
    pub(super) generation: u64,
    /// Replica sets, the latest last.
    pub(super) sets: Vec<ReplicaSet>,
    pub(super) next_serial: u64,
    pub(super) reported: Counts,
    /// Hash of the pods in the last written endpoint slice; see [`Deployment::serving`].
    pub(super) served: u64,
    pub(super) attention: Attention,
}

/// Whether a reconciliation is scheduled for a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attention {
    Idle,
    Due,
    /// Never reconciled again: the deployment was deleted or is managed by other clients.
    Never,
}

/// A replica set: a revision and its pods.
#[derive(Debug)]
pub(super) struct ReplicaSet {
    pub(super) revision: u64,
    pub(super) rolled_out: i64,
    pub(super) members: Vec<Member>,
    pub(super) reported: Counts,
}

/// The pods to add and remove in one reconciliation step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Pods to create in the latest revision.
    pub(super) add: u64,
    /// Pods to delete from the latest revision.
    pub(super) remove: u64,
    /// Pods to delete from older revisions.
    pub(super) retire: u64,
}

impl Deployment {
    pub(super) fn new(index: u64, members: Vec<Member>) -> Self {
        let mut own = Self {
            index,
            wanted: members.len() as u64,
            generation: 1 + members.len() as u64,
            next_serial: members.iter().map(|member| member.serial + 1).max().unwrap_or(0),
            sets: vec![ReplicaSet { revision: FIRST_REVISION, rolled_out: 0, members, reported: Counts::default() }],
            reported: Counts::default(),
            served: 0,
            attention: Attention::Idle,
        };
        own.reported = own.counts();
        own.served = own.serving();
        own.sets[0].reported = own.sets[0].counts(own.wanted);
        own
    }

    pub(super) fn latest(&self) -> &ReplicaSet {
        self.sets.last().expect("a deployment has a replica set from the start")
    }

    pub(super) fn latest_mut(&mut self) -> &mut ReplicaSet {
        self.sets.last_mut().expect("a deployment has a replica set from the start")
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.sets.iter().flat_map(|set| &set.members)
    }

    /// Finds a pod and the index of its replica set.
    pub(super) fn find(&mut self, pod: PodRef) -> Option<(usize, &mut Member)> {
        self.sets.iter_mut().enumerate().find_map(|(number, set)| {
            let member = set.members.iter_mut().find(|member| member.serial == pod.serial)?;
            Some((number, member))
        })
    }

    pub(super) fn is_rolling(&self) -> bool {
        self.sets.iter().rev().skip(1).any(|set| !set.members.is_empty())
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            wanted: self.wanted,
            total: self.members().count() as u64,
            updated: self.latest().members.len() as u64,
            ready: self.members().filter(|member| member.course.stage == Stage::Ready).count() as u64,
        }
    }

    /// A hash of the addressed pods and their readiness.
    pub(super) fn serving(&self) -> u64 {
        let addressed =
            |member: &&Member| matches!(member.course.stage, Stage::Ready | Stage::Unready | Stage::Crashing);
        self.members().filter(addressed).fold(0, |sum: u64, member| {
            let ready = u64::from(member.course.stage == Stage::Ready);
            sum.wrapping_add(mix(member.serial << 1 | ready))
        })
    }

    /// The next step of a rolling update with maxSurge and maxUnavailable of 25%.
    pub(super) fn next_step(&self) -> Step {
        let Counts { wanted, total, updated, ready } = self.counts();
        let (surge, slack) = (wanted.div_ceil(4), wanted / 4);
        let old = total - updated;
        let old_unready = self.sets.iter().rev().skip(1).flat_map(|set| &set.members);
        let old_unready = old_unready.filter(|member| member.course.stage != Stage::Ready).count() as u64;
        Step {
            add: wanted.saturating_sub(updated).min((wanted + surge).saturating_sub(total)),
            remove: updated.saturating_sub(wanted),
            retire: old.min(old_unready + ready.saturating_sub(wanted.saturating_sub(slack))),
        }
    }
}

impl ReplicaSet {
    pub(super) fn counts(&self, wanted: u64) -> Counts {
        let total = self.members.len() as u64;
        let ready = self.members.iter().filter(|member| member.course.stage == Stage::Ready).count() as u64;
        Counts { wanted, total, updated: total, ready }
    }

    /// The pods to delete first: those that are not ready, then the youngest.
    pub(super) fn least(&self, count: usize) -> Vec<u64> {
        let mut serials: Vec<(bool, u64)> =
            self.members.iter().map(|member| (member.course.stage == Stage::Ready, member.serial)).collect();
        serials.sort_by_key(|&(ready, serial)| (ready, std::cmp::Reverse(serial)));
        serials.into_iter().take(count).map(|(_, serial)| serial).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::course::PodProgress;

    fn members(serials: std::ops::Range<u64>, stage: Stage) -> Vec<Member> {
        let member =
            |serial| Member { index: serial, serial, node: 0, course: PodProgress { stage, ..PodProgress::new(0) } };
        serials.map(member).collect()
    }

    #[test]
    fn a_rollout_adds_a_quarter_and_takes_away_what_may_be_missing() {
        let mut deployment = Deployment::new(0, members(0..8, Stage::Ready));
        assert_eq!(deployment.next_step(), Step { add: 0, remove: 0, retire: 0 });
        let reported = Counts::default();
        deployment.sets.push(ReplicaSet { revision: 8, rolled_out: 0, members: Vec::new(), reported });
        assert_eq!(deployment.next_step(), Step { add: 2, remove: 0, retire: 2 });
        deployment.latest_mut().members = members(8..10, Stage::Creating);
        deployment.sets[0].members.truncate(6);
        assert_eq!(deployment.next_step(), Step { add: 2, remove: 0, retire: 0 });
    }

    #[test]
    fn other_pods_that_serve_never_add_up_to_the_same() {
        let serving = |stages: [Stage; 4]| {
            let mut deployment = Deployment::new(0, members(0..4, Stage::Ready));
            deployment
                .latest_mut()
                .members
                .iter_mut()
                .zip(stages)
                .for_each(|(member, stage)| member.course.stage = stage);
            deployment.serving()
        };
        let (up, down) = (Stage::Ready, Stage::Unready);
        assert_ne!(serving([up, down, up, up]), serving([down, up, up, up]));
        assert_ne!(serving([up, up, Stage::Creating, down]), serving([up, Stage::Creating, up, down]));
    }

    #[test]
    fn what_does_not_work_goes_first() {
        let mut deployment = Deployment::new(0, members(0..3, Stage::Ready));
        deployment.latest_mut().members[1].course.stage = Stage::Crashing;
        assert_eq!(deployment.latest().least(2), [1, 2]);
    }
}
