//! A Kubernetes API server in the process.

// Modules land one by one; until the verbs call all of them some have no caller.
#![expect(dead_code, reason = "parts are landing one by one")]

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
mod kinds;
mod kubeconfig;
mod lifecycle;
mod listener;
mod metadata;
mod namespace_deletion;
mod namespaces;
mod negotiate;
mod objects;
mod paths;
mod query;
mod reply;
mod request;
mod request_log;
mod route;
mod selector;
mod server;
mod service;
mod status;
mod storage;
mod tls;
mod validation;
mod verbs;
mod view;
mod write;
mod write_options;

pub use body::Body;
pub use cluster::FirstAccess;
pub use objects::Objects;
pub use request::Verb;
pub use request_log::{OpenWatch, Seen};
pub use server::{Backup, Builder, Server};
pub use service::Service;
pub use status::{Cause, Details, Status};
