//! Shared code of the benchmark rig: workloads, corpora, driving and measuring a client, and
//! charts.

pub mod chart;
pub mod client;
pub mod control;
pub mod corpus;
pub mod figures_on_request;
pub mod line_process;
pub mod machine;
pub mod process;
pub mod prose;
pub mod tally;
pub mod websites;
pub mod work;
