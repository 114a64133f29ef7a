//! Messages on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use crate::terminal::output::Control;
use crate::terminal::terminal_text::visible;

/// Writes text as one line to standard error; write errors are ignored.
pub(crate) fn stderr(text: &str) {
    write(&format!("{}\n", visible(text)));
}

/// Writes a message that may have several lines, such as a server's error with advice below it.
pub(crate) fn stderr_lines(text: &str) {
    text.lines().for_each(stderr);
}

/// A line on standard error that is redrawn, and erased on drop. Where standard error is no
/// terminal, each drawing is a line of its own.
#[derive(Debug)]
pub(crate) struct StatusLine {
    is_terminal: bool,
    is_drawn: bool,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), is_drawn: false }
    }

    pub(crate) fn is_redrawn(&self) -> bool {
        self.is_terminal
    }

    pub(crate) fn draw(&mut self, text: &str) {
        self.is_drawn = true;
        if self.is_terminal {
            write(&format!("{}{}{}", Control::ToLineStart, Control::ClearToLineEnd, visible(text)));
        } else {
            stderr(text);
        }
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if self.is_terminal && self.is_drawn {
            write(&format!("{}{}", Control::ToLineStart, Control::ClearToLineEnd));
        }
    }
}

fn write(text: &str) {
    let mut err = io::stderr().lock();
    drop(err.write_all(text.as_bytes()).and_then(|()| err.flush()));
}
