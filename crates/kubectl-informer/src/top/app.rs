//! The state of the view, and what keys and changes do to it.

use std::time::Instant;

use crossterm::event::KeyCode;
use kube_informer::Origin;

use super::object_view::ObjectView;
use super::pane::Pane;
use crate::args::Top;
use crate::client::connection::Connected;
use crate::failure::Failure;
use crate::history::recording::Recorder;
use crate::history::{Change, Ring};
use crate::line::{Form, Style};
use crate::object::filter::Filter;
use crate::object::noise::Noise;
use crate::tui::Input;
use crate::tui::prompt::{Prompt, Typed};

pub(super) struct App {
    pub(super) context: String,
    pub(super) scope: String,
    panes: Vec<Pane>,
    pub(super) selected: usize,
    pub(super) focus: Focus,
    pub(super) ring: Ring,
    pub(super) style: Style,
    pub(super) object: Option<ObjectView>,
    pub(super) prompt: Option<(Asked, Prompt)>,
    /// Why the last expression was not accepted.
    pub(super) complaint: Option<String>,
    pub(super) shows_help: bool,
    recorder: Option<Recorder>,
}

/// What keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Kinds,
    Table,
}

/// What is being typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Filter,
    Condition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Ended,
}

impl App {
    pub(super) fn new(args: &Top, connected: &Connected, panes: Vec<Pane>) -> Result<Self, Failure> {
        let style = Style {
            form: Form::Line,
            secrets: args.choice.secrets(),
            noise: if args.all_changes { Noise::Shown } else { Noise::Muted },
            shows_fields: true,
            shows_time: false,
            kind_width: 0,
        };
        let scope = if args.choice.all_namespaces { "all namespaces".to_owned() } else { connected.namespace.clone() };
        Ok(Self {
            context: connected.name.clone(),
            scope,
            panes,
            selected: 0,
            focus: Focus::Table,
            ring: Ring::new(args.history as usize * 1_000_000),
            style,
            object: None,
            prompt: None,
            complaint: None,
            shows_help: false,
            recorder: args.record.as_deref().map(Recorder::create).transpose()?,
        })
    }

    pub(super) fn panes(&self) -> &[Pane] {
        &self.panes
    }

    /// The pane of the selected kind; there is at least one.
    pub(super) fn pane_mut(&mut self) -> &mut Pane {
        &mut self.panes[self.selected]
    }

    pub(super) fn apply(&mut self, number: usize, change: &Change, now: Instant) -> Result<(), Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(change)?;
        }
        let pane = &mut self.panes[number];
        pane.table.apply(change, now)?;
        if change.origin != Origin::Initial {
            pane.count_event();
            if !change.is_resync() && !self.style.mutes(change) {
                self.ring.push(change);
            }
        }
        Ok(())
    }

    pub(super) fn refresh(&mut self, now: Instant) {
        self.panes.iter_mut().for_each(|pane| pane.refresh(now));
        drop(self.flush());
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.recorder.as_mut().map_or(Ok(()), Recorder::flush)
    }

    pub(super) fn input(&mut self, input: Input) -> Flow {
        let key = match input {
            Input::Interrupt => return Flow::Ended,
            Input::Resized => return Flow::On,
            Input::Key(key) => key,
        };
        self.complaint = None;
        if self.prompt.is_some() {
            self.typed(key);
            return Flow::On;
        }
        if self.shows_help {
            self.shows_help = false;
            return Flow::On;
        }
        if key == KeyCode::Char('q') {
            return Flow::Ended;
        }
        match (&mut self.object, key) {
            (_, KeyCode::Char('?')) => self.shows_help = true,
            (Some(_), KeyCode::Esc) => self.object = None,
            (Some(view), key) => view.key(key),
            (None, key) => self.table_key(key),
        }
        Flow::On
    }

    fn table_key(&mut self, key: KeyCode) {
        match (key, self.focus) {
            (KeyCode::Tab | KeyCode::Left | KeyCode::Char('h'), Focus::Table) => self.focus = Focus::Kinds,
            (KeyCode::Tab | KeyCode::Right | KeyCode::Enter | KeyCode::Char('l'), Focus::Kinds) => {
                self.focus = Focus::Table;
            }
            (KeyCode::Up | KeyCode::Char('k'), Focus::Kinds) => self.selected = self.selected.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), Focus::Kinds) => {
                self.selected = (self.selected + 1).min(self.panes.len().saturating_sub(1));
            }
            (KeyCode::Char('/'), _) => {
                let filter = self.pane_mut().table.view().filter().to_owned();
                self.prompt = Some((Asked::Filter, Prompt::new(&filter)));
            }
            (KeyCode::Char('w'), _) => {
                let text = self.pane_mut().table.view().condition().map(|condition| condition.text().to_owned());
                self.prompt = Some((Asked::Condition, Prompt::new(&text.unwrap_or_default())));
            }
            (KeyCode::Char('s'), _) => self.pane_mut().table.sort_by_next_column(),
            (KeyCode::Char('r'), _) => self.pane_mut().table.reverse(),
            (KeyCode::Char('c'), _) => self.pane_mut().table.toggle_changed_first(),
            (KeyCode::Enter, Focus::Table) => {
                let number = self.selected;
                self.object =
                    self.pane_mut().table.selected().map(|object| ObjectView::new(number, object.key().clone()));
            }
            (key, Focus::Table) => drop(self.pane_mut().table.key(key)),
            _ => {}
        }
    }

    fn typed(&mut self, key: KeyCode) {
        let Some((asked, mut prompt)) = self.prompt.take() else { return };
        let typed = prompt.key(key);
        let table = &mut self.panes[self.selected].table;
        match (asked, typed) {
            (Asked::Filter, Typed::Cancelled) => table.set_filter(""),
            (Asked::Filter, Typed::Entered) => {}
            (Asked::Filter, Typed::On) => {
                table.set_filter(&prompt.text);
                self.prompt = Some((asked, prompt));
            }
            (Asked::Condition, Typed::Cancelled) => {}
            (Asked::Condition, Typed::On) => self.prompt = Some((asked, prompt)),
            (Asked::Condition, Typed::Entered) if prompt.text.trim().is_empty() => table.set_condition(None),
            (Asked::Condition, Typed::Entered) => match prompt.text.parse::<Filter>() {
                Ok(condition) => table.set_condition(Some(condition)),
                Err(why) => {
                    self.complaint = Some(why.split_whitespace().collect::<Vec<_>>().join(" "));
                    self.prompt = Some((asked, prompt));
                }
            },
        }
    }
}
