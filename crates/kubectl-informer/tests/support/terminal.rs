//! A minimal terminal emulator, with the escape sequences that the live views use.

/// An emulated terminal of fixed size.
#[derive(Debug)]
pub(crate) struct Terminal {
    width: usize,
    height: usize,
    rows: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    colour: Colour,
    unfinished: Vec<u8>,
    /// The incomplete escape sequence, if any.
    escape: Option<String>,
    /// Whether the cursor is hidden.
    pub(crate) cursor_hidden: bool,
}

/// A character and its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) letter: char,
    pub(crate) colour: Colour,
}

/// Parameter of the last SGR (`m`) sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Colour(pub(crate) u32);

impl Terminal {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let (rows, colour) = (vec![Vec::new(); height], Colour::default());
        let unfinished = Vec::new();
        Self { width, height, rows, row: 0, column: 0, colour, unfinished, escape: None, cursor_hidden: false }
    }

    /// Processes output; a UTF-8 character may be split between calls.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.unfinished) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let rest = self.unfinished.split_off(whole);
        let text = std::mem::replace(&mut self.unfinished, rest);
        String::from_utf8_lossy(&text).chars().for_each(|letter| self.process(letter));
    }

    pub(crate) fn cells(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// The visible rows, without trailing blanks.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = |row: &Vec<Cell>| row.iter().map(|cell| cell.letter).collect::<String>().trim_end().to_owned();
        self.rows.iter().map(text).collect()
    }

    fn process(&mut self, letter: char) {
        if let Some(mut sequence) = self.escape.take() {
            sequence.push(letter);
            let ended = sequence.len() > 1 && letter.is_ascii_alphabetic();
            if ended {
                self.execute(&sequence);
            } else {
                self.escape = Some(sequence);
            }
            return;
        }
        match letter {
            '\x1b' => self.escape = Some(String::new()),
            '\r' => self.column = 0,
            '\n' => self.line_feed(),
            letter => self.put(letter),
        }
    }

    fn put(&mut self, letter: char) {
        if self.column == self.width {
            self.column = 0;
            self.line_feed();
        }
        let blank = Cell { letter: ' ', colour: Colour::default() };
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), blank);
        row[self.column] = Cell { letter, colour: self.colour };
        self.column += 1;
    }

    fn line_feed(&mut self) {
        if self.row + 1 == self.height {
            self.rows.remove(0);
            self.rows.push(Vec::new());
        } else {
            self.row += 1;
        }
    }

    fn execute(&mut self, sequence: &str) {
        let (parameters, command) = sequence[1..].split_at(sequence.len() - 2);
        let number = parameters.parse::<u32>().ok();
        match command {
            "A" => self.row = self.row.saturating_sub(number.unwrap_or(1) as usize),
            "K" => self.rows[self.row].truncate(self.column),
            "J" => {
                self.rows[self.row].truncate(self.column);
                self.rows[self.row + 1..].iter_mut().for_each(Vec::clear);
            }
            "m" => self.colour = Colour(number.unwrap_or(0)),
            "l" if parameters == "?25" => self.cursor_hidden = true,
            "h" if parameters == "?25" => self.cursor_hidden = false,
            other => panic!("a terminal that knows no {parameters}{other}"),
        }
    }
}
