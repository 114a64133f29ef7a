//! Buffered standard output.

use std::io::{self, IsTerminal, Stdout, Write};

use crate::paint::{Paint, When};

/// Buffered writer to standard output, with its colour setting.
#[derive(Debug)]
pub(crate) struct Output {
    out: io::BufWriter<Stdout>,
    pub(crate) paint: Paint,
    pub(crate) kind: OutputKind,
}

/// Whether standard output is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Terminal,
    /// A file or a pipe: lines cannot be redrawn.
    Stream,
}

impl Output {
    pub(crate) fn new(colour: When) -> Self {
        let out = io::stdout();
        let paint = Paint::new(colour, &out);
        let kind = if out.is_terminal() { OutputKind::Terminal } else { OutputKind::Stream };
        Self { out: io::BufWriter::with_capacity(64 * 1024, out), paint, kind }
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
