//! A Kubernetes API server in the process.

// Modules land one by one; until the verbs call all of them some have no caller.
#![expect(dead_code, reason = "parts are landing one by one")]

mod clock;
mod continue_token;
mod escape;
mod json;
mod kinds;
mod query;
mod request;
mod selector;
mod status;
mod storage;

pub use request::Verb;
pub use status::{Cause, Details, Status};
