//! The table of `get --watch`: on a terminal a live view, on a stream one line per change.

use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use kube_informer::{Event, Informer};
use ratatui::layout::{Constraint, Layout};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::task::coop::unconstrained;
use tokio::time::MissedTickBehavior;

use super::printer::table_options;
use crate::args::Get;
use crate::args::get::GetForm;
use crate::client::connection::Connected;
use crate::client::targets::Target;
use crate::failure::Failure;
use crate::history::Change;
use crate::object::query::Query;
use crate::signals;
use crate::table::grid::Grid;
use crate::table::lines::{padded, widths};
use crate::terminal::output::{Output, OutputKind};
use crate::terminal::paint::{Paint, Tone};
use crate::terminal::progress;
use crate::terminal::styled_line::StyledLine;
use crate::tui::live_table::PrintedRow;
use crate::tui::prompt::{Prompt, Typed};
use crate::tui::{FullScreen, Input, LiveTable, draw_lines};
use crate::watch::{health_report, until};
use crossterm::event::KeyCode;

const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// The most events that are applied before the next look at keys and signals.
const MAX_BATCH: usize = 1_000;

pub(super) async fn run(
    args: &Get,
    connected: &Connected,
    mut targets: Vec<Target>,
    mut out: Output,
) -> Result<(), Failure> {
    if !matches!(args.output, GetForm::Table | GetForm::Wide) {
        return Err(Failure::Usage("--watch shows a table; use the watch command for other formats".to_owned()));
    }
    let (Some(target), true) = (targets.pop(), targets.is_empty()) else {
        let words = args.words.join(" ");
        return Err(Failure::Usage(format!("{words}: --watch shows one kind; use watch or top for several")));
    };
    let settings = target.settings(connected, &args.choice).drop_managed_fields();
    let informer = Informer::builder_for(connected.client.clone(), &target.kind).settings(settings).build();
    let grid = Grid::of_kind(connected, &target.kind, table_options(args, &target.info, args.show_kind)).await;
    let query = Query::new(&args.query, target.kind.kind(), args.choice.secrets());
    let table = LiveTable::new(grid, query, args.sort_by.as_ref());
    let mut live = Live { target: &target, connected, informer: &informer, table, prompt: None, widths: Vec::new() };
    let result = match out.kind {
        OutputKind::Terminal => live.on_terminal(args, &mut out).await,
        OutputKind::Stream => live.on_stream(args, &mut out).await,
    };
    informer.shutdown().await;
    result
}

struct Live<'a> {
    target: &'a Target,
    connected: &'a Connected,
    informer: &'a Informer<Value>,
    table: LiveTable,
    /// The filter that is being typed.
    prompt: Option<Prompt>,
    /// On a stream: the column widths so far, which only grow.
    widths: Vec<usize>,
}

impl Live<'_> {
    async fn on_terminal(&mut self, args: &Get, out: &mut Output) -> Result<(), Failure> {
        let mut screen = FullScreen::enter(args.choice.color)?;
        let result = self.follow(args, Some(&mut screen), out).await;
        drop(screen);
        // What was seen last stays on the terminal.
        let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
        let rows = usize::from(height).saturating_sub(2);
        for line in self.table.lines(usize::from(width), rows, false, Instant::now()) {
            out.styled(&line.truncated(usize::from(width)))?;
        }
        out.flush()?;
        result
    }

    async fn on_stream(&mut self, args: &Get, out: &mut Output) -> Result<(), Failure> {
        let name = self.target.kind.full_name();
        let mut reporters = JoinSet::new();
        reporters.spawn(progress::run(name.clone(), self.informer.clone()));
        reporters.spawn(health_report::run(name, self.informer.clone()));
        let result = self.follow(args, None, out).await;
        reporters.shutdown().await;
        result
    }

    async fn follow(
        &mut self,
        args: &Get,
        mut screen: Option<&mut FullScreen>,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let name = self.target.kind.full_name();
        let mut events = self.informer.subscribe();
        let mut synced = std::pin::pin!(events.synced().fuse());
        self.informer.start();
        let mut end = std::pin::pin!(signals::ended());
        let mut deadline = None;
        let mut draws = tokio::time::interval(REDRAW_INTERVAL);
        draws.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let input = async {
                match &mut screen {
                    Some(screen) => screen.input().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut end => return Ok(()),
                () = until(deadline) => return Ok(()),
                input = input => match self.input(input) {
                    Flow::Ended => return Ok(()),
                    Flow::On => self.draw(screen.as_deref_mut())?,
                },
                result = &mut synced => match result {
                    Ok(()) => deadline = args.time.map(|time| tokio::time::Instant::now() + time),
                    Err(error) => return Err(Failure::of_sync(&self.connected.address, &name, &error)),
                },
                _ = draws.tick() => self.draw(screen.as_deref_mut())?,
                Some(event) = events.next() => {
                    let mut rows = Vec::new();
                    rows.extend(self.apply(event)?);
                    // What is already there is drawn at once; keys and signals are read in between.
                    let drained: Result<(), Failure> = unconstrained(async {
                        for _ in 0..MAX_BATCH {
                            let Some(Some(event)) = events.next().now_or_never() else { break };
                            rows.extend(self.apply(event)?);
                        }
                        Ok(())
                    })
                    .await;
                    drained?;
                    if screen.is_none() {
                        self.print(args, &rows, out)?;
                    }
                }
            }
        }
    }

    fn apply(&mut self, event: Event<Value>) -> Result<Option<PrintedRow>, Failure> {
        self.table.apply(&Change::now(&self.target.info, event), Instant::now())
    }

    fn input(&mut self, input: Input) -> Flow {
        let key = match input {
            Input::Interrupt => return Flow::Ended,
            Input::Resized => return Flow::On,
            Input::Key(key) => key,
        };
        if let Some(prompt) = &mut self.prompt {
            match prompt.key(key) {
                Typed::On => self.table.set_filter(&prompt.text),
                Typed::Entered => self.prompt = None,
                Typed::Cancelled => {
                    self.prompt = None;
                    self.table.set_filter("");
                }
            }
            return Flow::On;
        }
        match key {
            KeyCode::Char('q') => return Flow::Ended,
            KeyCode::Char('/') => self.prompt = Some(Prompt::new(self.table.view().filter())),
            KeyCode::Char('s') => self.table.sort_by_next_column(),
            KeyCode::Char('r') => self.table.reverse(),
            KeyCode::Char('c') => self.table.toggle_changed_first(),
            key => drop(self.table.key(key)),
        }
        Flow::On
    }

    fn draw(&mut self, screen: Option<&mut FullScreen>) -> Result<(), Failure> {
        let now = Instant::now();
        let Some(screen) = screen else {
            self.table.expire(now);
            return Ok(());
        };
        screen.draw(|frame, paint: Paint| {
            let [top, bottom] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
            self.table.draw(frame, top, paint, true, now);
            draw_lines(frame, bottom, paint, &[self.status(now)]);
        })?;
        Ok(())
    }

    /// Context, kind, rows, connection, last change.
    fn status(&self, now: Instant) -> StyledLine {
        let quiet = |line: StyledLine, text: &str| line.toned(Tone::Quiet, text);
        if let Some(prompt) = &self.prompt {
            return quiet(
                StyledLine::default().plain(&format!("/{}", prompt.text)),
                "▏ enter keeps the filter, esc clears it",
            );
        }
        let line = StyledLine::default().toned(Tone::Strong, &self.target.kind.full_name());
        let line = quiet(line, &format!(" at {}, ", self.connected.name));
        line.then(self.table.status(&self.informer.health(), now))
    }

    /// Prints a header, then one row per change, as kubectl does.
    fn print(&mut self, args: &Get, rows: &[PrintedRow], out: &mut Output) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        let head = (self.widths.is_empty() && !args.no_headers).then(|| self.table.head());
        let widest = widths(head.iter().chain(rows.iter().map(|row| &row.cells)));
        self.widths.resize(self.widths.len().max(widest.len()), 0);
        self.widths.iter_mut().zip(widest).for_each(|(known, new)| *known = new.max(*known));
        if let Some(head) = head {
            out.line(&padded(&head, &self.widths))?;
        }
        for PrintedRow { cells, note } in rows {
            let line = padded(cells, &self.widths);
            match note {
                Some(note) => out.line(&format!("{line}   ({note})"))?,
                None => out.line(&line)?,
            }
        }
        Ok(out.flush()?)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Ended,
}
