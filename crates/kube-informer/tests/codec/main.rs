//! Objects as bytes: JSON, protobuf, and how bodies are encoded and cached.

#[path = "../../../kube-embedded/src/fuzzing.rs"]
mod fuzzing;

mod arbitrary_json;
mod body_encoder;
mod decoding;
mod fuzz;
mod go_types;
mod json;
mod protobuf;
mod protobuf_table;
