//! The verbs on resources, one file per verb.
//!
//! Uses the other modules of `api`, `admission`, `controllers` and `storage`. Routing and access
//! checks happen before.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod update;
pub(crate) mod watch;
