//! HTTP: sockets, TLS, request parsing, content negotiation, responses and error statuses.
//!
//! Contains no verbs: `service` checks faults and access, then passes each request to `api`.
//! Besides `api` it uses `faults`, `encoding`, `storage` and the decoding errors of `admission`,
//! never `controllers` or `kinds`.

pub(crate) mod body;
mod connection;
pub(crate) mod gzip;
pub(crate) mod kubeconfig;
pub(crate) mod lifecycle;
pub(crate) mod listener;
pub(crate) mod negotiate;
pub(crate) mod query;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod request_body;
pub(crate) mod service;
pub(crate) mod status;
pub(crate) mod tls;
