//! What a request asks for: routing, verbs, access checks, discovery, OpenAPI, tables on the wire.
//!
//! Uses every other room. Each verb is a file of its own and works on one request.

pub mod access;
pub(crate) mod delete_options;
pub(crate) mod discovery;
pub(crate) mod filter;
pub(crate) mod objects;
pub(crate) mod openapi;
pub(crate) mod paths;
pub(crate) mod review;
pub(crate) mod route;
pub(crate) mod tabulate;
pub(crate) mod verbs;
pub(crate) mod view;
pub(crate) mod write;
pub(crate) mod write_options;
