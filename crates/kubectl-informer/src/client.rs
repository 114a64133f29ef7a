//! The server: connection flags, requests, and kinds and objects by any of their names.
//!
//! Uses `failure`, `duration`, `completions` and `terminal`, and nothing of the commands.

pub(crate) mod connection;
pub(crate) mod kind_info;
pub(crate) mod kinds;
mod request_log;
mod request_timeout;
pub(crate) mod targets;
