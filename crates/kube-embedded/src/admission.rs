//! A body on its way into the storage: decoding, defaults, validation, field ownership, merging.
//!
//! Pure: values in, values or a `Status` out. Uses `kinds`; knows nothing of requests and storage.

pub(crate) mod decode;
pub(crate) mod defaults;
pub(crate) mod kind_rules;
pub(crate) mod metadata;
pub(crate) mod ownership;
pub(crate) mod strategic;
pub(crate) mod validation;
