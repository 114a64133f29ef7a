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
//! - [`fault`]: failures by rule. [`access`]: who may do what.
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

pub mod access;
mod body;
mod clock;
mod cluster;
mod continue_token;
mod convert;
mod crds;
mod custom_tables;
mod decode;
mod defaults;
mod delete_options;
mod dice;
mod discovery;
mod escape;
pub mod fault;
mod filter;
mod garbage;
pub mod generate;
mod gzip;
mod json;
mod kind_rules;
mod kinds;
mod kubeconfig;
mod latest;
mod lifecycle;
mod listener;
mod metadata;
mod namespace_deletion;
mod namespaces;
mod negotiate;
mod objects;
mod openapi;
mod ownership;
mod paths;
pub mod pretend;
mod protobuf;
mod query;
mod reply;
mod request;
mod request_body;
mod request_log;
mod review;
mod route;
mod selector;
mod server;
mod service;
mod services;
mod status;
mod storage;
mod strategic;
pub mod table;
mod tabulate;
mod tls;
mod validation;
mod verbs;
mod view;
mod write;
mod write_options;
mod yaml;

pub use body::Body;
pub use cluster::FirstAccess;
pub use objects::Objects;
pub use request::Verb;
pub use request_log::{OpenWatch, Seen};
pub use server::{Backup, Builder, Server};
pub use service::Service;
pub use status::{Cause, Details, Status};

/// The README's examples run too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
