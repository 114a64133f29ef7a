//! `tree --watch`: the tree as it changes.

use std::time::Duration;

use crossterm::event::KeyCode;
use futures_util::{FutureExt as _, StreamExt as _, future, stream};
use kube_informer::Informer;
use kube_informer::informer::InformerSettings;
use ratatui::layout::{Constraint, Layout};
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use super::{Found, Subject};
use crate::args::Tree;
use crate::client::connection::Connected;
use crate::failure::Failure;
use crate::object::tree::CachedForest;
use crate::signals;
use crate::terminal::output::{Output, OutputKind};
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;
use crate::tui::{FullScreen, Input, connection_line, draw_lines};
use crate::watch::until;

const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// The most changes that are taken before the next look at keys and signals.
const MAX_BATCH: usize = 1_000;

/// The running view.
struct Live<'a> {
    connected: &'a Connected,
    subject: &'a Subject,
    informers: Vec<(String, Informer<Value>)>,
    lines: Vec<StyledLine>,
    scroll: usize,
}

/// Shows the tree until the end. Of the kinds that begin to own or to be owned later, only those of
/// [`OWNED_KINDS`](super::OWNED_KINDS) are followed.
pub(super) async fn run(
    args: &Tree,
    connected: &Connected,
    subject: &Subject,
    found: Found,
    out: &mut Output,
) -> Result<(), Failure> {
    let informer = |kind: &kube_informer::client::Served| {
        let mut settings = InformerSettings::default().drop_managed_fields();
        if let (Some(namespace), true) =
            (&subject.namespace, kind.scope() == kube_informer::client::ResourceScope::Namespaced)
        {
            settings = settings.namespace(namespace.clone());
        }
        let informer = Informer::builder_for(connected.client.clone(), kind).settings(settings).build();
        (kind.kind().to_owned(), informer)
    };
    let informers: Vec<(String, Informer<Value>)> = found.kinds.iter().map(informer).collect();
    drop(found);
    let mut live = Live { connected, subject, informers, lines: Vec::new(), scroll: 0 };
    let result = match out.kind {
        OutputKind::Stream => live.follow(args, None, out).await,
        OutputKind::Terminal => {
            let mut screen = FullScreen::enter(args.color)?;
            let result = live.follow(args, Some(&mut screen), out).await;
            drop(screen);
            live.lines.iter().try_for_each(|line| out.styled(line))?;
            out.flush()?;
            result
        }
    };
    future::join_all(live.informers.iter().map(|(_, informer)| informer.shutdown())).await;
    result
}

impl Live<'_> {
    async fn follow(
        &mut self,
        args: &Tree,
        mut screen: Option<&mut FullScreen>,
        out: &mut Output,
    ) -> Result<(), Failure> {
        let mut changes = stream::select_all(self.informers.iter().map(|(_, informer)| informer.subscribe()));
        self.informers.iter().for_each(|(_, informer)| informer.start());
        let synced = future::join_all(self.informers.iter().map(|(_, informer)| informer.synced()));
        let mut synced = std::pin::pin!(synced.fuse());
        let mut end = std::pin::pin!(signals::ended());
        let mut draws = tokio::time::interval(REDRAW_INTERVAL);
        draws.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_complete, mut is_stale, mut deadline) = (false, false, None);
        loop {
            let input = async {
                match &mut screen {
                    Some(screen) => screen.input().await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut end => return Ok(()),
                () = until(deadline) => return Ok(()),
                input = input => match input {
                    Input::Interrupt | Input::Key(KeyCode::Char('q') | KeyCode::Esc) => return Ok(()),
                    Input::Key(key) => self.key(key),
                    Input::Resized => {}
                },
                // A kind that is refused is left out.
                _ = &mut synced => {
                    (is_complete, is_stale) = (true, true);
                    deadline = args.time.map(|time| tokio::time::Instant::now() + time);
                }
                Some(_) = changes.next() => {
                    // Many changes are read as one; keys and signals are read in between.
                    for _ in 0..MAX_BATCH {
                        let Some(Some(_)) = changes.next().now_or_never() else { break };
                    }
                    is_stale = true;
                    continue;
                }
                _ = draws.tick() => {}
            }
            if is_complete && std::mem::take(&mut is_stale) {
                self.read();
                if screen.is_none() {
                    self.lines.iter().try_for_each(|line| out.styled(line))?;
                    out.line("")?;
                    out.flush()?;
                }
            }
            if let Some(screen) = &mut screen {
                self.draw(screen)?;
            }
        }
    }

    fn read(&mut self) {
        let mut forest = CachedForest::default();
        for (kind, informer) in &self.informers {
            forest.add(kind, informer.lister().list());
        }
        self.lines = forest.lines(&self.subject.uid);
        if !forest.contains(&self.subject.uid) {
            let name = format!("{}/{} is gone", self.subject.kind.kind().to_lowercase(), self.subject.name);
            self.lines.insert(0, StyledLine::default().toned(Tone::Deleted, &name));
        }
    }

    fn key(&mut self, key: KeyCode) {
        match key {
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            _ => {}
        }
    }

    fn draw(&mut self, screen: &mut FullScreen) -> Result<(), Failure> {
        screen.draw(|frame, paint| {
            let [top, bottom] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
            self.scroll = self.scroll.min(self.lines.len().saturating_sub(usize::from(top.height)));
            draw_lines(frame, top, paint, &self.lines[self.scroll..]);
            let kinds = self.informers.len();
            let line = StyledLine::default().toned(Tone::Quiet, &format!("{}, {kinds} kinds, ", self.connected.name));
            // The worst of the connections is that of all.
            let health = self
                .informers
                .iter()
                .map(|(_, informer)| informer.health())
                .min_by_key(kube_informer::Health::is_synced);
            let line =
                health.map_or(line.clone(), |health| line.then(connection_line(&health, tokio::time::Instant::now())));
            draw_lines(frame, bottom, paint, &[line]);
        })?;
        Ok(())
    }
}
