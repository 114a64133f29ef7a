//! The command as a program of its own, on a server in the test's process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

#[path = "../support/mod.rs"]
mod support;

mod apiserver;
mod completions;
mod connection;
mod demo;
mod errors;
mod get;
mod get_habits;
mod history;
mod hostile_text;
mod live_table;
mod readme;
mod top;
mod tree;
mod watch;
mod watch_choice;
mod words;
