//! The work queue: rules, order, workers, metrics, and a model of client-go's queue.

#[path = "../support/mod.rs"]
mod server_support;

mod enqueue;
mod metrics;
mod model;
mod order;
mod rules;
mod support;
mod user_code;
mod workers;
