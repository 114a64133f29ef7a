//! Redraws lines in place on a terminal.

use std::io;

use crate::output::Output;

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
    pub(crate) fn draw(&mut self, out: &mut Output, lines: &[String]) -> io::Result<()> {
        let Area { width, height } = Area::now();
        let mut text = String::new();
        // The cursor cannot move above the top of the screen.
        let up = self.drawn.min(height.saturating_sub(1));
        if up > 0 {
            text.push_str(&format!("\x1b[{up}A"));
        }
        text.push_str("\r\x1b[?25l");
        let lines = &lines[..lines.len().min(height.saturating_sub(1))];
        for line in lines {
            text.push_str(&fit(line, width));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        out.write(&text)?;
        out.flush()
    }

    /// Shows the cursor again.
    pub(crate) fn leave(&self, out: &mut Output) -> io::Result<()> {
        out.write("\x1b[?25h")?;
        out.flush()
    }
}

/// Truncates a line to `width` columns; escape sequences take no columns.
fn fit(line: &str, width: usize) -> String {
    let mut text = String::with_capacity(line.len());
    let (mut columns, mut escaped) = (0, false);
    for c in line.chars() {
        if escaped {
            escaped = c != 'm';
        } else if c == '\x1b' {
            escaped = true;
        } else if columns == width {
            text.push_str("\x1b[0m");
            break;
        } else {
            columns += 1;
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room() {
        assert_eq!(fit("\x1b[32m+\x1b[0m abc", 5), "\x1b[32m+\x1b[0m abc");
        assert_eq!(fit("\x1b[32m+ab\x1b[0m", 2), "\x1b[32m+a\x1b[0m");
    }
}
