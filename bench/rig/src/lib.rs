//! What the parts of the rig share: the work, the corpora it is served from, how a client is driven and measured, and how figures are drawn.

pub mod chart;
pub mod client;
pub mod control;
pub mod corpus;
pub mod machine;
pub mod process;
pub mod tally;
pub mod work;
