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

    /// Appends another line.
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// The parts with their tones.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Option<Tone>, &str)> {
        self.parts.iter().map(|(tone, text)| (*tone, text.as_str()))
    }

    fn with(mut self, tone: Option<Tone>, text: &str) -> Self {
        self.parts.push((tone, visible(text).into_owned()));
        self
    }

    /// The line, with escape sequences around its coloured parts.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let mut rendered = String::new();
        for (tone, text) in &self.parts {
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

    /// The line, truncated to `width` columns of a terminal; a truncated line ends with `…`.
    pub(crate) fn truncated(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let mut room = width.saturating_sub(columns(ELLIPSIS));
        let mut line = Self::default();
        for (tone, text) in &self.parts {
            let end = fitting(text, room);
            line.parts.push((*tone, text[..end].to_owned()));
            if end < text.len() {
                break;
            }
            room -= columns(text);
        }
        if width > 0 { line.plain(ELLIPSIS) } else { line }
    }

    /// The columns that the line takes on a terminal.
    pub(crate) fn width(&self) -> usize {
        self.parts.iter().map(|(_, text)| columns(text)).sum()
    }
}

/// The columns that text takes on a terminal: two for each wide character, such as those of East
/// Asia.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Text in at most `width` columns of a terminal, with `…` in its middle if it is longer: names
/// often differ at their ends only.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(columns(ELLIPSIS));
    let end = room / 2;
    let head = &text[..fitting(text, room - end)];
    let reversed: String = text.chars().rev().collect();
    let tail: String = reversed[..fitting(&reversed, end)].chars().rev().collect();
    if width > 0 { format!("{head}{ELLIPSIS}{tail}") } else { String::new() }
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
        assert_eq!(line.truncated(5).render(Paint::Coloured), "\x1b[32m+\x1b[0m abc");
        let line = StyledLine::default().toned(Tone::Added, "+ab").toned(Tone::Quiet, "c");
        assert_eq!(line.truncated(3).render(Paint::Coloured), "\x1b[32m+a\x1b[0m…");
    }

    #[test]
    fn a_truncated_line_fits_and_says_so() {
        let line = StyledLine::from("世界").plain("ab").plain("é");
        assert_eq!(line.truncated(7).render(Paint::Plain), "世界abé");
        assert_eq!(line.truncated(6).render(Paint::Plain), "世界a…");
        assert_eq!(line.truncated(4).render(Paint::Plain), "世…");
        assert_eq!(line.truncated(3).render(Paint::Plain), "世…");
        assert_eq!(line.truncated(2).render(Paint::Plain), "…");
    }

    #[test]
    fn names_are_shortened_in_the_middle() {
        assert_eq!(shortened("web-7d4b9c6f5-abcde", 19), "web-7d4b9c6f5-abcde");
        assert_eq!(shortened("web-7d4b9c6f5-abcde", 12), "web-7d…abcde");
        assert_eq!(shortened("世界世界世界", 6), "世…界");
        assert_eq!([shortened("ab", 1), shortened("ab", 0)], ["…", ""]);
    }

    #[test]
    fn escape_sequences_come_from_tones_only() {
        let line = StyledLine::default().toned(Tone::Added, "\x1b[0mred").plain("\n\u{202e}");
        assert_eq!(line.render(Paint::Coloured), "\x1b[32m\\u{1b}[0mred\x1b[0m\\n\\u{202e}");
    }
}
