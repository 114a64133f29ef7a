//! Server-side controllers: garbage collection, namespaces, services, custom resource definitions.
//!
//! Uses `api` and `storage`, and deletes and updates objects through the same verbs as clients.
//! Must not use `faults`, `generate` or `pretend`.

pub(crate) mod bootstrap;
pub(crate) mod crds;
pub(crate) mod garbage;
pub(crate) mod namespace_deletion;
pub(crate) mod namespaces;
pub(crate) mod services;
