//! Buffered standard output.

use std::fmt;
use std::io::{self, IsTerminal, Stdout, Write};

use crate::terminal::document::Document;
use crate::terminal::paint::{Paint, When};
use crate::terminal::styled_line::StyledLine;
use crate::terminal::terminal_text::visible;

/// Buffered writer to standard output, with its colour setting.
///
/// The only way to standard output: text is made visible here, so that no caller can forget it.
#[derive(Debug)]
pub(crate) struct Output {
    out: io::BufWriter<Stdout>,
    paint: Paint,
    pub(crate) kind: OutputKind,
}

/// Whether standard output is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Terminal,
    /// A file or a pipe: lines cannot be redrawn.
    Stream,
}

/// A control sequence of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    ToLineStart,
    ClearToLineEnd,
}

impl Output {
    pub(crate) fn new(colour: When) -> Self {
        let out = io::stdout();
        let paint = Paint::new(colour, &out);
        let kind = if out.is_terminal() { OutputKind::Terminal } else { OutputKind::Stream };
        Self { out: io::BufWriter::with_capacity(64 * 1024, out), paint, kind }
    }

    /// Writes text as one line.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(visible(text).as_bytes())?;
        self.out.write_all(b"\n")
    }

    pub(crate) fn styled(&mut self, line: &StyledLine) -> io::Result<()> {
        self.out.write_all(line.render(self.paint).as_bytes())?;
        self.out.write_all(b"\n")
    }

    pub(crate) fn document(&mut self, document: &Document) -> io::Result<()> {
        self.out.write_all(document.as_str().as_bytes())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ToLineStart => f.write_str("\r"),
            Self::ClearToLineEnd => f.write_str("\x1b[K"),
        }
    }
}
