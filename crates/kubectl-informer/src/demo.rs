//! The `demo` command: informers on a simulated cluster served by the embedded API server.
//!
//! `board` has the table of the informers' state, `estimate` the size of decoded objects.

mod board;
mod estimate;

use std::collections::VecDeque;
use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{FutureExt as _, StreamExt as _, future};
use kube::Config;
use kube_embedded::Server;
use kube_embedded::pretend::{Pretend, Size};
use kube_informer::{Event, Informer, Origin};
use serde_json::Value;
use tempfile::TempPath;
use tokio::task::coop::unconstrained;
use tokio::time::MissedTickBehavior;

use crate::args::Demo;
use crate::args::watch::EventType;
use crate::client::connection::Connected;
use crate::client::kind_info::KindInfo;
use crate::client::kinds;
use crate::failure::{Failure, causes};
use crate::history::Change;
use crate::line::{Form, Style};
use crate::object::noise::Noise;
use crate::object::redaction::Secrets;
use crate::terminal::output::{Output, OutputKind};
use crate::terminal::paint::Tone;
use crate::terminal::progress::Waiting;
use crate::terminal::stderr::stderr;
use crate::terminal::styled_line::StyledLine;
use crate::tui::{FullScreen, Input, draw_lines};
use crate::watch::{Watched, seconds};
use crate::{duration, kubeconfig_file, signals};
use board::Row;
use crossterm::event::KeyCode;

/// The informers shown; the last but one is the busiest.
const KINDS: [&str; 7] = ["nodes", "deployments", "replicasets", "pods", "endpointslices", "events", "leases"];
/// Kinds that are counted, but not listed among the events.
const COUNT_ONLY: [&str; 1] = ["leases"];
/// Refresh interval of the informer table, and redraw interval of the screen.
const REFRESH: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);
/// The number of events kept, more than the rows of any screen.
const MAX_EVENTS: usize = 500;

pub(crate) async fn run(args: Demo) -> Result<(), Failure> {
    // Before the kubeconfig is written: a signal during startup does not leave it behind.
    let mut end = std::pin::pin!(signals::ended());
    let mut out = Output::new(args.color);
    let started = tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        started = start(&args, &out) => started,
    };
    let (server, cluster, mut show) = started?;
    let mut screen = match out.kind {
        OutputKind::Terminal => Some(FullScreen::enter(args.color)?),
        OutputKind::Stream => None,
    };
    let result = tokio::select! {
        biased;
        () = &mut end => Ok(()),
        result = show.run(&mut out, screen.as_mut(), &server, &cluster, args.time) => result,
    };
    drop(screen);
    let result = result.and_then(|()| show.end(&mut out, &server, &cluster));
    future::join_all(show.watched.iter().map(|watched| watched.informer.shutdown())).await;
    cluster.stop().await;
    server.shutdown().await;
    result
}

/// Starts the server and the simulated cluster, and writes the kubeconfig.
async fn start(args: &Demo, out: &Output) -> Result<(Server, Pretend, Show), Failure> {
    let size = Size::of_nodes(args.size);
    let server = Server::builder().seed(args.seed).garbage_collection().namespace_deletion().start().await?;
    if out.kind == OutputKind::Stream || size.pods > 3_000 {
        stderr(&format!("creating a simulated cluster of {} nodes and {} pods …", size.nodes, size.pods));
    }
    let _waiting = Waiting::on("creating the simulated cluster");
    let cluster = Pretend::builder().size(size).rate(args.rate).seed(args.seed).start(&server).await;
    let cluster =
        cluster.map_err(|status| Failure::Other(format!("creating the simulated cluster: {}", status.message())))?;
    let kubeconfig = kubeconfig_file::write_temporary(&server.kubeconfig())
        .map_err(|error| Failure::Other(format!("writing a kubeconfig to {}: {error}", env::temp_dir().display())))?;
    let watched = informers(&server).await?;
    let show = Show::new(args, size, kubeconfig, watched);
    Ok((server, cluster, show))
}

async fn informers(server: &Server) -> Result<Vec<Watched>, Failure> {
    let address = server.url().parse().map_err(|error| Failure::Other(format!("{}: {error}", server.url())))?;
    let client = kube_informer::client(Config::new(address)).map_err(|error| Failure::Other(causes(&error)))?;
    let connected =
        Connected { client, namespace: "default".to_owned(), address: server.url(), name: "demo".to_owned() };
    let served = kinds::served(&connected).await?;
    let watched = kinds::find(&served, KINDS)?.into_iter().map(|kind| {
        let informer = Informer::builder_for(connected.client.clone(), kind.resource()).build();
        Watched { kind: Arc::new(KindInfo::from(&kind)), informer }
    });
    Ok(watched.collect())
}

/// State of the running demo.
struct Show {
    watched: Vec<Watched>,
    title: String,
    hint: String,
    /// Deleted when the demo ends.
    _kubeconfig: TempPath,
    style: Style,
    began: Instant,
    /// Value of the cluster's write counter at `began`.
    writes_at_start: u64,
    /// The latest events, newest last.
    events: VecDeque<Change>,
    /// Events per informer since the last refresh.
    recent_counts: Vec<u64>,
    /// Events per informer since `began`.
    total_counts: Vec<u64>,
    refreshed: Instant,
    rows: Vec<Row>,
    tally: crate::watch::Tally,
}

impl Show {
    fn new(args: &Demo, size: Size, kubeconfig: TempPath, watched: Vec<Watched>) -> Self {
        let width = watched.iter().map(|watched| watched.kind.kind.len()).max().unwrap_or(0);
        Self {
            title: format!("{} nodes, {} pods, {} writes/s, seed {}", size.nodes, size.pods, args.rate, args.seed),
            hint: format!("in a second terminal: kubectl --kubeconfig {} get pods -A", kubeconfig.display()),
            _kubeconfig: kubeconfig,
            style: Style {
                form: Form::Line,
                secrets: Secrets::Redacted,
                noise: Noise::Muted,
                shows_fields: false,
                shows_time: false,
                kind_width: width,
            },
            began: Instant::now(),
            writes_at_start: 0,
            events: VecDeque::new(),
            recent_counts: vec![0; watched.len()],
            total_counts: vec![0; watched.len()],
            refreshed: Instant::now(),
            rows: Vec::new(),
            tally: crate::watch::Tally::new(),
            watched,
        }
    }

    async fn run(
        &mut self,
        out: &mut Output,
        mut screen: Option<&mut FullScreen>,
        server: &Server,
        cluster: &Pretend,
        time: Option<Duration>,
    ) -> Result<(), Failure> {
        let mut events: SelectAll<BoxStream<'static, (usize, Event<Value>)>> = SelectAll::new();
        for (number, watched) in self.watched.iter().enumerate() {
            events.push(watched.informer.subscribe().map(move |event| (number, event)).boxed());
            watched.informer.start();
        }
        let synced = future::try_join_all(self.watched.iter().map(|watched| watched.informer.synced())).await;
        synced.map_err(|error| Failure::of_sync(&server.url(), "the demo's kinds", &error))?;
        if out.kind == OutputKind::Stream {
            out.line(&self.title)?;
            out.line(&self.hint)?;
        }
        self.refresh(server);
        // Drops the events delivered so far; the demo starts with the synced caches.
        unconstrained(async { while let Some(Some(_)) = events.next().now_or_never() {} }).await;
        (self.began, self.writes_at_start) = (Instant::now(), cluster.writes());
        let mut over = std::pin::pin!(async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        });
        let mut draws = tokio::time::interval(REDRAW);
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
                () = &mut over => return Ok(()),
                input = input => {
                    if matches!(input, Input::Interrupt | Input::Key(KeyCode::Char('q'))) {
                        return Ok(());
                    }
                    self.draw(out, screen.as_deref_mut())?;
                }
                _ = draws.tick() => {
                    if self.refreshed.elapsed() >= REFRESH {
                        self.refresh(server);
                        self.print_rows(out)?;
                    }
                    self.draw(out, screen.as_deref_mut())?;
                }
                Some((number, event)) = events.next() => {
                    self.handle_event(out, number, event)?;
                    while let Some(Some((number, event))) = events.next().now_or_never() {
                        self.handle_event(out, number, event)?;
                    }
                }
            }
        }
    }

    fn handle_event(&mut self, out: &mut Output, number: usize, event: Event<Value>) -> Result<(), Failure> {
        if event.origin() == Origin::Initial {
            return Ok(());
        }
        self.recent_counts[number] += 1;
        self.total_counts[number] += 1;
        self.tally.count(match event {
            Event::Added { .. } => EventType::Added,
            Event::Updated { .. } => EventType::Updated,
            Event::Deleted { .. } => EventType::Deleted,
        });
        if COUNT_ONLY.contains(&self.watched[number].kind.plural.as_str()) {
            return Ok(());
        }
        let change = Change::now(&self.watched[number].kind, event);
        if self.style.mutes(&change) {
            return Ok(());
        }
        match out.kind {
            OutputKind::Stream => self.style.print(out, &change)?,
            OutputKind::Terminal => {
                self.events.push_back(change.compact());
                if self.events.len() > MAX_EVENTS {
                    self.events.pop_front();
                }
            }
        }
        Ok(())
    }

    fn refresh(&mut self, server: &Server) {
        let passed = self.refreshed.elapsed().as_secs_f64();
        let rates = self.recent_counts.iter_mut().map(|count| std::mem::take(count) as f64 / passed.max(0.001));
        let rows = self.watched.iter().zip(rates).map(|(watched, rate)| Row::of(watched, rate, server));
        self.rows = rows.collect();
        self.refreshed = Instant::now();
    }

    /// On a stream, prints the state of the informers as one line among the events.
    fn print_rows(&self, out: &mut Output) -> Result<(), Failure> {
        if out.kind == OutputKind::Stream {
            let figures = self.rows.iter().map(|row| format!("{} {} {:.0}/s", row.name, row.objects, row.rate));
            out.line(&format!(
                "# {}  {}",
                duration::clock(self.began.elapsed()),
                figures.collect::<Vec<_>>().join(", ")
            ))?;
            out.flush()?;
        }
        Ok(())
    }

    fn draw(&self, out: &mut Output, screen: Option<&mut FullScreen>) -> Result<(), Failure> {
        let Some(screen) = screen else { return Ok(out.flush()?) };
        screen.draw(|frame, paint| {
            let area = frame.area();
            let mut lines = self.header();
            lines.push(StyledLine::default());
            let room = usize::from(area.height).saturating_sub(lines.len());
            let latest = self.events.iter().skip(self.events.len().saturating_sub(room));
            lines.extend(latest.map(|change| self.style.line(&change.compact())));
            draw_lines(frame, area, paint, &lines);
        })?;
        Ok(())
    }

    fn header(&self) -> Vec<StyledLine> {
        let mut lines = Vec::with_capacity(self.rows.len() + 8);
        let title = StyledLine::default().toned(Tone::Strong, "kubectl-informer demo");
        lines.push(title.plain(&format!("  {}  {}", self.title, duration::clock(self.began.elapsed()))));
        lines.push(StyledLine::default().toned(Tone::Quiet, &self.hint));
        lines.push(StyledLine::default());
        lines.extend(board::lines(&self.rows));
        lines
    }

    /// Prints the final table, with rates averaged over the whole run, and the summary.
    fn end(&mut self, out: &mut Output, server: &Server, cluster: &Pretend) -> Result<(), Failure> {
        self.refresh(server);
        let passed = self.began.elapsed().as_secs_f64().max(0.001);
        for (row, total) in self.rows.iter_mut().zip(&self.total_counts) {
            row.rate = *total as f64 / passed;
        }
        for line in board::lines(&self.rows) {
            out.styled(&line)?;
        }
        let crate::watch::Tally { added, updated, deleted, .. } = self.tally;
        out.line(&format!(
            "{added} added, {updated} updated, {deleted} deleted in {}, from {} writes; {} requests to the server in total",
            seconds(self.began.elapsed()),
            cluster.writes() - self.writes_at_start,
            server.request_count()
        ))?;
        Ok(out.flush()?)
    }
}
