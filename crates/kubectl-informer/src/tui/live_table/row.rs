//! A row and its recent changes.

use std::fmt;
use std::time::{Duration, Instant};

use kube_informer::Obj;
use serde_json::Value;

use super::padded;
use crate::table::tone_of;
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;
use crate::tui::columns::GAP;

/// How long a change is highlighted, and how long a row stays that is deleted or does not match.
pub(super) const HIGHLIGHT_TIME: Duration = Duration::from_secs(3);
pub(super) const LEAVING_ROW_TIME: Duration = Duration::from_secs(5);

pub(super) struct Row {
    /// A handle that shares no decoded body: those would stay in memory with the row.
    pub(super) object: Obj<Value>,
    /// The cells at the last change.
    pub(super) cells: Vec<String>,
    pub(super) state: State,
    /// Whether the view's expression is true.
    pub(super) is_shown: bool,
    /// When each cell last changed.
    changed: Vec<Option<Instant>>,
    /// When anything of the object last changed.
    pub(super) last_change: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Present,
    New(Instant),
    /// No longer in the result. The note says why.
    Leaving {
        since: Instant,
        note: Note,
    },
}

/// Why a row leaves the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The object is deleted.
    Gone,
    /// The object is still there.
    NoMatch,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "gone",
            Self::NoMatch => "no longer matches",
        })
    }
}

impl Row {
    pub(super) fn new(object: Obj<Value>, cells: Vec<String>, state: State, is_shown: bool) -> Self {
        let last_change = if let State::New(at) = state { Some(at) } else { None };
        Self { object, changed: vec![None; cells.len()], cells, state, is_shown, last_change }
    }

    pub(super) fn note(&self) -> Option<Note> {
        match self.state {
            State::Leaving { note, .. } => Some(note),
            State::Present | State::New(_) => None,
        }
    }

    /// Takes over a new state. Returns whether a cell differs.
    pub(super) fn update(&mut self, object: Obj<Value>, cells: Vec<String>, now: Instant) -> bool {
        self.changed.resize(cells.len(), None);
        let mut differs = false;
        for (nth, cell) in cells.iter().enumerate() {
            if self.cells.get(nth) != Some(cell) {
                self.changed[nth] = Some(now);
                differs = true;
            }
        }
        self.last_change = Some(now);
        self.object = object;
        self.cells = cells;
        differs
    }

    /// Formats the row: new and leaving rows are coloured as a whole, changed cells individually.
    pub(super) fn line(
        &self,
        names: &[String],
        cells: &[String],
        shown: &[(usize, usize)],
        is_selected: bool,
        now: Instant,
    ) -> StyledLine {
        let is_fresh = |since: Instant| now.duration_since(since) <= HIGHLIGHT_TIME;
        let gap = " ".repeat(GAP);
        let cell = |nth: usize, width: usize| padded(cells.get(nth).map_or("", String::as_str), width);
        let full_line = || shown.iter().map(|&(nth, width)| cell(nth, width)).collect::<Vec<_>>().join(&gap);
        let line = StyledLine::default();
        match self.state {
            State::Leaving { note, .. } => line.toned(Tone::Deleted, &format!("{}  ({note})", full_line().trim_end())),
            _ if is_selected => line.toned(Tone::Selected, &full_line()),
            State::New(since) if is_fresh(since) => line.toned(Tone::Added, &full_line()),
            State::New(_) | State::Present => shown.iter().enumerate().fold(line, |line, (at, &(nth, width))| {
                let line = if at > 0 { line.plain(&gap) } else { line };
                let is_changed = self.changed.get(nth).copied().flatten().is_some_and(is_fresh);
                let tone = names.get(nth).and_then(|name| tone_of(name, cells.get(nth).map_or("", String::as_str)));
                match (is_changed, tone) {
                    (true, _) => line.toned(Tone::Changed, &cell(nth, width)),
                    (false, Some(tone)) => line.toned(tone, &cell(nth, width)),
                    (false, None) => line.plain(&cell(nth, width)),
                }
            }),
        }
    }
}
