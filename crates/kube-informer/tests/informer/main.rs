//! Informers, factories and one-shot reads on the embedded server.

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod factory;
mod factory_definitions;
mod factory_lifecycle;
mod factory_names;
mod faults;
mod guarantees;
mod handler_panics;
mod handler_removal;
mod handlers;
mod health;
mod invalid_settings;
mod kube_runtime;
mod lifecycle;
mod log;
mod metrics;
mod pager;
mod panics;
mod retry_watch;
mod served;
mod shards;
mod shutdown;
mod until;
mod wire;
