//! The store and what reads it: events, indexes, listers, the delta queue, reclamation.

mod delta_fifo;
mod events;
mod index;
mod lazy_decoding;
mod lister;
mod objects;
mod reclamation;
