//! What is to happen later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::write::PodRef;

/// What happens next to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    /// The scheduler finds a node.
    Bind(PodRef),
    /// The kubelet has seen the pod.
    Create(PodRef),
    /// Its containers run.
    Start(PodRef),
    /// Its probes succeed.
    Settle(PodRef),
    /// The grace of a dying pod is over.
    End,
    /// The controllers look at a deployment.
    Reconcile(usize),
}

/// Acts in the order of their times; those of one time in the order in which they were put down.
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

    /// The next act whose time has come.
    pub(super) fn due(&mut self, now: Duration) -> Option<Act> {
        let Reverse((at, ..)) = self.acts.peek()?;
        if *at > now {
            return None;
        }
        self.acts.pop().map(|Reverse((.., act))| act)
    }
}
