//! A table that follows changes: changed cells are marked, and rows that are deleted or match no
//! longer stay for some seconds.

mod row;
mod view;

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use crossterm::event::KeyCode;
use kube_informer::object::FieldPath;
use kube_informer::{Health, Obj, ObjectKey, Origin};
use ratatui::Frame;
use ratatui::layout::Rect;
use serde_json::Value;

use self::row::{LEAVING_ROW_TIME, Note, Row, State};
pub(crate) use self::view::{Sort, View};
use super::columns::{Fitted, GAP, fit};
use super::connection_line;
use super::text::draw_lines;
use crate::duration::short;
use crate::failure::Failure;
use crate::history::{Change, Removal, What};
use crate::line::counted;
use crate::object::filter::Filter;
use crate::object::left_out::LeftOut;
use crate::object::query::Query;
use crate::table::grid::Grid;
use crate::table::lines::widths;
use crate::terminal::paint::{Paint, Tone};
use crate::terminal::styled_line::{StyledLine, columns, shortened};

/// The rows of one kind and how they are shown.
pub(crate) struct LiveTable {
    grid: Grid,
    query: Query,
    view: View,
    rows: BTreeMap<ObjectKey, Row>,
    /// The rows in display order; `None` after a change.
    order: Option<Vec<ObjectKey>>,
    selected: Option<ObjectKey>,
    /// Index of the first visible row.
    top: usize,
    /// The number of rows on the screen at the last drawing.
    height: usize,
    /// The number of columns that did not fit at the last drawing.
    pub(crate) hidden_columns: usize,
    pub(crate) last_change: Option<Instant>,
}

/// A row to be printed where lines cannot be redrawn.
pub(crate) struct PrintedRow {
    pub(crate) cells: Vec<String>,
    pub(crate) note: Option<Note>,
}

impl LiveTable {
    pub(crate) fn new(grid: Grid, query: Query, sort_by: Option<&FieldPath>) -> Self {
        let sort = sort_by.map_or(Sort::Name, |path| Sort::Path(path.clone()));
        Self {
            grid,
            query,
            view: View::new(sort),
            rows: BTreeMap::new(),
            order: None,
            selected: None,
            top: 0,
            height: 0,
            hidden_columns: 0,
            last_change: None,
        }
    }

    /// Applies a change. Returns the row if a cell of it differs.
    pub(crate) fn apply(&mut self, change: &Change, now: Instant) -> Result<Option<PrintedRow>, Failure> {
        let note = match &change.what {
            What::Deleted { why: Removal::Deleted | Removal::Missed } => Some(Note::Gone),
            What::Deleted { why: Removal::Unselected | Removal::Unmatched } => Some(Note::NoMatch),
            _ if !self.query.fits(&change.object, &mut LeftOut::default())? => Some(Note::NoMatch),
            _ => None,
        };
        let key = change.object.key();
        if let Some(note) = note {
            let Some(row) = self.rows.get_mut(key).filter(|row| row.note().is_none()) else { return Ok(None) };
            row.state = State::Leaving { since: now, note };
            self.last_change = Some(now);
            return Ok(Some(PrintedRow { cells: row.cells.clone(), note: Some(note) }));
        }
        let object = change.object.fresh_handle();
        let cells = self.grid.row(change.object.get().unwrap_or(&Value::Null), SystemTime::now());
        let is_shown = self.view.fits(&change.object);
        if change.origin != Origin::Initial {
            self.last_change = Some(now);
        }
        if let Some(row) = self.rows.get_mut(key).filter(|row| row.note().is_none()) {
            let stays_shown = row.is_shown == is_shown;
            row.is_shown = is_shown;
            let differs = row.update(object, cells, now);
            // What hides or sorts the rows may be in no cell.
            self.order = self.order.take().filter(|_| !differs && stays_shown && self.view.sorts_by_cells());
            return Ok(differs.then(|| PrintedRow { cells: row.cells.clone(), note: None }));
        }
        self.order = None;
        let state = if change.origin == Origin::Initial { State::Present } else { State::New(now) };
        self.rows.insert(key.clone(), Row::new(object, cells.clone(), state, is_shown));
        Ok(Some(PrintedRow { cells, note: None }))
    }

    /// Removes rows that have been gone for a while.
    pub(crate) fn expire(&mut self, now: Instant) {
        let before = self.rows.len();
        self.rows.retain(
            |_, row| !matches!(row.state, State::Leaving { since, .. } if now.duration_since(since) > LEAVING_ROW_TIME),
        );
        if self.rows.len() != before {
            self.order = None;
        }
    }

    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        self.rows.values().filter(|row| row.note().is_none()).count()
    }

    pub(crate) fn head(&self) -> Vec<String> {
        self.grid.head()
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn set_filter(&mut self, text: &str) {
        self.view.set_filter(text);
        self.order = None;
    }

    /// Shows only the objects for which an expression is true; `None` shows all.
    pub(crate) fn set_condition(&mut self, condition: Option<Filter>) {
        self.view.set_condition(condition);
        for row in self.rows.values_mut() {
            row.is_shown = self.view.fits(&row.object.fresh_handle());
        }
        self.order = None;
    }

    /// Sorts by the next column, and by the name after the last.
    pub(crate) fn sort_by_next_column(&mut self) {
        self.view.sort_by_next_column(self.grid.head().len());
        self.order = None;
    }

    pub(crate) fn toggle_changed_first(&mut self) {
        self.view.toggle_changed_first();
        self.order = None;
    }

    pub(crate) fn reverse(&mut self) {
        self.view.is_reversed = !self.view.is_reversed;
        self.order = None;
    }

    /// The selected object, or the first one.
    pub(crate) fn selected(&mut self) -> Option<Obj<Value>> {
        self.sort();
        let order = self.order.as_deref().unwrap_or_default();
        let key = self.selected.as_ref().filter(|key| self.rows.contains_key(*key)).or_else(|| order.first())?;
        self.rows.get(key).map(|row| row.object.fresh_handle())
    }

    /// Moves the selection. Returns whether the key does that.
    pub(crate) fn key(&mut self, key: KeyCode) -> bool {
        self.sort();
        let order = self.order.as_deref().unwrap_or_default();
        let at = self.selected.as_ref().and_then(|key| order.iter().position(|each| each == key)).unwrap_or(0);
        let page = self.height.saturating_sub(1).max(1);
        let to = match key {
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            KeyCode::PageUp => at.saturating_sub(page),
            KeyCode::PageDown | KeyCode::Char(' ') => at + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => usize::MAX,
            _ => return false,
        };
        let to = to.min(order.len().saturating_sub(1));
        self.selected = order.get(to).cloned();
        true
    }

    /// Draws the header and the rows around the selection.
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, paint: Paint, is_focused: bool, now: Instant) {
        let lines = self.lines(usize::from(area.width), usize::from(area.height), is_focused, now);
        draw_lines(frame, area, paint, &lines);
    }

    /// Rows, hidden columns, last change, what was chosen to be seen and, last because it may be
    /// long, the connection.
    pub(crate) fn status(&self, health: &Health, now: Instant) -> StyledLine {
        let mut line = StyledLine::default().toned(Tone::Quiet, &counted(self.len(), "row"));
        if self.hidden_columns > 0 {
            let hidden = counted(self.hidden_columns, "column");
            line = line.toned(Tone::Quiet, ", ").toned(Tone::Updated, &format!("{hidden} hidden"));
        }
        if let Some(last) = self.last_change {
            line = line.toned(Tone::Quiet, &format!(", last change {} ago", short(now.duration_since(last))));
        }
        let view = self.view.description();
        if !view.is_empty() {
            line = line.toned(Tone::Quiet, ", ").toned(Tone::Updated, &view);
        }
        line.toned(Tone::Quiet, ", ").then(connection_line(health, tokio::time::Instant::now()))
    }

    /// The lines for an area of this size.
    pub(crate) fn lines(&mut self, width: usize, height: usize, is_focused: bool, now: Instant) -> Vec<StyledLine> {
        self.expire(now);
        self.sort();
        self.height = height.saturating_sub(1);
        let order = self.order.take().unwrap_or_default();
        let at = self.selected.as_ref().and_then(|key| order.iter().position(|each| each == key)).unwrap_or(0);
        self.top =
            self.top.min(at).max((at + 1).saturating_sub(self.height)).min(order.len().saturating_sub(self.height));
        let wall = SystemTime::now();
        let visible: Vec<(&Row, Vec<String>)> = order
            .iter()
            .skip(self.top)
            .take(self.height)
            .filter_map(|key| self.rows.get(key))
            // Ages are those of now.
            .map(|row| {
                (
                    row,
                    row.object
                        .fresh_handle()
                        .get()
                        .map_or_else(|_| row.cells.clone(), |value| self.grid.row(value, wall)),
                )
            })
            .collect();
        let mut head = self.grid.head();
        self.view.mark(&mut head);
        let widths = widths(std::iter::once(&head).chain(visible.iter().map(|(_, cells)| cells)));
        let Fitted { shown, hidden } = fit(&self.grid.head(), &widths, width);
        let names = self.grid.head();
        let mut lines = Vec::with_capacity(height);
        let head = shown.iter().map(|&(nth, width)| padded(&head[nth], width));
        lines
            .push(StyledLine::default().toned(Tone::Quiet, head.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end()));
        for (nth, (row, cells)) in visible.iter().enumerate() {
            let is_selected = is_focused && self.top + nth == at;
            lines.push(row.line(&names, cells, &shown, is_selected, now));
        }
        self.hidden_columns = hidden;
        self.order = Some(order);
        lines
    }

    fn sort(&mut self) {
        if self.order.is_none() {
            self.order = Some(self.view.order(&self.grid.head(), &self.rows));
        }
    }
}

/// A cell with exactly this width; a long one has `…` in its middle.
fn padded(cell: &str, width: usize) -> String {
    let text = shortened(cell, width);
    let missing = width.saturating_sub(columns(&text));
    text + &" ".repeat(missing)
}
