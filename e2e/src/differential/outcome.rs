//! The result of a scenario.

use std::fmt;
use std::time::Duration;

use super::comparison::Agreement;

/// A scenario in which both informers reported the same.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) scenario: &'static str,
    pub(crate) writes: usize,
    /// Cut connections: this project's, and client-go's.
    pub(crate) cuts: [usize; 2],
    pub(crate) agreement: Agreement,
    pub(crate) took: Duration,
}

impl Outcome {
    /// A one-line summary of all scenarios.
    pub(crate) fn sum(outcomes: &[Self]) -> String {
        let sum = |count: fn(&Self) -> usize| outcomes.iter().map(count).sum::<usize>();
        format!(
            "{} scenarios, {} writes, {} connections cut; {} + {} calls of handlers, {} events the same in the same order, {} \
             states the same; allowed: {} new uids reported as an update, {} updates without a change",
            outcomes.len(),
            sum(|outcome| outcome.writes),
            sum(|outcome| outcome.cuts.iter().sum()),
            sum(|outcome| outcome.agreement.calls[0]),
            sum(|outcome| outcome.agreement.calls[1]),
            sum(|outcome| outcome.agreement.compared),
            sum(|outcome| outcome.agreement.states),
            sum(|outcome| outcome.agreement.new_uids),
            sum(|outcome| outcome.agreement.unchanged),
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, writes, cuts, agreement, took } = self;
        let Agreement { calls, compared, states, missed, resyncs, new_uids, unchanged } = agreement;
        write!(
            f,
            "{scenario}: agrees after {:.1} s; {writes} writes, {} + {} connections cut, {} + {} calls of handlers, {compared} \
             events and {states} states the same, {} + {} missed deletions detected, {} + {} resyncs; allowed: {new_uids} new \
             uids, {unchanged} unchanged",
            took.as_secs_f64(),
            cuts[0],
            cuts[1],
            calls[0],
            calls[1],
            missed[0],
            missed[1],
            resyncs[0],
            resyncs[1],
        )
    }
}
