//! Controllers that are searched: a zoo of bugs with correct twins, and real ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]
#![allow(clippy::disallowed_names, reason = "one of the kinds has this name")]
#![allow(clippy::duplicate_mod, reason = "each example is a program of its own")]
#![allow(clippy::needless_pass_by_value, reason = "json!() as an argument reads better without a reference")]

mod controllers;
mod fault_free;
mod reports;
mod zoo;
mod zoo_search;

#[allow(dead_code, reason = "its `main`")]
#[path = "../../../kube-controller/examples/foo.rs"]
mod foo;
#[allow(dead_code, reason = "its `main`")]
#[path = "../../../kube-controller/examples/website.rs"]
mod website;
