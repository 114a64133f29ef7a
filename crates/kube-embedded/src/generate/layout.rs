//! The mapping from object indexes to objects: computed, never stored.
//!
//! Pods are generated in blocks of 64, the number of pods of a large node: one pod per daemon set,
//! then the replicas of fifteen workloads of very different sizes. A pod's owner, node and
//! namespace therefore follow from its index alone, however many pods are generated.

use std::ops::Range;

use super::rng::{Domain, SampleRng, mix};
use super::words;

pub(super) const PODS_IN_BLOCK: u64 = 64;
pub(super) const DEPLOYMENTS_IN_BLOCK: u64 = words::DEPLOYMENT_ROLES.len() as u64;
const STATEFUL_IN_BLOCK: u64 = words::STATEFUL_ROLES.len() as u64;
const JOBS_IN_BLOCK: u64 = words::JOB_ROLES.len() as u64;
const WORKLOADS_IN_BLOCK: u64 = DEPLOYMENTS_IN_BLOCK + STATEFUL_IN_BLOCK + JOBS_IN_BLOCK;
const DAEMONS_IN_BLOCK: u64 = words::DAEMON_SETS.len() as u64;
/// The pods of a workload are spread over this many nodes.
const NODES_IN_POOL: u64 = 64;

/// The current time of the generated cluster: 2026-06-01T00:00:00Z.
pub(crate) const NOW: i64 = 1_780_272_000;

/// The owner of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Deployment { block: u64, role: u64 },
    StatefulSet { block: u64, role: u64 },
    Job { block: u64, role: u64 },
    DaemonSet { which: usize },
}

impl Owner {
    /// The deployment with this index.
    pub(super) fn deployment(index: u64) -> Self {
        Self::Deployment { block: index / DEPLOYMENTS_IN_BLOCK, role: index % DEPLOYMENTS_IN_BLOCK }
    }

    pub(super) fn rng(self, seed: u64) -> SampleRng {
        match self {
            Self::DaemonSet { which } => SampleRng::new(seed, Domain::DaemonSet, which as u64),
            _ => SampleRng::new(seed, Domain::Workload, self.number()),
        }
    }

    /// Index among all workloads except daemon sets.
    fn number(self) -> u64 {
        match self {
            Self::Deployment { block, role } => block * WORKLOADS_IN_BLOCK + role,
            Self::StatefulSet { block, role } => block * WORKLOADS_IN_BLOCK + DEPLOYMENTS_IN_BLOCK + role,
            Self::Job { block, role } => block * WORKLOADS_IN_BLOCK + DEPLOYMENTS_IN_BLOCK + STATEFUL_IN_BLOCK + role,
            Self::DaemonSet { which } => which as u64,
        }
    }

    fn in_block(block: u64, slot: u64) -> Self {
        if slot < DEPLOYMENTS_IN_BLOCK {
            Self::Deployment { block, role: slot }
        } else if slot < DEPLOYMENTS_IN_BLOCK + STATEFUL_IN_BLOCK {
            Self::StatefulSet { block, role: slot - DEPLOYMENTS_IN_BLOCK }
        } else {
            Self::Job { block, role: slot - DEPLOYMENTS_IN_BLOCK - STATEFUL_IN_BLOCK }
        }
    }

    /// The workload's name, unique in the cluster regardless of namespaces.
    pub(super) fn name(self, seed: u64) -> String {
        let (block, role) = match self {
            Self::Deployment { block, role } => (block, words::DEPLOYMENT_ROLES[role as usize]),
            Self::StatefulSet { block, role } => (block, words::STATEFUL_ROLES[role as usize]),
            Self::Job { block, role } => (block, words::JOB_ROLES[role as usize]),
            Self::DaemonSet { which } => return words::DAEMON_SETS[which].0.to_owned(),
        };
        let components = words::COMPONENTS.len() as u64;
        let generation = block / components;
        // Multiplication by an odd number is a permutation modulo a power of two, so each
        // generation uses every component once.
        let factor = mix(seed ^ generation) | 1;
        let component = words::COMPONENTS[(block.wrapping_mul(factor) % components) as usize];
        if generation == 0 { format!("{component}-{role}") } else { format!("{component}-{role}-v{}", generation + 1) }
    }

    pub(super) fn namespace(self, seed: u64) -> String {
        let block = match self {
            Self::DaemonSet { which } => return words::DAEMON_SETS[which].2.to_owned(),
            Self::Deployment { block, .. } | Self::StatefulSet { block, .. } | Self::Job { block, .. } => block,
        };
        let mut rng = SampleRng::new(seed, Domain::Namespace, block);
        let team = rng.pick_skewed(words::TEAMS);
        let stage = self.rng(seed).pick_skewed(words::STAGES);
        format!("{team}-{stage}")
    }
}

/// The owner and the node of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PodPlace {
    pub(super) owner: Owner,
    /// Index among the pods of the owner.
    pub(super) replica: u64,
    pub(super) node: u64,
}

impl PodPlace {
    pub(super) fn of_pod(seed: u64, index: u64) -> Self {
        let block = index / PODS_IN_BLOCK;
        let position = index % PODS_IN_BLOCK;
        if position < DAEMONS_IN_BLOCK {
            return Self { owner: Owner::DaemonSet { which: position as usize }, replica: block, node: block };
        }
        let (owner, replica) = Block::of(seed, block).owner_at(position);
        let pool = block / NODES_IN_POOL;
        let node = pool * NODES_IN_POOL + SampleRng::new(seed, Domain::Node, index).below(NODES_IN_POOL);
        Self { owner, replica, node }
    }
}

/// Number of replicas of each workload of a block.
#[derive(Debug)]
pub(super) struct Block {
    number: u64,
    ends: [u64; WORKLOADS_IN_BLOCK as usize],
}

impl Block {
    pub(super) fn of(seed: u64, number: u64) -> Self {
        let mut rng = SampleRng::new(seed, Domain::Block, number);
        let mut replicas = [1; WORKLOADS_IN_BLOCK as usize];
        let spare = PODS_IN_BLOCK - DAEMONS_IN_BLOCK - WORKLOADS_IN_BLOCK;
        let slots: [usize; WORKLOADS_IN_BLOCK as usize] = std::array::from_fn(|slot| slot);
        for _ in 0..spare {
            // Skewed, so that a few deployments are large and most are small; then rotated, so that
            // the large one differs between blocks.
            let slot = rng.pick_skewed(&slots);
            replicas[(slot + number as usize * 3) % slots.len()] += 1;
        }
        let mut end = DAEMONS_IN_BLOCK;
        let ends = replicas.map(|count: u64| {
            end += count;
            end
        });
        Self { number, ends }
    }

    fn owner_at(&self, position: u64) -> (Owner, u64) {
        let slot = self.ends.iter().position(|&end| position < end).unwrap_or(self.ends.len() - 1);
        (Owner::in_block(self.number, slot as u64), position - self.positions(slot).start)
    }

    fn positions(&self, slot: usize) -> Range<u64> {
        let start = if slot == 0 { DAEMONS_IN_BLOCK } else { self.ends[slot - 1] };
        start..self.ends[slot]
    }

    /// The indexes of a deployment's pods.
    pub(super) fn pods_of_deployment(&self, role: u64) -> Range<u64> {
        let Range { start, end } = self.positions(role as usize);
        self.number * PODS_IN_BLOCK + start..self.number * PODS_IN_BLOCK + end
    }
}

/// All namespaces of generated objects.
pub(super) fn namespaces() -> impl Iterator<Item = String> {
    let teams = words::TEAMS.iter().flat_map(|team| words::STAGES.iter().map(move |stage| format!("{team}-{stage}")));
    words::SYSTEM_NAMESPACES.iter().map(|&name| name.to_owned()).chain(teams)
}

#[derive(Debug)]
pub(crate) struct NodeNames {
    pub(crate) name: String,
    pub(crate) ip: String,
}

impl NodeNames {
    pub(crate) fn of(seed: u64, node: u64) -> Self {
        // The third and fourth octet are a permutation that depends on the seed; the second one
        // increments when they are exhausted.
        let scattered = (node.wrapping_mul(mix(seed) | 1) & 0xffff) ^ (mix(seed ^ 1) & 0xffff);
        let (second, third, fourth) = (64 + node / 0x1_0000 % 128, scattered >> 8, scattered & 0xff);
        Self {
            name: format!("ip-10-{second}-{third}-{fourth}.eu-central-1.compute.internal"),
            ip: format!("10.{second}.{third}.{fourth}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_pod_of_a_daemon_set_is_on_a_node_of_its_own() {
        let mut seen = HashSet::new();
        for index in 0..20_000 {
            let place = PodPlace::of_pod(3, index);
            if let Owner::DaemonSet { which } = place.owner {
                assert!(seen.insert((which, place.node)), "pod {index}");
            }
        }
        assert_eq!(seen.len(), 5 * 313);
    }

    #[test]
    fn no_two_workloads_and_no_two_nodes_share_a_name() {
        let mut workloads = HashSet::new();
        for index in 0..20_000 {
            assert!(workloads.insert(Owner::deployment(index).name(11)), "deployment {index}");
        }
        let mut nodes = HashSet::new();
        for node in 0..100_000 {
            assert!(nodes.insert(NodeNames::of(11, node).name), "node {node}");
        }
    }

    #[test]
    fn a_deployments_pods_are_the_ones_that_name_it() {
        for deployment in 0..200 {
            let owner @ Owner::Deployment { block, role } = Owner::deployment(deployment) else { unreachable!() };
            for (replica, index) in Block::of(5, block).pods_of_deployment(role).enumerate() {
                let place = PodPlace::of_pod(5, index);
                assert_eq!((place.owner, place.replica), (owner, replica as u64), "pod {index}");
            }
        }
    }
}
