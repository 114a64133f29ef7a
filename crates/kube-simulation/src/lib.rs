//! Searches a Kubernetes controller for bugs: crashes, stale views, missed states and failures.

mod baseline;
mod canonical;
mod oracle;
mod plan;
mod report;
mod run;
mod search;
mod simulation;
mod state;
mod trace;
mod workload;

pub use self::oracle::Violation;
pub use self::plan::{Fault, FaultClass, FaultKind, NotAPlan, Place, Plan};
pub use self::report::{ClassCounts, Finding, Report};
pub use self::simulation::Simulation;
pub use self::state::State;
