//! What the parts of the rig share: the work, the corpora it is served from, and how a client is driven and measured.

pub mod client;
pub mod control;
pub mod corpus;
pub mod process;
pub mod tally;
pub mod work;
