//! Controllers on the embedded server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]
#![allow(clippy::duplicate_mod, reason = "each example is a program of its own")]

mod chaos;
mod consistency;
mod examples;
mod finalizers;
#[path = "../support/manifests.rs"]
mod guide_manifests;
mod lifecycle;
mod read_your_writes;
mod reconcile;
mod sharding;
mod support;
mod watches;
mod writes;

#[allow(dead_code, reason = "its `main`")]
#[path = "../../examples/foo.rs"]
mod foo;
#[allow(dead_code, reason = "its `main`")]
#[path = "../../examples/janitor.rs"]
mod janitor;
#[allow(dead_code, reason = "its `main`")]
#[path = "../../examples/website.rs"]
mod website;
