//! The command as a program of its own, on a server in the test's process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

#[path = "../support/mod.rs"]
mod support;

mod apiserver;
mod connection;
mod demo;
mod errors;
mod get;
mod hostile_text;
mod readme;
mod watch;
