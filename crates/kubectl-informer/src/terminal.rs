//! The edges: what may be written, and how, to a terminal or a pipe.
//!
//! Text from a cluster passes `terminal_text` here. Uses nothing of the commands.

pub(crate) mod bytes;
pub(crate) mod document;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod progress;
pub(crate) mod stderr;
pub(crate) mod styled_line;
pub(crate) mod terminal_text;
pub(crate) mod yaml;
