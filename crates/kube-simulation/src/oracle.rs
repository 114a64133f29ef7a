//! What must hold in every run, whatever happens in it.

use std::fmt;
use std::sync::Arc;

use crate::baseline::{Baseline, count};
use crate::canonical::{Ignored, canonical, differences};
use crate::state::State;
use crate::trace::{Ending, Trace};

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// The final state is not that of a run without faults. Each line is a difference.
    FinalState(Vec<String>),
    /// An object was created more often than without faults.
    CreatedTooOften {
        /// The kind and name.
        object: String,
        /// How often without and with faults.
        times: [usize; 2],
    },
    /// An object was deleted more often than without faults.
    DeletedTooOften {
        /// The kind and name.
        object: String,
        /// How often without and with faults.
        times: [usize; 2],
    },
    /// Writes do not end.
    NeverSettles,
    /// Requests that change nothing do not end.
    BusyLoop,
    /// A task of the controller panicked.
    Panic(String),
    /// An invariant of the user does not hold.
    Invariant {
        /// The name of the invariant.
        name: String,
        /// The first revision at which it does not hold.
        revision: u64,
        /// What the invariant says about it.
        why: String,
    },
    /// A step of the workload was refused, in a run without faults.
    StepRefused(String),
}

impl Violation {
    /// What violations of the same bug have in common.
    pub(crate) fn group(&self) -> String {
        match self {
            Self::FinalState(_) => "the final state differs".to_owned(),
            Self::CreatedTooOften { object, .. } => format!("{object} is created too often"),
            Self::DeletedTooOften { object, .. } => format!("{object} is deleted too often"),
            Self::NeverSettles => "writes do not end".to_owned(),
            Self::BusyLoop => "requests do not end".to_owned(),
            Self::Panic(message) => format!("panic: {message}"),
            Self::Invariant { name, .. } => format!("the invariant {name:?} does not hold"),
            Self::StepRefused(step) => format!("refused: {step}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let often = |f: &mut fmt::Formatter<'_>, object: &str, [expected, found]: [usize; 2], what: &str| {
            write!(f, "{object} was {what} {found} times, without the fault {expected} times")
        };
        match self {
            Self::FinalState(differences) => {
                f.write_str("the final state is not that of a run without faults:")?;
                differences.iter().try_for_each(|difference| write!(f, "\n    {difference}"))
            }
            Self::CreatedTooOften { object, times } => often(f, object, *times, "created"),
            Self::DeletedTooOften { object, times } => often(f, object, *times, "deleted"),
            Self::NeverSettles => f.write_str("writes do not end"),
            Self::BusyLoop => f.write_str("requests that change nothing do not end"),
            Self::Panic(message) => write!(f, "a task of the controller panicked: {message}"),
            Self::Invariant { name, revision, why } => {
                write!(f, "the invariant {name:?} does not hold at revision {revision}: {why}")
            }
            Self::StepRefused(step) => write!(f, "refused: {step}"),
        }
    }
}

/// Returns why the invariant does not hold.
type Check = Arc<dyn Fn(&State) -> Result<(), String> + Send + Sync>;

/// An invariant of the user.
#[derive(Clone)]
pub(crate) struct Invariant {
    pub(crate) name: String,
    pub(crate) check: Check,
}

/// Judges a run with faults.
pub(crate) fn judge(trace: &Trace, baseline: &Baseline, ignored: &Ignored, invariants: &[Invariant]) -> Vec<Violation> {
    let mut found = judge_alone(trace, invariants);
    if trace.ending != Ending::Settled {
        return found;
    }
    let state = canonical(&trace.final_state(), ignored);
    let differences: Vec<String> = differences(&baseline.state, &state)
        .into_iter()
        .filter(|difference| {
            !baseline.unstable.contains(&difference.object)
                && !baseline
                    .variable
                    .iter()
                    .any(|(object, path)| *object == difference.object && difference.path.starts_with(path.as_str()))
        })
        .map(|difference| difference.to_string())
        .collect();
    if !differences.is_empty() {
        found.push(Violation::FinalState(differences));
    }
    for (object, counts) in count(trace, ignored) {
        let expected = baseline.counts.get(&object).copied().unwrap_or_default();
        let is_unstable = baseline.unstable.iter().any(|name| name.starts_with(&object));
        if is_unstable {
            continue;
        }
        if counts[0] > expected[0] {
            let times = [expected[0], counts[0]];
            found.push(Violation::CreatedTooOften { object: object.clone(), times });
        }
        if counts[1] > expected[1] {
            found.push(Violation::DeletedTooOften { object, times: [expected[1], counts[1]] });
        }
    }
    found
}

/// Judges a run by what needs no comparison.
pub(crate) fn judge_alone(trace: &Trace, invariants: &[Invariant]) -> Vec<Violation> {
    let mut found: Vec<Violation> = trace.panics.iter().take(1).cloned().map(Violation::Panic).collect();
    match trace.ending {
        Ending::Settled => {}
        Ending::Restless => found.push(Violation::NeverSettles),
        Ending::Busy => found.push(Violation::BusyLoop),
    }
    let mut broken = vec![false; invariants.len()];
    let mut state = State::default();
    for change in &trace.changes {
        state.apply(&change.change);
        for (invariant, broken) in invariants.iter().zip(&mut broken) {
            if !*broken && let Err(why) = (invariant.check)(&state) {
                *broken = true;
                found.push(Violation::Invariant {
                    name: invariant.name.clone(),
                    revision: change.change.revision,
                    why,
                });
            }
        }
    }
    found
}
