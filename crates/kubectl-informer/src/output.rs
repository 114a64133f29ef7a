//! Standard output: buffered, and nobody has to read it.

use std::io::{self, IsTerminal, Stdout, Write};

use crate::paint::{Paint, When};

/// Standard output.
#[derive(Debug)]
pub(crate) struct Output {
    out: io::BufWriter<Stdout>,
    pub(crate) paint: Paint,
    pub(crate) kind: OutputKind,
}

/// What standard output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    Terminal,
    /// A file or a pipe: nothing can be drawn twice.
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
