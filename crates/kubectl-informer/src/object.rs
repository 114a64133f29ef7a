//! Questions about objects and their states: filters, differences, writers, redaction.
//!
//! Pure: no server, no clock and no terminal, but for the age of a pod.

pub(crate) mod by;
pub(crate) mod change;
pub(crate) mod diff;
pub(crate) mod field_managers;
pub(crate) mod filter;
#[cfg(test)]
mod fuzz;
pub(crate) mod left_out;
pub(crate) mod noise;
mod quantity;
pub(crate) mod query;
pub(crate) mod redaction;
pub(crate) mod tree;
pub(crate) mod whole;
