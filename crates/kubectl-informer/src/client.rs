//! The server: connection flags, request timeouts, and kinds by any of their names.
//!
//! Uses `failure` and `duration`, and nothing of the commands.

pub(crate) mod connection;
pub(crate) mod kinds;
mod request_timeout;
