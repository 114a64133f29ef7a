//! What can be done with resources, one file for each verb.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod delete_collection;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod scale;
pub(crate) mod update;
pub(crate) mod watch;
