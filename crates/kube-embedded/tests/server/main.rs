//! The server and its clients: lifecycle, watches, faults, hostile requests, kube-rs.

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod hostile;
mod kube_rs;
mod lifecycle;
mod watches;
mod webhooks;
