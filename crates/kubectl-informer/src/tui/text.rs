//! Styled lines on the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::terminal::paint::{Paint, Tone};
use crate::terminal::styled_line::StyledLine;

/// Draws lines from the top of an area; those that do not fit are left out.
pub(crate) fn draw_lines(frame: &mut Frame<'_>, area: Rect, paint: Paint, lines: &[StyledLine]) {
    for (line, row) in lines.iter().zip(area.rows()) {
        frame.render_widget(to_line(&line.truncated(usize::from(area.width)), paint), row);
    }
}

fn to_line(line: &StyledLine, paint: Paint) -> Line<'static> {
    line.parts().map(|(tone, text)| Span::styled(text.to_owned(), style(tone, paint))).collect::<Vec<_>>().into()
}

fn style(tone: Option<Tone>, paint: Paint) -> Style {
    let style = Style::new();
    match tone {
        None => style,
        // Marks are visible without colours, too.
        Some(Tone::Changed | Tone::Selected) => style.add_modifier(Modifier::REVERSED),
        Some(_) if paint == Paint::Plain => style,
        Some(Tone::Added) => style.fg(Color::Green),
        Some(Tone::Updated) => style.fg(Color::Yellow),
        Some(Tone::Deleted) => style.fg(Color::Red),
        Some(Tone::Quiet) => style.add_modifier(Modifier::DIM),
        Some(Tone::Strong) => style.add_modifier(Modifier::BOLD),
    }
}
