//! Full-screen views: the terminal in raw mode, and what several views draw.
//!
//! Text reaches the screen as a [`StyledLine`](crate::terminal::styled_line::StyledLine) or a cell
//! of a [`Grid`](crate::table::grid::Grid), which have no hidden characters.

mod columns;
mod connection_line;
mod fullscreen;
pub(crate) mod live_table;
pub(crate) mod prompt;
mod text;

pub(crate) use self::connection_line::connection_line;
pub(crate) use self::fullscreen::{FullScreen, Input};
pub(crate) use self::live_table::LiveTable;
pub(crate) use self::text::draw_lines;
