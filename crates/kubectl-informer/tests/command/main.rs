//! The command as a program of its own, on a server in the test's process.

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
