//! Controllers on the embedded server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod chaos;
mod consistency;
mod finalizers;
mod lifecycle;
mod read_your_writes;
mod reconcile;
mod support;
mod watches;
mod writes;
