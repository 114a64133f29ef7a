//! A line of text that the user types.

use crossterm::event::KeyCode;

/// The text so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
}

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// The text may have changed.
    On,
    Entered,
    Cancelled,
}

impl Prompt {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    pub(crate) fn key(&mut self, key: KeyCode) -> Typed {
        match key {
            KeyCode::Enter => return Typed::Entered,
            KeyCode::Esc => return Typed::Cancelled,
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char(c) => self.text.push(c),
            _ => {}
        }
        Typed::On
    }
}
