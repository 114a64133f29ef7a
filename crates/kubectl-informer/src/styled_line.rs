//! Lines of output whose parts have colours.

use std::fmt::Write as _;

use crate::paint::{Paint, Tone};
use crate::terminal_text::visible;

/// A line of output, without hidden characters in its text. Colours are added when it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StyledLine {
    parts: Vec<(Option<Tone>, String)>,
}

impl StyledLine {
    /// Appends text without a colour.
    pub(crate) fn plain(self, text: &str) -> Self {
        self.with(None, text)
    }

    /// Appends text in the colour of a tone.
    pub(crate) fn toned(self, tone: Tone, text: &str) -> Self {
        self.with(Some(tone), text)
    }

    fn with(mut self, tone: Option<Tone>, text: &str) -> Self {
        self.parts.push((tone, visible(text).into_owned()));
        self
    }

    /// The line, with escape sequences around its coloured parts.
    pub(crate) fn render(&self, paint: Paint) -> String {
        self.render_within(paint, usize::MAX)
    }

    /// The same, truncated to `width` columns.
    pub(crate) fn render_within(&self, paint: Paint, width: usize) -> String {
        let (mut rendered, mut room) = (String::new(), width);
        for (tone, text) in &self.parts {
            let end = text.char_indices().nth(room).map_or(text.len(), |(end, _)| end);
            let text = &text[..end];
            room = room.saturating_sub(text.chars().count());
            // Writing into a string cannot fail.
            let _ = match (tone, paint) {
                (Some(tone), Paint::Coloured) if !text.is_empty() => {
                    write!(rendered, "\x1b[{}m{text}\x1b[0m", tone.code())
                }
                _ => rendered.write_str(text),
            };
        }
        rendered
    }
}

impl From<&str> for StyledLine {
    fn from(text: &str) -> Self {
        Self::default().plain(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room() {
        let line = StyledLine::default().toned(Tone::Added, "+").plain(" abc");
        assert_eq!(line.render_within(Paint::Coloured, 5), "\x1b[32m+\x1b[0m abc");
        let line = StyledLine::default().toned(Tone::Added, "+ab").toned(Tone::Quiet, "c");
        assert_eq!(line.render_within(Paint::Coloured, 2), "\x1b[32m+a\x1b[0m");
    }

    #[test]
    fn escape_sequences_come_from_tones_only() {
        let line = StyledLine::default().toned(Tone::Added, "\x1b[0mred").plain("\n\u{202e}");
        assert_eq!(line.render(Paint::Coloured), "\x1b[32m\\u{1b}[0mred\x1b[0m\\n\\u{202e}");
    }
}
