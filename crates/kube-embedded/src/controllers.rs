//! Kinds with behaviour of their own: garbage collection, namespaces, services, custom resource definitions.
//!
//! Uses `api` and `storage`; writes through the same verbs as clients.

pub(crate) mod crds;
pub(crate) mod garbage;
pub(crate) mod namespace_deletion;
pub(crate) mod namespaces;
pub(crate) mod services;
