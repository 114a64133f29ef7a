//! Controllers that are searched: a zoo of bugs with correct twins, and real ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]
#![allow(clippy::needless_pass_by_value, reason = "json!() as an argument reads better without a reference")]

mod fault_free;
mod zoo;
mod zoo_search;
