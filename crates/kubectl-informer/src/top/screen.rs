//! Draws the view: kinds on the left, objects or one object on the right, changes below.

use std::time::Instant;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use super::app::{App, Asked, Focus};
use super::object_view::Tab;
use crate::duration::short;
use crate::history::Change;
use crate::line::time_of_day;
use crate::terminal::paint::{Paint, Tone};
use crate::terminal::styled_line::StyledLine;
use crate::tui::{connection_line, draw_lines};

/// The narrowest screen on which the kinds stay beside an opened object.
const WIDE: u16 = 110;
const KINDS_WIDTH: u16 = 36;
const NARROW_KINDS_WIDTH: u16 = 31;

const HELP: [(&str, &str); 14] = [
    ("↑ ↓ PgUp PgDn g G", "move"),
    ("← → tab", "between kinds and objects"),
    ("enter", "one object; esc back"),
    ("1 2 3 4 tab", "its state, tree, events, history"),
    ("[ ]", "its state one change earlier, later"),
    ("/", "only rows with this text"),
    ("w", "only objects for which a CEL expression is true"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("c", "changed first"),
    ("?", "this help"),
    ("q Ctrl-C", "quit"),
    ("", ""),
    ("", "Any key closes this."),
];

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>, paint: Paint, now: Instant) {
    let area = frame.area();
    let feed_height = match area.height {
        0..16 => 0,
        16..30 => 6,
        30..45 => 10,
        _ => 14,
    };
    let [top, middle, feed, bottom] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(feed_height),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_lines(frame, top, paint, &[title(app, usize::from(area.width))]);
    let kinds_width = match (area.width >= WIDE, app.object.is_some()) {
        (true, _) => KINDS_WIDTH,
        (false, false) => NARROW_KINDS_WIDTH,
        (false, true) => 0,
    };
    let [left, _, right] = Layout::horizontal([
        Constraint::Length(kinds_width),
        Constraint::Length(u16::from(kinds_width > 0)),
        Constraint::Fill(1),
    ])
    .areas(middle);
    draw_lines(frame, left, paint, &kinds(app, usize::from(left.width)));
    if app.shows_help {
        let line = |(keys, what): &(&str, &str)| {
            StyledLine::default().toned(Tone::Strong, &format!("  {keys:<18}")).plain(what)
        };
        draw_lines(frame, right, paint, &HELP.iter().map(line).collect::<Vec<_>>());
    } else if app.object.is_some() {
        draw_object(app, frame, right, paint);
    } else {
        let is_focused = app.focus == Focus::Table;
        app.pane_mut().table.draw(frame, right, paint, is_focused, now);
    }
    if feed_height > 0 {
        draw_lines(frame, feed, paint, &feed_lines(app, usize::from(feed.width), usize::from(feed.height)));
    }
    draw_lines(frame, bottom, paint, &[status(app, now)]);
}

fn title(app: &App, width: usize) -> StyledLine {
    let left = format!("{}  {}", app.context, app.scope);
    let right = format!("{} of changes  {}  ? help", bytes(app.ring.bytes()), time_of_day(Timestamp::now()));
    let line = StyledLine::default().toned(Tone::Strong, "kubectl informer top  ").plain(&left);
    let gap = width.saturating_sub(line.width() + right.chars().count());
    line.toned(Tone::Quiet, &format!("{:gap$}{right}", ""))
}

fn kinds(app: &App, width: usize) -> Vec<StyledLine> {
    let name_width = width.saturating_sub(21);
    let head = format!("{:<name_width$} {:>6} {:>5} {:>6}", "KIND", "COUNT", "EV/S", "SIZE");
    let row = |(number, pane): (usize, &super::Pane)| {
        let name = StyledLine::from(pane.watched.kind.full_name().as_str()).truncated(name_width);
        let name: String = name.parts().map(|(_, text)| text).collect();
        let text =
            format!("{name:<name_width$} {:>6} {:>5} {:>6}", pane.table.len(), rate(pane.rate), bytes(pane.bytes));
        let line = StyledLine::default();
        match (number == app.selected, app.focus, pane.is_failing()) {
            (true, Focus::Kinds, _) => line.toned(Tone::Selected, &text),
            (_, _, true) => line.toned(Tone::Deleted, &text),
            (true, Focus::Table, _) => line.toned(Tone::Strong, &text),
            _ => line.plain(&text),
        }
    };
    let head = StyledLine::default().toned(Tone::Quiet, &head);
    std::iter::once(head).chain(app.panes().iter().enumerate().map(row)).collect()
}

fn draw_object(app: &mut App, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let Some(mut view) = app.object.take() else { return };
    let [tabs, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let kind = app.panes()[view.number].watched.kind.kind.to_lowercase();
    let mut line = StyledLine::default().toned(Tone::Strong, &format!("{kind} {}", view.key)).plain(" ");
    for (tab, name) in Tab::ALL {
        let tone = if tab == view.tab { Tone::Selected } else { Tone::Quiet };
        line = line.plain(" ").toned(tone, &format!(" {name} "));
    }
    draw_lines(frame, tabs, paint, &[line]);
    let lines = view.lines(app.panes(), &app.ring, &app.style, usize::from(body.height));
    draw_lines(frame, body, paint, &lines);
    app.object = Some(view);
}

/// The latest changes with their fields, the newest below.
fn feed_lines(app: &App, width: usize, height: usize) -> Vec<StyledLine> {
    let room = height.saturating_sub(1);
    // Of one change, not more than half of the lines.
    let most = (room / 2).max(1);
    let mut blocks: Vec<Vec<StyledLine>> = Vec::new();
    let mut count = 0;
    for change in app.ring.iter().rev() {
        if count >= room {
            break;
        }
        let block = block(app, &change.compact(), most);
        count += block.len();
        blocks.push(block);
    }
    let mut lines: Vec<StyledLine> = blocks.into_iter().rev().flatten().collect();
    lines.drain(..lines.len().saturating_sub(room));
    let rule = "─".repeat(width.saturating_sub(10));
    lines.insert(0, StyledLine::default().toned(Tone::Quiet, &format!("─ changes {rule}")).truncated(width));
    lines
}

fn block(app: &App, change: &Change, most: usize) -> Vec<StyledLine> {
    let time = StyledLine::default().toned(Tone::Quiet, &format!("{} ", time_of_day(change.at)));
    let fields = app.style.fields(change);
    let more = fields.len().saturating_sub(most.saturating_sub(1));
    let mut lines = vec![time.then(app.style.line(change))];
    lines.extend(fields.iter().take(fields.len() - more).cloned());
    if more > 0 && lines.len() < most {
        lines.push(StyledLine::default().toned(Tone::Quiet, &format!("    and {more} more fields")));
    }
    lines
}

fn status(app: &mut App, now: Instant) -> StyledLine {
    let line = StyledLine::default();
    if let Some(complaint) = &app.complaint {
        return line.toned(Tone::Deleted, complaint);
    }
    match &app.prompt {
        Some((Asked::Filter, prompt)) => {
            return line.plain(&format!("/{}", prompt.text)).toned(Tone::Quiet, "▏ enter keeps it, esc clears it");
        }
        Some((Asked::Condition, prompt)) => {
            return line
                .plain(&format!("where {}", prompt.text))
                .toned(Tone::Quiet, "▏ in CEL; enter applies it, esc leaves it");
        }
        None => {}
    }
    let pane = app.pane_mut();
    let line = line.toned(Tone::Strong, &pane.watched.kind.full_name()).plain(&format!(" {} rows, ", pane.table.len()));
    let mut line = line.then(connection_line(&pane.watched.informer.health(), tokio::time::Instant::now()));
    if let Some(last) = pane.table.last_change {
        line = line.toned(Tone::Quiet, &format!(", last change {} ago", short(now.duration_since(last))));
    }
    if pane.table.hidden_columns > 0 {
        line = line.toned(Tone::Quiet, &format!(", {} columns do not fit", pane.table.hidden_columns));
    }
    match pane.table.view().description() {
        view if view.is_empty() => line,
        view => line.toned(Tone::Updated, &format!(", {view}")),
    }
}

fn rate(events: f64) -> String {
    if events < 99.95 { format!("{events:.1}") } else { format!("{events:.0}") }
}

/// A size in at most six columns.
fn bytes(count: usize) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.0} kB", count as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.1}MB", count as f64 / 1e6),
        _ => format!("{:.0} MB", count as f64 / 1e6),
    }
}
