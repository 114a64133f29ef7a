//! Redraws lines in place on a terminal.

use std::io;

use crate::terminal::output::{Control, Output};
use crate::terminal::styled_line::StyledLine;

/// Size used when the terminal does not report one.
const WIDTH: usize = 100;
const HEIGHT: usize = 30;

/// The terminal area from the cursor down. The last drawing stays when the command ends.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// Number of lines of the last drawing.
    drawn: usize,
}

/// Terminal size in columns and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Area {
    pub(crate) fn now() -> Self {
        match terminal_size::terminal_size() {
            Some((width, height)) if width.0 > 0 && height.0 > 0 => {
                Self { width: usize::from(width.0), height: usize::from(height.0) }
            }
            _ => Self { width: WIDTH, height: HEIGHT },
        }
    }
}

impl Screen {
    /// Overwrites the previous drawing with these lines, truncated to the terminal's width and
    /// height.
    pub(crate) fn draw(&mut self, out: &mut Output, lines: &[StyledLine]) -> io::Result<()> {
        let Area { width, height } = Area::now();
        // The cursor cannot move above the top of the screen.
        let up = self.drawn.min(height.saturating_sub(1));
        if up > 0 {
            out.control(Control::Up(up))?;
        }
        out.control(Control::ToLineStart)?;
        out.control(Control::HideCursor)?;
        let lines = &lines[..lines.len().min(height.saturating_sub(1))];
        for line in lines {
            out.overwrite(line, width)?;
        }
        out.control(Control::ClearBelow)?;
        self.drawn = lines.len();
        out.flush()
    }

    /// Shows the cursor again.
    pub(crate) fn leave(&self, out: &mut Output) -> io::Result<()> {
        out.control(Control::ShowCursor)?;
        out.flush()
    }
}
