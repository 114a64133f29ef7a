//! Searches a Kubernetes controller for bugs: crashes, stale views, missed states and failures.
//!
//! A [`Simulation`] has a controller, the objects it begins with and what its users do. It learns
//! what happens without faults, and runs the same workload with a fault at each place where it can
//! matter, on `kube-embedded` in the process and on a paused clock: hundreds of runs in seconds.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, Client, api::PostParams};
//! use kube_simulation::{FaultClass, Simulation};
//! use serde_json::json;
//!
//! /// Creates a config map, and gives up when that fails.
//! async fn controller(client: Client) {
//!     let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).expect("a config map");
//!     let maps: Api<ConfigMap> = Api::default_namespaced(client);
//!     drop(maps.create(&PostParams::default(), &map).await);
//!     std::future::pending().await
//! }
//!
//! let report = Simulation::new(controller).until_quiet().classes([FaultClass::Failures]).search();
//! let finding = &report.findings()[0];
//! assert_eq!(finding.violations()[0].to_string().lines().nth(1), Some("    - ConfigMap default/a is missing"));
//! ```
//!
//! [The guide](guide::test_your_operator) begins with a controller on kube-runtime, and says what a
//! search does not find.
//!
//! # Guarantees
//!
//! 1. The same plan gives the same sequence of requests and revisions, if the controller is
//!    deterministic; the crate checks that, and reports the first difference.
//! 2. A view is behind only where an API server allows it, and no event is dropped from an open
//!    watch.
//! 3. Nothing that a process sends after its crash reaches the server.

mod baseline;
mod canonical;
pub mod guide;
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
