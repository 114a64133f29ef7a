//! What happened to objects: changes, a bounded ring of them, and recordings in files.
//!
//! Uses `client` for the names of kinds and `object`; of the terminal only the report of progress.

mod change;
pub(crate) mod recording;
mod ring;

pub(crate) use self::change::{Change, Removal, What};
pub(crate) use self::ring::Ring;
