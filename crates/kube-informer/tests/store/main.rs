//! The store and what reads it: events, indexes, listers, the delta queue, reclamation.

#[path = "../support/logs.rs"]
mod logs;

mod delta_fifo;
mod events;
mod index;
mod lazy_decoding;
mod lister;
mod objects;
mod reclamation;
