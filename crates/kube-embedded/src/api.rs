//! The Kubernetes API: routing, verbs, access checks, discovery, OpenAPI and tables.
//!
//! Uses all other modules except `generate` and `pretend`. Each verb has its own file and handles
//! one request at a time.

pub mod access;
pub(crate) mod delete_options;
pub(crate) mod discovery;
pub(crate) mod filter;
pub(crate) mod history;
pub(crate) mod objects;
pub(crate) mod openapi;
pub(crate) mod paths;
pub(crate) mod review;
pub(crate) mod route;
pub(crate) mod subresources;
pub(crate) mod tabulate;
pub(crate) mod tokens;
pub(crate) mod verbs;
pub(crate) mod view;
pub(crate) mod write;
pub(crate) mod write_options;
