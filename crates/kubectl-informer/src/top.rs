//! The `top` command: kinds, objects and changes on a full screen.
//!
//! `app` is the state and what keys do, without I/O; `screen` draws it. `pane` is one kind,
//! `object_view` one object. This file runs the informers and the terminal.

mod app;
mod object_view;
mod pane;
mod screen;

use std::time::{Duration, Instant};

use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{FutureExt as _, StreamExt as _, future};
use kube_informer::client::Resources;
use kube_informer::{Event, Informer};
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use self::app::{App, Flow};
use self::pane::Pane;
use crate::apiserver::replay::Replay;
use crate::args::Top;
use crate::client::connection::Connected;
use crate::client::kinds;
use crate::client::targets::{self, Target};
use crate::failure::Failure;
use crate::history::Change;
use crate::object::query::Query;
use crate::signals;
use crate::table::grid::{Grid, TableOptions};
use crate::terminal::output::{Output, OutputKind};
use crate::tui::{FullScreen, LiveTable};
use crate::watch::{Watched, until};

/// What is shown if no kind is named: those of these that the server has.
const USUAL_KINDS: [&str; 10] = [
    "pods",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "services",
    "configmaps",
    "nodes",
    "events",
];
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

pub(crate) async fn run(args: Top) -> Result<(), Failure> {
    if Output::new(args.choice.color).kind == OutputKind::Stream {
        return Err(Failure::Usage("top needs a terminal; use watch for a file or a pipe".to_owned()));
    }
    let mut end = std::pin::pin!(signals::ended());
    let replay = match &args.replay {
        Some(file) => Some(Replay::start(file).await?),
        None => None,
    };
    let connected = match &replay {
        Some(replay) => replay.connect()?,
        None => args.connection.connect().await?,
    };
    let served = kinds::served(&connected).await?;
    let targets = targets(&args, &served)?;
    let mut panes = Vec::with_capacity(targets.len());
    for target in targets {
        panes.push(pane(&args, &connected, target).await);
    }
    let informers: Vec<Informer<Value>> = panes.iter().map(|pane| pane.watched.informer.clone()).collect();
    let mut app = App::new(&args, &connected, panes)?;
    let result = async {
        let mut screen = FullScreen::enter(args.choice.color)?;
        let mut played = std::pin::pin!(async {
            match &replay {
                Some(replay) => replay.play().await,
                None => future::pending().await,
            }
        });
        let followed = follow(&args, &mut app, &mut screen);
        tokio::select! {
            biased;
            () = &mut end => Ok(()),
            result = followed => result,
            // After the end of the recording the last state stays on the screen.
            failed = async {
                match played.as_mut().await {
                    Ok(()) => future::pending().await,
                    failed => failed,
                }
            } => failed,
        }
    }
    .await;
    let flushed = app.flush();
    future::join_all(informers.iter().map(Informer::shutdown)).await;
    if let Some(replay) = replay {
        replay.shutdown().await;
    }
    result.and(flushed)
}

fn targets(args: &Top, served: &Resources) -> Result<Vec<Target>, Failure> {
    if !args.words.is_empty() {
        return targets::kinds_or_objects(served, &args.words);
    }
    let found = USUAL_KINDS.iter().filter_map(|name| kinds::find(served, [*name]).ok()).flatten();
    Ok(found.map(|kind| Target::new(kind, Vec::new())).collect())
}

async fn pane(args: &Top, connected: &Connected, target: Target) -> Pane {
    let options = TableOptions {
        namespaces: args.choice.all_namespaces && target.info.namespaced,
        wide: true,
        ..TableOptions::default()
    };
    let grid = Grid::of_kind(connected, &target.kind, options).await;
    let query = Query::new(&args.query, target.kind.kind(), args.choice.secrets());
    let builder = Informer::builder_for(connected.client.clone(), &target.kind);
    let informer = builder.settings(target.settings(connected, &args.choice)).build();
    Pane::new(Watched { kind: target.info, informer }, LiveTable::new(grid, query, None))
}

async fn follow(args: &Top, app: &mut App, screen: &mut FullScreen) -> Result<(), Failure> {
    let mut events: SelectAll<BoxStream<'static, (usize, Event<Value>)>> = SelectAll::new();
    for (number, pane) in app.panes().iter().enumerate() {
        events.push(pane.watched.informer.subscribe().map(move |event| (number, event)).boxed());
        pane.watched.informer.start();
    }
    let mut draws = tokio::time::interval(REDRAW_INTERVAL);
    draws.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let deadline = args.time.map(|time| tokio::time::Instant::now() + time);
    loop {
        tokio::select! {
            biased;
            () = until(deadline) => return Ok(()),
            input = screen.input() => {
                if app.input(input) == Flow::Ended {
                    return Ok(());
                }
                screen.draw(|frame, paint| screen::draw(app, frame, paint, Instant::now()))?;
            }
            _ = draws.tick() => {
                app.refresh(Instant::now());
                screen.draw(|frame, paint| screen::draw(app, frame, paint, Instant::now()))?;
            }
            Some((number, event)) = events.next() => {
                apply(app, number, event)?;
                // A burst of events is drawn once; keys are read in between.
                for _ in 0..1_000 {
                    let Some(Some((number, event))) = events.next().now_or_never() else { break };
                    apply(app, number, event)?;
                }
            }
        }
    }
}

fn apply(app: &mut App, number: usize, event: Event<Value>) -> Result<(), Failure> {
    let change = Change::now(&app.panes()[number].watched.kind, event);
    app.apply(number, &change, Instant::now())
}
