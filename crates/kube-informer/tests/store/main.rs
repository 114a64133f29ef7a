//! The store and what reads it: events, indexes, listers, the delta queue, reclamation.

#[allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "shared by the tests")]
#[path = "../support/logs.rs"]
mod logs;

mod delta_fifo;
mod events;
mod index;
mod lazy_decoding;
mod lister;
mod objects;
mod reclamation;
