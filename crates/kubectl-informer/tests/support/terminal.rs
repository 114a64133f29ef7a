//! An emulated terminal, by the `vt100` crate.

use std::fmt;

use vt100::{Color, Parser};

/// A terminal of fixed size.
pub(crate) struct Terminal {
    parser: Parser,
    width: u16,
    height: u16,
}

/// A character, how it is shown, and the columns it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) letter: char,
    pub(crate) colour: Colour,
    pub(crate) width: usize,
}

/// The parameter of the SGR (`m`) sequence that shows a character so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Colour(pub(crate) u32);

impl Terminal {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        let size = |number: u16| number.try_into().expect("a terminal has rows and columns");
        Self { parser: Parser::new(size(height), size(width), 0), width, height }
    }

    /// Processes output; a character or a sequence may be split between calls.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    /// The characters of each row.
    pub(crate) fn cells(&self) -> Vec<Vec<Cell>> {
        (0..self.height).map(|row| (0..self.width).filter_map(|column| self.cell(row, column)).collect()).collect()
    }

    /// The visible rows, without trailing blanks.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.parser.screen().rows(0, self.width).map(|row| row.trim_end().to_owned()).collect()
    }

    pub(crate) fn cursor_hidden(&self) -> bool {
        self.parser.screen().hide_cursor()
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.parser.screen().alternate_screen()
    }

    fn cell(&self, row: u16, column: u16) -> Option<Cell> {
        let cell = self.parser.screen().cell(row, column)?;
        if cell.is_wide_continuation() {
            return None;
        }
        let colour = match cell.fgcolor() {
            _ if cell.inverse() => 7,
            Color::Idx(colour @ 0..8) => 30 + u32::from(colour),
            _ if cell.dim() => 2,
            _ if cell.bold() => 1,
            _ => 0,
        };
        let letter = cell.contents().chars().next().unwrap_or(' ');
        Some(Cell { letter, colour: Colour(colour), width: if cell.is_wide() { 2 } else { 1 } })
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lines()).finish()
    }
}
