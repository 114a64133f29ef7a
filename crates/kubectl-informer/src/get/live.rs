//! The table of `get --watch`: changed cells are highlighted, and rows that are deleted or match no
//! longer stay for some seconds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use futures_util::FutureExt as _;
use kube_informer::{Event, FinalState, Obj, ObjectKey, Origin};
use serde_json::Value;
use tokio::task::coop::unconstrained;

use super::grid::{Grid, widths};
use super::{Query, Rank};
use crate::args::Get;
use crate::failure::Failure;
use crate::terminal::output::{Output, OutputKind};
use crate::terminal::paint::Tone;
use crate::terminal::screen::{Area, Screen};
use crate::terminal::styled_line::StyledLine;
use crate::watch::{Watched, health_report, until};
use crate::signals;
use crate::terminal::progress;

/// How long a change is highlighted, and how long a row stays that is deleted or does not match.
const HIGHLIGHT_TIME: Duration = Duration::from_secs(3);
const LEAVING_ROW_TIME: Duration = Duration::from_secs(5);
/// Note at a row whose object is still there.
const NO_MATCH: &str = "no longer matches";
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

/// A row and its recent changes.
struct Row {
    object: Obj<Value>,
    state: State,
    /// When each cell last changed.
    changed: Vec<Option<Instant>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Present,
    New(Instant),
    /// No longer in the result. The note says why.
    Leaving {
        since: Instant,
        note: &'static str,
    },
}

impl State {
    fn note(self) -> Option<&'static str> {
        match self {
            Self::Leaving { note, .. } => Some(note),
            Self::Present | Self::New(_) => None,
        }
    }
}

pub(crate) async fn run(
    args: &Get,
    watched: &Watched,
    question: &Query,
    grid: &Grid,
    out: &mut Output,
) -> Result<(), Failure> {
    let name = watched.kind.full_name();
    let mut events = watched.informer.subscribe();
    let events_synced = events.synced();
    watched.informer.start();
    let mut reporters = tokio::task::JoinSet::new();
    reporters.spawn(progress::run(name.clone(), watched.informer.clone()));
    reporters.spawn(health_report::run(name.clone(), watched.informer.clone()));
    let mut synced = std::pin::pin!(events_synced.fuse());
    let mut table = Table {
        grid,
        question,
        rows: BTreeMap::new(),
        screen: Screen::default(),
        unprinted: Vec::new(),
        widths: Vec::new(),
    };
    let mut end = std::pin::pin!(signals::ended());
    let mut deadline = None;
    let mut draws = tokio::time::interval(REDRAW_INTERVAL);
    // A block of its own, so that the cursor is shown again after a failure, too.
    let result: Result<(), Failure> = async {
        loop {
            tokio::select! {
                biased;
                () = &mut end => break Ok(()),
                () = until(deadline) => break Ok(()),
                result = &mut synced => match result {
                    Ok(()) => deadline = args.time.map(|time| tokio::time::Instant::now() + time),
                    Err(error) => break Err(Failure::of_sync(&name, &error)),
                },
                _ = draws.tick() => table.draw(out)?,
                Some(event) = events.next() => {
                    table.handle_event(event)?;
                    // What is already there is drawn at once.
                    let drained: Result<(), Failure> = unconstrained(async {
                        while let Some(Some(event)) = events.next().now_or_never() {
                            table.handle_event(event)?;
                        }
                        Ok(())
                    })
                    .await;
                    drained?;
                    if out.kind == OutputKind::Stream {
                        table.draw(out)?;
                    }
                }
            }
        }
    }
    .await;
    reporters.shutdown().await;
    if out.kind == OutputKind::Terminal {
        let drawn = table.draw(out);
        table.screen.leave(out)?;
        drawn?;
    }
    result
}

struct Table<'a> {
    grid: &'a Grid,
    question: &'a Query,
    rows: BTreeMap<ObjectKey, Row>,
    screen: Screen,
    /// On a stream: objects whose rows are not printed yet.
    unprinted: Vec<Obj<Value>>,
    /// On a stream: the column widths so far, which only grow.
    widths: Vec<usize>,
}

impl Table<'_> {
    fn handle_event(&mut self, event: Event<Value>) -> Result<(), Failure> {
        let now = Instant::now();
        let (object, note, origin) = match event {
            Event::Added { object, origin, .. } => (object, None, origin),
            Event::Updated { new, origin, .. } => (new, None, origin),
            Event::Deleted { last, origin, state: FinalState::Filtered, .. } => (last, Some(NO_MATCH), origin),
            Event::Deleted { last, origin, .. } => (last, Some("gone"), origin),
        };
        let note = match note {
            None if !self.question.fits(&object)? => Some(NO_MATCH),
            note => note,
        };
        if let Some(note) = note {
            if let Some(row) = self.rows.get_mut(object.key())
                && row.state.note().is_none()
            {
                row.state = State::Leaving { since: now, note };
                self.unprinted.push(object);
            }
            return Ok(());
        }
        let (wall, value) = (SystemTime::now(), object.get().cloned().unwrap_or_default());
        let cells = self.grid.row(&value, wall);
        let key = object.key().clone();
        let state = if origin == Origin::Initial { State::Present } else { State::New(now) };
        match self.rows.get_mut(&key).filter(|row| row.state.note().is_none()) {
            Some(row) => {
                let before = row.object.get().map(|old| self.grid.row(old, wall)).unwrap_or_default();
                row.changed.resize(cells.len(), None);
                let mut different = false;
                for (nth, cell) in cells.iter().enumerate() {
                    if before.get(nth) != Some(cell) {
                        row.changed[nth] = Some(now);
                        different = true;
                    }
                }
                row.object = object.clone();
                if different {
                    self.unprinted.push(object);
                }
            }
            None => {
                self.unprinted.push(object.clone());
                self.rows.insert(key, Row { object, state, changed: vec![None; cells.len()] });
            }
        }
        Ok(())
    }

    fn draw(&mut self, out: &mut Output) -> Result<(), Failure> {
        match out.kind {
            OutputKind::Terminal => self.redraw(out),
            OutputKind::Stream => self.print(out),
        }
    }

    /// Prints a header, then one row per change, as kubectl does.
    fn print(&mut self, out: &mut Output) -> Result<(), Failure> {
        let wall = SystemTime::now();
        let mut rows = Vec::new();
        for object in self.unprinted.drain(..) {
            let note = self.rows.get(object.key()).and_then(|row| row.state.note());
            rows.push((object.get().map(|value| self.grid.row(value, wall)).unwrap_or_default(), note));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let head = if self.widths.is_empty() { self.grid.head() } else { None };
        let widest = widths(head.iter().chain(rows.iter().map(|(row, _)| row)));
        self.widths.resize(self.widths.len().max(widest.len()), 0);
        self.widths.iter_mut().zip(widest).for_each(|(known, new)| *known = new.max(*known));
        let head = head.map(|head| (head, None));
        for (row, note) in head.iter().chain(&rows) {
            let line = padded(row, &self.widths).join("   ");
            match note {
                Some(note) => out.line(&format!("{line}   ({note})"))?,
                None => out.line(line.trim_end())?,
            }
        }
        self.rows.retain(|_, row| row.state.note().is_none());
        out.flush()?;
        Ok(())
    }

    fn redraw(&mut self, out: &mut Output) -> Result<(), Failure> {
        self.unprinted.clear();
        let now = Instant::now();
        self.rows.retain(
            |_, row| !matches!(row.state, State::Leaving { since, .. } if now.duration_since(since) > LEAVING_ROW_TIME),
        );
        let room = Area::now().height.saturating_sub(3);
        let wall = SystemTime::now();
        let mut rows: Vec<&Row> = self.rows.values().collect();
        if let Some(path) = &self.question.sort_by {
            rows.sort_by_cached_key(|row| Rank::of(row.object.value_at(path)));
        }
        let shown: Vec<(&Row, Vec<String>)> = rows
            .into_iter()
            .take(room)
            .map(|row| (row, row.object.get().map(|value| self.grid.row(value, wall)).unwrap_or_default()))
            .collect();
        let head = self.grid.head();
        let widths = widths(head.iter().chain(shown.iter().map(|(_, cells)| cells)));
        let quiet = |text: &str| StyledLine::default().toned(Tone::Quiet, text);
        let mut lines: Vec<StyledLine> = head.iter().map(|head| quiet(&padded(head, &widths).join("   "))).collect();
        lines.extend(shown.iter().map(|(row, cells)| row.line(&padded(cells, &widths), now)));
        let more = self.rows.len().saturating_sub(shown.len());
        if more > 0 {
            lines.push(quiet(&format!("… and {more} more")));
        }
        self.screen.draw(out, &lines)?;
        Ok(())
    }
}

impl Row {
    /// Formats the row: new and leaving rows are coloured as a whole, changed cells individually.
    fn line(&self, cells: &[String], now: Instant) -> StyledLine {
        let fresh = |since: Instant| now.duration_since(since) <= HIGHLIGHT_TIME;
        let line = StyledLine::default();
        match self.state {
            State::Leaving { note, .. } => line.toned(Tone::Deleted, &format!("{}   ({note})", cells.join("   "))),
            State::New(since) if fresh(since) => line.toned(Tone::Added, &cells.join("   ")),
            State::New(_) | State::Present => cells.iter().enumerate().fold(line, |line, (nth, cell)| {
                let line = if nth > 0 { line.plain("   ") } else { line };
                match self.changed.get(nth).copied().flatten() {
                    Some(since) if fresh(since) => line.toned(Tone::Changed, cell),
                    _ => line.plain(cell),
                }
            }),
        }
    }
}

fn padded(cells: &[String], widths: &[usize]) -> Vec<String> {
    cells.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect()
}
