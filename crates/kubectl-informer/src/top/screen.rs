//! Draws the view: kinds on the left, objects or one object on the right, changes below.

use std::time::Instant;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use super::app::{App, Asked, Focus};
use super::object_view::Tab;
use crate::history::Change;
use crate::line::{counted, time_of_day};
use crate::terminal::bytes::{bytes, bytes_cell};
use crate::terminal::paint::{Paint, Tone};
use crate::terminal::styled_line::{StyledLine, columns, shortened};
use crate::terminal::terminal_text::visible;
use crate::tui::{connection_line, draw_lines};

/// The narrowest screen on which the kinds stay beside an opened object.
const WIDE: u16 = 110;
/// The narrowest area in which the tree, the events and the history of an object are beside it.
const WIDE_OBJECT: u16 = 120;
const MAX_NAME_WIDTH: usize = 28;

const HELP: [(&str, &str); 15] = [
    ("↑ ↓ PgUp PgDn g G", "move"),
    ("← → tab", "switch between kinds and objects"),
    ("enter", "open the object; esc goes back"),
    ("1 2 3 4 tab", "its state, tree, events, history"),
    ("[ ]", "its state one change earlier, later"),
    ("n", "the next line that the change wrote"),
    ("/", "show only rows that contain a text"),
    ("w", "show only objects for which a CEL expression is true"),
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
    // On a narrow screen, the sizes give way to the table while keys move in that.
    let shows_sizes = area.width >= WIDE || app.focus == Focus::Kinds;
    let left = match area.width < WIDE && app.object.is_some() {
        true => Vec::new(),
        false => kinds(app, shows_sizes),
    };
    let left_width = left.iter().map(StyledLine::width).max().unwrap_or(0);
    let [left_area, _, right] = Layout::horizontal([
        Constraint::Length(u16::try_from(left_width).unwrap_or(u16::MAX)),
        Constraint::Length(if left_width > 0 { 2 } else { 0 }),
        Constraint::Fill(1),
    ])
    .areas(middle);
    if app.shows_help {
        let line = |(keys, what): &(&str, &str)| {
            StyledLine::default().toned(Tone::Strong, &format!("  {keys:<18}")).plain(what)
        };
        draw_lines(frame, middle, paint, &HELP.iter().map(line).collect::<Vec<_>>());
    } else if app.object.is_some() {
        draw_lines(frame, left_area, paint, &left);
        draw_object(app, frame, right, paint);
    } else {
        draw_lines(frame, left_area, paint, &left);
        let is_focused = app.focus == Focus::Table;
        app.pane_mut().table.draw(frame, right, paint, is_focused, now);
    }
    if feed_height > 0 {
        draw_lines(frame, feed, paint, &feed_lines(app, usize::from(feed.width), usize::from(feed.height)));
    }
    draw_lines(frame, bottom, paint, &[status(app, now)]);
}

fn title(app: &App, width: usize) -> StyledLine {
    let line = StyledLine::default()
        .toned(Tone::Strong, "kubectl informer top")
        .plain(&format!("  {}  {}", app.context, app.scope));
    let history = format!("{} of history", bytes(app.ring.bytes()));
    let (time, help) = (time_of_day(Timestamp::now()), "? help".to_owned());
    // What does not fit is left out, the least important first.
    let choices = [vec![history, time.clone(), help.clone()], vec![time, help.clone()], vec![help]];
    let fitting = choices.iter().map(|parts| parts.join("  "));
    let fitting = fitting.map(|right| (width.saturating_sub(line.width() + right.chars().count()), right));
    match fitting.into_iter().find(|(gap, _)| *gap >= 2) {
        Some((gap, right)) => line.toned(Tone::Quiet, &format!("{:gap$}{right}", "")),
        None => line,
    }
}

/// The kinds by their plural, with the group only where two have the same.
fn kinds(app: &App, shows_sizes: bool) -> Vec<StyledLine> {
    let names: Vec<String> = app.panes().iter().map(|pane| name(app, pane)).collect();
    let name_width = names.iter().map(|name| columns(name)).max().unwrap_or(0).clamp(4, MAX_NAME_WIDTH);
    let cells = |name: &str, count: &str, rate: &str, size: &str| {
        let missing = name_width - columns(name);
        let text = format!("{name}{:missing$}{count:>6}{rate:>6}", "");
        if shows_sizes { format!("{text}{size:>8}") } else { text }
    };
    let row = |(number, pane): (usize, &super::Pane)| {
        let text = cells(
            &shortened(&names[number], name_width),
            &pane.table.len().to_string(),
            &rate(pane.rate),
            &bytes_cell(pane.bytes),
        );
        let line = StyledLine::default();
        match (number == app.selected, app.focus, pane.is_failing()) {
            (true, Focus::Kinds, _) => line.toned(Tone::Selected, &text),
            (_, _, true) => line.toned(Tone::Deleted, &text),
            (true, Focus::Table, _) => line.toned(Tone::Strong, &text),
            _ => line.plain(&text),
        }
    };
    let head = StyledLine::default().toned(Tone::Quiet, &cells("KIND", "COUNT", "EV/S", "SIZE"));
    std::iter::once(head).chain(app.panes().iter().enumerate().map(row)).collect()
}

fn name(app: &App, pane: &super::Pane) -> String {
    let kind = &pane.watched.kind;
    let is_unique = app.panes().iter().filter(|other| other.watched.kind.plural == kind.plural).count() == 1;
    visible(&if is_unique { kind.plural.clone() } else { kind.full_name() }).into_owned()
}

fn draw_object(app: &mut App, frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    let Some(mut view) = app.object.take() else { return };
    let [tabs, body] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let is_split = body.width >= WIDE_OBJECT;
    let kind = app.panes()[view.number].watched.kind.kind.to_lowercase();
    let title = format!("{kind} {}", view.key);
    let tab_width: usize = Tab::ALL.iter().map(|(_, name)| name.len() + 3).sum();
    let title = shortened(&visible(&title), usize::from(area.width).saturating_sub(tab_width + 1));
    let mut line = StyledLine::default().toned(Tone::Strong, &title).plain(" ");
    for (tab, name) in Tab::ALL {
        let tone = if tab == view.tab { Tone::Selected } else { Tone::Quiet };
        line = line.plain(" ").toned(tone, &format!(" {name} "));
    }
    draw_lines(frame, tabs, paint, &[line]);
    let (panes, ring, style) = (app.panes(), &app.ring, &app.style);
    if is_split && view.tab == Tab::State {
        // Room for what else is known of the object.
        let [state, _, beside] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(2), Constraint::Fill(1)]).areas(body);
        draw_lines(frame, state, paint, &view.lines(panes, ring, style, usize::from(state.height)));
        let parts = [(Tab::Tree, 2), (Tab::Events, 2), (Tab::History, 3)];
        let areas: [Rect; 3] = Layout::vertical(parts.map(|(_, share)| Constraint::Fill(share))).areas(beside);
        for ((tab, _), area) in parts.into_iter().zip(areas) {
            let name = Tab::ALL.iter().find(|(each, _)| *each == tab).map_or("", |(_, name)| name);
            let mut lines = vec![rule(name.trim_start_matches(|c: char| !c.is_alphabetic()), usize::from(area.width))];
            lines.extend(view.lines_of(tab, panes, ring, style));
            draw_lines(frame, area, paint, &lines);
        }
    } else {
        let lines = view.lines(panes, ring, style, usize::from(body.height));
        draw_lines(frame, body, paint, &lines);
    }
    app.object = Some(view);
}

/// A line across, with a heading.
fn rule(heading: &str, width: usize) -> StyledLine {
    let rest = "─".repeat(width.saturating_sub(columns(heading) + 3));
    StyledLine::default().toned(Tone::Quiet, &format!("─ {heading} {rest}"))
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
    lines.insert(0, rule("changes", width));
    lines
}

fn block(app: &App, change: &Change, most: usize) -> Vec<StyledLine> {
    let time = StyledLine::default().toned(Tone::Quiet, &format!("{} ", time_of_day(change.at)));
    let fields = app.style.fields(change);
    let more = fields.len().saturating_sub(most.saturating_sub(1));
    let mut lines = vec![time.then(app.style.line(change))];
    lines.extend(fields.iter().take(fields.len() - more).cloned());
    if more > 0 && lines.len() < most {
        lines.push(StyledLine::default().toned(Tone::Quiet, &format!("    and {} more", counted(more, "field"))));
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
            return line
                .plain(&format!("/{}", prompt.text))
                .toned(Tone::Quiet, "▏ enter keeps the filter, esc clears it");
        }
        Some((Asked::Condition, prompt)) => {
            return line
                .plain(&format!("where {}", prompt.text))
                .toned(Tone::Quiet, "▏ CEL; enter applies it, esc cancels");
        }
        None => {}
    }
    let is_open = app.object.is_some();
    let pane = app.pane_mut();
    if is_open {
        let line = line.toned(Tone::Quiet, "esc back, tab next view, n next changed line, [ earlier, ] later; ");
        let health = pane.watched.informer.health();
        return line.then(connection_line(&health, tokio::time::Instant::now()));
    }
    let line = line.toned(Tone::Strong, &pane.watched.kind.full_name()).plain(": ");
    line.then(pane.table.status(&pane.watched.informer.health(), now))
}

fn rate(events: f64) -> String {
    if events < 99.95 { format!("{events:.1}") } else { format!("{events:.0}") }
}
