//! Leader election and checked writes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod election;
mod model;
mod request_plan;
mod shard_model;
mod shards;
mod support;
mod writes;
