//! A Kubernetes API server in the process.
//!
//! It behaves towards list/watch clients as kube-apiserver 1.37 does, starts in milliseconds, needs nothing installed, and
//! fails on command. Start with [`Server`].
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
//! - [`Server`] and [`Builder`]: starting, stopping, restarting, refusing, going back to a backup; what clients did.
//! - [`Objects`]: reading and writing objects directly, through the very verbs that clients use.
//! - [`faults`]: failures by rule. [`access`]: who may do what.
//! - [`generate`]: realistic objects from a seed, without a server. [`pretend`]: a cluster that lives on them.
//! - [`table`]: objects as rows, as `kubectl get` shows them, without a server.
//!
//! # What may be relied on
//!
//! 1. Every write gets the next revision, and a write that changes nothing gets none and is told to nobody.
//! 2. A watch tells every change after its version exactly once, in the order of revisions, or ends.
//! 3. All pages of a list show the state of the first, or are answered with 410.
//! 4. What the server cannot do right it refuses, with the status the real server uses for what it does not support.
//! 5. All waiting goes through tokio's clock.
//! 6. After [`Server::shutdown`] no task and no connection is left.

mod admission;
mod api;
mod clock;
mod cluster;
mod controllers;
mod encoding;
pub mod faults;
pub mod generate;
mod http;
mod kinds;
pub mod pretend;
mod rng;
mod server;
mod storage;

pub use self::api::access;
pub use self::api::objects::Objects;
pub use self::cluster::FirstAccess;
pub use self::faults::request_log::{OpenWatch, Seen};
pub use self::http::body::Body;
pub use self::http::request::Verb;
pub use self::http::service::Service;
pub use self::http::status::{Cause, Details, Status};
pub use self::kinds::table;
pub use self::server::{Backup, Builder, Server};

/// The README's examples run too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
