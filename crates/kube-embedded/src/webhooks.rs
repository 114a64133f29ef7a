//! Webhooks: which are called for a write (admission) or for objects in another version
//! (conversion), what they receive, and what follows from their answers.
//!
//! The verbs are synchronous and pass each object through a `Gate`, which ends the attempt where a
//! webhook has to be called; the request then calls it and tries again with the answer. Without
//! webhook configurations there is no gate. Conversions work alike, through the view. Uses the
//! storage, `kinds` and `encoding`; calls go through `transport`, which alone does I/O.

pub(crate) mod conversion;
mod gate;
mod hook;
mod review;
mod transport;

pub(crate) use self::gate::{Gate, Operation, Stage};
pub(crate) use self::transport::Handlers;
