//! Lines of output whose parts have colours.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use crate::terminal::paint::{Paint, Tone};
use crate::terminal::terminal_text::visible;

const ELLIPSIS: &str = "…";

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

    /// The same, truncated to `width` columns of a terminal; a truncated line ends with `…`.
    pub(crate) fn render_within(&self, paint: Paint, width: usize) -> String {
        let is_truncated = self.parts.iter().map(|(_, text)| columns(text)).sum::<usize>() > width;
        let mut room = if is_truncated { width.saturating_sub(columns(ELLIPSIS)) } else { width };
        let mut rendered = String::new();
        for (tone, text) in &self.parts {
            let end = fitting(text, room);
            room = if end < text.len() { 0 } else { room - columns(text) };
            let text = &text[..end];
            // Writing into a string cannot fail.
            let _ = match (tone, paint) {
                (Some(tone), Paint::Coloured) if !text.is_empty() => {
                    write!(rendered, "\x1b[{}m{text}\x1b[0m", tone.code())
                }
                _ => rendered.write_str(text),
            };
        }
        if is_truncated {
            rendered.push_str(ELLIPSIS);
        }
        rendered
    }
}

/// The columns that text takes on a terminal: two for each wide character, such as those of East
/// Asia.
fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The length of the longest beginning that fits into `room` columns.
fn fitting(text: &str, mut room: usize) -> usize {
    let does_not_fit = |c: char| {
        let rest = room.checked_sub(c.width().unwrap_or(0));
        room = rest.unwrap_or(0);
        rest.is_none()
    };
    text.find(does_not_fit).unwrap_or(text.len())
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
        assert_eq!(line.render_within(Paint::Coloured, 3), "\x1b[32m+a\x1b[0m…");
    }

    #[test]
    fn a_truncated_line_fits_and_says_so() {
        let line = StyledLine::from("世界").plain("ab").plain("é");
        assert_eq!(line.render_within(Paint::Plain, 7), "世界abé");
        assert_eq!(line.render_within(Paint::Plain, 6), "世界a…");
        assert_eq!(line.render_within(Paint::Plain, 4), "世…");
        assert_eq!(line.render_within(Paint::Plain, 3), "世…");
        assert_eq!(line.render_within(Paint::Plain, 2), "…");
    }

    #[test]
    fn escape_sequences_come_from_tones_only() {
        let line = StyledLine::default().toned(Tone::Added, "\x1b[0mred").plain("\n\u{202e}");
        assert_eq!(line.render(Paint::Coloured), "\x1b[32m\\u{1b}[0mred\x1b[0m\\n\\u{202e}");
    }
}
