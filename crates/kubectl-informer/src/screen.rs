//! Redraws some lines in place.

use std::io;

use crate::output::Output;

/// The size of a terminal that does not tell.
const WIDTH: usize = 100;
const HEIGHT: usize = 30;

/// A part of the terminal, from the cursor down. What was drawn last stays there in the end.
#[derive(Debug, Default)]
pub(crate) struct Screen {
    /// How many lines were drawn.
    drawn: usize,
}

/// How many columns and lines there are.
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
    /// Draws these lines over those of last time, each cut to the width.
    pub(crate) fn draw(&mut self, out: &mut Output, lines: &[String]) -> io::Result<()> {
        let Area { width, height } = Area::now();
        let mut text = String::new();
        // What has scrolled away cannot be reached any more.
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

    /// Gives the cursor back.
    pub(crate) fn leave(&self, out: &mut Output) -> io::Result<()> {
        out.write("\x1b[?25h")?;
        out.flush()
    }
}

/// At most so many columns of a line; what only colours takes none.
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
