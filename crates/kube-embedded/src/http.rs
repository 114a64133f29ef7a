//! The wire: sockets, TLS, reading requests, content negotiation, replies and error statuses.
//!
//! Knows nothing of verbs; `service` hands each request to `api`.

pub(crate) mod body;
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
