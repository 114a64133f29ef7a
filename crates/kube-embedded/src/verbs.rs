//! What can be done with resources, one file for each verb.

pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod watch;
