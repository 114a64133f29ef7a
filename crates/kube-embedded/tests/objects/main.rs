//! Objects in the server: writes, deletes, namespaces, definitions, garbage collection.

#[path = "../support/mod.rs"]
mod support;

mod crds;
mod deletes;
mod direct;
mod garbage;
mod history;
mod namespaces;
mod writes;
