//! Wire encodings: canonical JSON, protobuf and YAML; the hash that the API defines; accessors of
//! JSON values.
//!
//! Pure functions between bytes and `serde_json::Value`. Uses only `kinds`, for field order and
//! message shapes; must not use `api`, `storage` or `controllers`.

pub(crate) mod depth;
pub(crate) mod escape;
pub(crate) mod fnv;
pub(crate) mod json;
pub(crate) mod large_stack;
pub(crate) mod protobuf;
pub(crate) mod value;
pub(crate) mod yaml;
