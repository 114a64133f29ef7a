//! A Kubernetes API server in the process.
//!
//! It behaves towards list/watch clients as kube-apiserver 1.37 does, starts in milliseconds, needs
//! no other software installed, and injects failures on command. Start with [`Server`].
//!
//! ```
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = kube_embedded::Server::builder().start().await?;
//! server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}))?;
//! println!("kubectl --server {} get configmaps", server.url());
//!
//! // The same server without a socket: time may be paused, and nothing is left behind.
//! let client = kube::Client::new(server.service(), "default");
//! let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::default_namespaced(client);
//! assert_eq!(maps.get("a").await?.data.unwrap()["k"], "v");
//!
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! - [`Server`] and [`ServerBuilder`]: start, stop, restart, refuse connections, restore a backup,
//!   and inspect the requests of clients.
//! - [`Objects`]: reads and writes objects directly, through the same verbs that clients use.
//!   [`Server::changes_after`] returns the writes to all of them.
//! - [`faults`]: fault injection by rule. [`access`]: access rules.
//! - [`generate`]: realistic objects from a seed, without a server. [`pretend`]: a simulated
//!   cluster of such objects.
//! - [`table`]: objects as rows, as `kubectl get` shows them, without a server.
//!
//! # Guarantees
//!
//! 1. Every write gets the next revision. A write that changes nothing gets no revision and sends
//!    no watch event.
//! 2. A watch delivers every change after its version exactly once, in the order of revisions, or
//!    ends.
//! 3. All pages of a list show the state of the first page; otherwise the server returns 410.
//! 4. A request that the server cannot serve correctly is rejected, with the status the real server
//!    uses for unsupported requests.
//! 5. All waiting goes through tokio's clock.
//! 6. After [`Server::shutdown`] no task and no connection is left.

mod admission;
mod api;
mod clock;
mod cluster;
mod controllers;
mod doctest;
mod encoding;
pub mod faults;
#[cfg(test)]
mod fuzzing;
pub mod generate;
mod http;
mod kinds;
pub mod pretend;
mod rng;
mod server;
mod storage;
mod webhooks;

pub use self::api::access;
pub use self::api::history::{Change, ChangeKind};
pub use self::api::objects::Objects;
pub use self::cluster::FirstAccess;
pub use self::doctest::doctest;
pub use self::faults::request_log::{LoggedRequest, OpenWatch};
pub use self::http::body::Body;
pub use self::http::request::Verb;
pub use self::http::service::Service;
pub use self::http::status::{Cause, Details, Status};
pub use self::kinds::table;
pub use self::server::{Backup, Server, ServerBuilder};

/// Compiles and runs the README's examples as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
