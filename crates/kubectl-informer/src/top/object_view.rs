//! One object: its state with its changes marked, its tree, its events and its history.

use std::collections::HashMap;
use std::time::Instant;

use crossterm::event::KeyCode;
use jiff::Timestamp;
use kube_informer::{Obj, ObjectKey};
use serde_json::Value;

use super::pane::Pane;
use crate::client::kind_info::KindInfo;
use crate::history::{Change, Ring, What};
use crate::line::{Style, counted, time_of_day};
use crate::object::tree::CachedForest;
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;
use crate::terminal::yaml;

pub(super) struct ObjectView {
    /// The number of its kind.
    pub(super) number: usize,
    pub(super) key: ObjectKey,
    pub(super) tab: Tab,
    scroll: usize,
    /// How many changes before the last one the shown state is.
    back: usize,
    /// Whether to scroll to the next line that the shown change wrote.
    wants_next_mark: bool,
    /// What was decoded for the last drawing.
    events: Cached<EventsKey>,
    history: Cached<HistoryKey>,
}

/// Lines that are made anew when what they are made of has changed.
struct Cached<K>(Option<(K, Vec<StyledLine>)>);

impl<K: PartialEq> Cached<K> {
    fn lines(&mut self, key: K, make: impl FnOnce() -> Vec<StyledLine>) -> Vec<StyledLine> {
        if self.0.as_ref().is_none_or(|(of, _)| *of != key) {
            self.0 = Some((key, make()));
        }
        self.0.as_ref().map(|(_, lines)| lines.clone()).unwrap_or_default()
    }
}

/// The object's uid, the number of events and the time of the last change of one.
type EventsKey = (Option<String>, usize, Option<Instant>);

/// The number of the object's changes in the ring, and the times of the first and the last.
type HistoryKey = (usize, Option<Timestamp>, Option<Timestamp>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    State,
    Tree,
    Events,
    History,
}

impl Tab {
    pub(super) const ALL: [(Self, &'static str); 4] =
        [(Self::State, "1 state"), (Self::Tree, "2 tree"), (Self::Events, "3 events"), (Self::History, "4 history")];
}

impl ObjectView {
    pub(super) fn new(number: usize, key: ObjectKey) -> Self {
        Self {
            number,
            key,
            tab: Tab::State,
            scroll: 0,
            back: 0,
            wants_next_mark: false,
            events: Cached(None),
            history: Cached(None),
        }
    }

    pub(super) fn key(&mut self, key: KeyCode) {
        const PAGE: usize = 10;
        match key {
            KeyCode::Char(digit @ '1'..='4') => self.open(Tab::ALL[digit as usize - '1' as usize].0),
            KeyCode::Tab => {
                let at = Tab::ALL.iter().position(|(tab, _)| *tab == self.tab).unwrap_or(0);
                self.open(Tab::ALL[(at + 1) % Tab::ALL.len()].0);
            }
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += PAGE,
            KeyCode::Home | KeyCode::Char('g') => self.scroll = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll = usize::MAX,
            KeyCode::Char('n') => self.wants_next_mark = true,
            KeyCode::Char('[') => self.back += 1,
            KeyCode::Char(']') => self.back = self.back.saturating_sub(1),
            _ => {}
        }
    }

    fn open(&mut self, tab: Tab) {
        (self.tab, self.scroll) = (tab, 0);
    }

    /// The visible lines for an area of this height.
    pub(super) fn lines(&mut self, panes: &[Pane], ring: &Ring, style: &Style, height: usize) -> Vec<StyledLine> {
        let mut lines = self.lines_of(self.tab, panes, ring, style);
        if std::mem::take(&mut self.wants_next_mark) {
            let is_marked = |line: &StyledLine| line.parts().any(|(tone, _)| tone == Some(Tone::Changed));
            let marks: Vec<usize> = (0..lines.len()).filter(|&at| is_marked(&lines[at])).collect();
            // After the last one comes the first.
            let next = marks.iter().find(|at| **at > self.scroll + height.saturating_sub(1)).or_else(|| marks.first());
            self.scroll = next.map_or(self.scroll, |at| at.saturating_sub(height / 3));
        }
        self.scroll = self.scroll.min(lines.len().saturating_sub(height));
        lines.drain(..self.scroll);
        lines.truncate(height);
        lines
    }

    /// All lines of a tab.
    pub(super) fn lines_of(&mut self, tab: Tab, panes: &[Pane], ring: &Ring, style: &Style) -> Vec<StyledLine> {
        let Some(pane) = panes.get(self.number) else { return Vec::new() };
        let kind = &pane.watched.kind;
        let current = pane.watched.informer.lister().get(&self.key);
        match tab {
            Tab::State => self.state(kind, current, ring, style),
            Tab::Tree => self.tree(panes, current),
            Tab::Events => {
                let Some(events) = panes.iter().find(|pane| pane.watched.kind.kind == "Event") else {
                    return vec![quiet("events are not among the kinds that top shows")];
                };
                let uid = current.as_ref().and_then(Obj::uid).map(ToString::to_string);
                let key = (uid.clone(), events.watched.informer.lister().len(), events.table.last_change);
                self.events.lines(key, || event_lines(events, &self.key, &kind.kind, uid.as_deref()))
            }
            Tab::History => {
                let times = || ring.of(kind, &self.key).map(|change| change.at);
                let key = (times().count(), times().next(), times().next_back());
                self.history.lines(key, || history_lines(ring.of(kind, &self.key).rev(), style))
            }
        }
    }

    /// The object as YAML; lines that the last change wrote are marked.
    fn state(&mut self, kind: &KindInfo, current: Option<Obj<Value>>, ring: &Ring, style: &Style) -> Vec<StyledLine> {
        let changes: Vec<&Change> = ring.of(kind, &self.key).collect();
        self.back = self.back.min(changes.len());
        let shown = changes.len() - self.back;
        let mut lines = Vec::new();
        let (object, before) = match (self.back, changes.get(shown.wrapping_sub(1))) {
            (0, last) => {
                if current.is_none() {
                    lines.push(StyledLine::default().toned(Tone::Deleted, "deleted; the last state:"));
                }
                let last_state = last.map(|change| change.object.fresh_handle());
                (current.or(last_state), last.and_then(|change| old(change)))
            }
            (_, Some(change)) => {
                lines.push(as_of(change.at, self.back));
                (Some(change.object.fresh_handle()), old(change))
            }
            // Before the first change that is known.
            (_, None) => {
                let first = changes.first();
                lines.extend(first.map(|change| as_of(change.at, self.back)));
                (first.and_then(|change| old(change)), None)
            }
        };
        let Some(object) = object else {
            lines.push(quiet("unknown: it has never been in the cache"));
            return lines;
        };
        let text = |object: &Obj<Value>| {
            let mut value = style.object(kind, object);
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
                // Differs after every change.
                metadata.remove("resourceVersion");
            }
            yaml::write(&value).unwrap_or_else(|why| why)
        };
        let mut known: Option<HashMap<String, usize>> = before.map(|before| {
            let mut counts = HashMap::new();
            text(&before).lines().for_each(|line| *counts.entry(line.to_owned()).or_insert(0) += 1);
            counts
        });
        lines.extend(text(&object).lines().map(|line| {
            let is_new = known.as_mut().is_some_and(|known| match known.get_mut(line) {
                Some(count @ 1..) => {
                    *count -= 1;
                    false
                }
                _ => true,
            });
            if is_new { StyledLine::default().toned(Tone::Changed, line) } else { StyledLine::from(line) }
        }));
        lines
    }

    /// The owners and children that are among the kinds on the screen.
    fn tree(&self, panes: &[Pane], current: Option<Obj<Value>>) -> Vec<StyledLine> {
        let Some(uid) = current.and_then(|object| object.uid().map(ToString::to_string)) else {
            return vec![quiet("the object is not in the cache")];
        };
        let mut forest = CachedForest::default();
        for pane in panes {
            forest.add(&pane.watched.kind.kind, pane.watched.informer.lister().list());
        }
        let mut lines = forest.lines(&uid);
        lines.push(StyledLine::default());
        lines.push(quiet("only kinds that top shows; the command tree shows all"));
        lines
    }
}

/// The events about an object, the latest first. Only these are decoded.
fn event_lines(events: &Pane, key: &ObjectKey, kind: &str, uid: Option<&str>) -> Vec<StyledLine> {
    let mut found: Vec<(String, StyledLine)> = Vec::new();
    for event in events.watched.informer.lister().list() {
        let about = |field: &str| {
            ["involvedObject", "regarding"]
                .iter()
                .find_map(|object| event.value_at(format!("{object}.{field}").as_str()).ok()?)
        };
        let is_about = match (uid, about("uid")) {
            (Some(uid), Some(about)) => uid == about,
            _ => about("name").as_deref() == Some(key.name()) && about("kind").as_deref() == Some(kind),
        };
        if is_about && let Ok(value) = event.get() {
            let text = |field: &str| value[field].as_str().unwrap_or_default();
            let time = ["lastTimestamp", "eventTime"].iter().map(|field| text(field)).find(|time| !time.is_empty());
            let time = time.unwrap_or_else(|| value["metadata"]["creationTimestamp"].as_str().unwrap_or_default());
            let tone = if text("type") == "Warning" { Tone::Updated } else { Tone::Added };
            let count = value["count"].as_u64().filter(|count| *count > 1).map(|count| format!(" ×{count}"));
            let message = if text("message").is_empty() { text("note") } else { text("message") };
            let line = StyledLine::default().toned(Tone::Quiet, &format!("{time} ")).toned(tone, text("reason"));
            found.push((time.to_owned(), line.plain(&count.unwrap_or_default()).plain("  ").plain(message)));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    if found.is_empty() {
        return vec![quiet("no events")];
    }
    found.into_iter().map(|(_, line)| line).collect()
}

/// What happened to an object, the latest first, field by field.
fn history_lines<'c>(changes: impl Iterator<Item = &'c Change>, style: &Style) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    for change in changes {
        let change = change.compact();
        lines.push(
            StyledLine::default().toned(Tone::Quiet, &format!("{} ", time_of_day(change.at))).then(style.line(&change)),
        );
        lines.extend(style.fields(&change));
    }
    if lines.is_empty() {
        lines.push(quiet("no changes since the start"));
    }
    lines
}

fn quiet(text: &str) -> StyledLine {
    StyledLine::default().toned(Tone::Quiet, text)
}

fn old(change: &Change) -> Option<Obj<Value>> {
    match &change.what {
        What::Updated { old } => Some(old.fresh_handle()),
        What::Added | What::Deleted { .. } => None,
    }
}

fn as_of(at: Timestamp, back: usize) -> StyledLine {
    StyledLine::default().toned(
        Tone::Updated,
        &format!("as of {}, {} ago; [ is earlier, ] later", time_of_day(at), counted(back, "change")),
    )
}
