//! The queue of scheduled actions of the simulation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::write::PodRef;

/// A scheduled action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    /// The scheduler binds the pod to a node.
    Bind(PodRef),
    /// The kubelet has seen the pod.
    Create(PodRef),
    /// The containers start.
    Start(PodRef),
    /// The readiness probes succeed.
    Settle(PodRef),
    /// The grace period of a terminating pod is over.
    End,
    /// The controllers reconcile a deployment.
    Reconcile(usize),
}

/// Priority queue of actions by time; actions of the same time keep their insertion order.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    acts: BinaryHeap<Reverse<(Duration, u64, Act)>>,
    count: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Duration, act: Act) {
        self.count += 1;
        self.acts.push(Reverse((at, self.count, act)));
    }

    /// Removes the next action that is due.
    pub(super) fn due(&mut self, now: Duration) -> Option<Act> {
        let Reverse((at, ..)) = self.acts.peek()?;
        if *at > now {
            return None;
        }
        self.acts.pop().map(|Reverse((.., act))| act)
    }
}
