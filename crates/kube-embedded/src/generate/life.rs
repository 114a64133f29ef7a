//! The state of a pod: the part that differs between two updates.

use super::layout::{NOW, Owner};
use super::rng::{Domain, SampleRng, mix};
use super::workload::Workload;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Scheduled; the containers are being created.
    Pending,
    Running,
    /// Phase `Running` in the API, but the main container is in a crash loop.
    Crashing,
    Succeeded,
}

#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) phase: Phase,
    pub(super) readiness: Readiness,
    pub(super) created: i64,
    pub(super) sandboxed: i64,
    pub(super) initialized: i64,
    pub(super) started: i64,
    pub(super) ready_changed: i64,
    pub(super) restarts: u64,
    /// The last restart of the main container, with the termination state before it.
    pub(super) restarted: Option<Restart>,
    pub(super) finished: i64,
    pub(super) container_ids: Vec<String>,
    /// Bytes of a finished pod's log that have been shipped; the only part that still changes.
    pub(super) shipped: Option<u64>,
    /// A label that an operator sets rarely.
    pub(super) stage: Option<&'static str>,
    pub(super) touched: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    Unready,
}

#[derive(Debug, Clone)]
pub(super) struct Restart {
    pub(super) at: i64,
    pub(super) began: i64,
    pub(super) ended: i64,
    pub(super) exit_code: u64,
    pub(super) container_id: String,
}

/// Number of steps of a cycle: the pod becomes unready, ready, fails and is ready again.
const STEPS_IN_ROUND: u64 = 4;
/// Number of steps between two label changes by an operator.
const STEPS_IN_STAGE: u64 = 32;

impl Life {
    pub(super) fn new(
        seed: u64,
        workload: &Workload,
        index: u64,
        replica: u64,
        step: u64,
        rng: &mut SampleRng,
    ) -> Self {
        let created = if rng.percent(30) {
            workload.rolled_out + rng.below((NOW - workload.rolled_out - 900).max(1) as u64) as i64
        } else {
            workload.rolled_out + (replica * 7 + rng.below(12)) as i64
        };
        let sandboxed = created + rng.within(1, 6) as i64;
        let initialized =
            if workload.init.is_empty() { created + rng.below(2) as i64 } else { sandboxed + rng.within(2, 40) as i64 };
        let started = sandboxed.max(initialized) + rng.within(1, 25) as i64;
        let ready = started + rng.within(3, 60) as i64;
        let first = first_phase(workload, rng);
        let earlier_restarts = match first {
            Phase::Crashing => rng.within(4, 900),
            Phase::Running if rng.percent(35) => rng.within(1, 9),
            _ => 0,
        };

        let at = |step: u64| NOW + (step * 41 + mix(index ^ mix(step)) % 23) as i64;
        let phase = if first == Phase::Pending && step > 0 { Phase::Running } else { first };
        let failed_at_step = match phase {
            Phase::Running if step + 1 >= STEPS_IN_ROUND => Some((step + 1) / STEPS_IN_ROUND * STEPS_IN_ROUND - 1),
            Phase::Crashing if step > 0 => Some(step),
            _ => None,
        };
        let restarts = match phase {
            Phase::Pending | Phase::Succeeded => 0,
            Phase::Running => earlier_restarts + (step + 1) / STEPS_IN_ROUND,
            Phase::Crashing => earlier_restarts + step,
        };
        let readiness = match phase {
            Phase::Running if step.is_multiple_of(2) => Readiness::Ready,
            _ => Readiness::Unready,
        };
        let containers = (workload.init.len() + workload.containers.len()) as u64;
        let restarted = (restarts > 0).then(|| {
            let last = failed_at_step.map_or_else(|| ready + rng.within(60, 600) as i64, at);
            Restart {
                at: last,
                began: last - rng.within(20, 40) as i64,
                ended: last - rng.within(1, 10) as i64,
                exit_code: match phase {
                    Phase::Crashing => 1,
                    _ => rng.pick(&[1, 137, 2, 255]),
                },
                container_id: container_id(seed, index, 0, restarts - 1),
            }
        });
        let ready_changed = match phase {
            Phase::Running if step > 0 => at(step),
            Phase::Crashing => restarted.as_ref().map_or(ready, |restart| restart.ended),
            _ => ready,
        };
        let finished = started + rng.within(10, 3_000) as i64;
        let touched = match (step, phase) {
            (0, Phase::Succeeded) => finished + 1,
            (0, _) => restarted.as_ref().map_or(ready, |restart| restart.at.max(ready)),
            _ => at(step),
        };
        Self {
            phase,
            readiness,
            created,
            sandboxed,
            initialized,
            started,
            ready_changed,
            restarts,
            restarted,
            finished,
            container_ids: (0..containers)
                .map(|n| container_id(seed, index, n, if n == 0 { restarts } else { 0 }))
                .collect(),
            shipped: (phase == Phase::Succeeded).then(|| rng.within(2_000, 900_000) + step * 4_096),
            stage: (step >= STEPS_IN_STAGE && phase != Phase::Crashing).then_some(if step / STEPS_IN_STAGE % 2 == 1 {
                "canary"
            } else {
                "stable"
            }),
            touched,
        }
    }

    /// Resets to the most common state: running, ready and never restarted.
    pub(super) fn settle(&mut self) {
        self.phase = Phase::Running;
        self.readiness = Readiness::Ready;
        self.restarted = None;
        self.shipped = None;
    }
}

fn first_phase(workload: &Workload, rng: &mut SampleRng) -> Phase {
    match (workload.owner, rng.below(100)) {
        (_, 0..2) => Phase::Pending,
        (Owner::Job { .. }, 2..85) => Phase::Succeeded,
        (_, 2..4) => Phase::Crashing,
        _ => Phase::Running,
    }
}

/// The ID of a container. The main container has number 0.
pub(super) fn container_id(seed: u64, pod: u64, container: u64, restarts: u64) -> String {
    let sha = SampleRng::new(seed ^ mix(container << 32 | restarts), Domain::Container, pod).sha256();
    format!("containerd://{sha}")
}
