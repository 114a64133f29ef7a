//! Bytes on the wire: canonical JSON, protobuf and YAML.
//!
//! Pure. Uses `kinds` for field order and message shapes.

pub(crate) mod escape;
pub(crate) mod json;
pub(crate) mod protobuf;
pub(crate) mod yaml;
