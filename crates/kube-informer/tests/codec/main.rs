//! Objects as bytes: JSON, protobuf, and how bodies are encoded and cached.

mod arbitrary_json;
mod body_encoder;
mod go_types;
mod json;
mod protobuf;
mod protobuf_table;
