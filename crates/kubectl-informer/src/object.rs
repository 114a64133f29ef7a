//! Questions about objects and their states: filters, differences, writers, redaction.
//!
//! No server and no terminal: lines are styled here and printed elsewhere. The system's clock is
//! read for ages and for `now` in expressions.

pub(crate) mod by;
pub(crate) mod change;
pub(crate) mod decode;
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
