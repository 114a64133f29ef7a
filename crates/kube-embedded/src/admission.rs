//! Admission of a request body into the storage: decoding, defaults, validation, field ownership
//! and merging.
//!
//! Pure functions: values in, values or a `Status` out. Uses `kinds`, `encoding`, `http::status`,
//! the name checks of `storage::selector` and helpers for values and options of `api`; must not
//! access requests or stored objects.

pub(crate) mod decode;
pub(crate) mod defaults;
pub(crate) mod metadata;
pub(crate) mod ownership;
pub(crate) mod parts;
pub(crate) mod rules;
pub(crate) mod strategic;
pub(crate) mod validation;
