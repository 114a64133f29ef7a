//! The `watch` command: prints added, updated and deleted objects.
//!
//! `printer` decides what is printed, live and of a recording (`replay`); `past` shows what was
//! written before the start. `health_report` reports connection failures and `tally` counts events.

pub(crate) mod health_report;
mod past;
mod printer;
mod replay;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, FuturesUnordered, SelectAll};
use futures_util::{FutureExt as _, StreamExt as _, future};
use kube_informer::{Event, Informer, InformerBuilder, Subscription};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::Watch;
use crate::args::watch::Until;
use crate::client::kind_info::KindInfo;
use crate::client::kinds;
use crate::client::targets;
use crate::failure::Failure;
use crate::history::Change;
use crate::line::{Form, counted};
use crate::signals;
use crate::terminal::progress;
use crate::terminal::stderr::stderr;
use printer::{Flow, Printer};
pub(crate) use tally::Tally;

/// A kind and its informer.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) kind: Arc<KindInfo>,
    pub(crate) informer: Informer<Value>,
}

/// An event and the index of its kind.
type NumberedEvent = (usize, Event<Value>);

pub(crate) async fn run(args: Watch) -> Result<(), Failure> {
    if let Some(file) = &args.replay {
        return replay::run(&args, file);
    }
    let mut session = begin(&args, |builder| builder).await?;
    let result = session.follow().await;
    session.end().await;
    result
}

type Builder = InformerBuilder<Value>;

async fn begin(args: &Watch, also: impl Fn(Builder) -> Builder) -> Result<Session, Failure> {
    let connected = args.connection.connect().await?;
    let served = kinds::served(&connected).await?;
    let targets = targets::kinds_or_objects(&served, &args.words)?;
    // Differences name the manager of each field.
    let needs_managers =
        args.diff && matches!(args.output, Form::Line | Form::Wide) || args.since.is_some() || args.record.is_some();
    let watched: Vec<Watched> = targets
        .into_iter()
        .map(|target| {
            let mut settings = target.settings(&connected, &args.choice);
            if !needs_managers && !args.choice.show_managed_fields {
                settings = settings.drop_managed_fields();
            }
            if let Some(period) = args.resync {
                settings = settings.resync(period);
            }
            let builder = Informer::builder_for(connected.client.clone(), &target.kind);
            Watched { informer: also(builder.settings(settings)).build(), kind: target.info }
        })
        .collect();
    let printer = Printer::new(args, watched.iter().map(|watched| &watched.kind))?;
    Ok(Session {
        address: connected.address,
        watched,
        until: args.until.clone(),
        printer,
        failures: Vec::new(),
        reporters: JoinSet::new(),
    })
}

struct Session {
    /// The server's.
    address: String,
    watched: Vec<Watched>,
    until: Vec<Until>,
    printer: Printer,
    /// Kinds that the server refuses.
    failures: Vec<Failure>,
    /// Tasks that report progress and failures.
    reporters: JoinSet<()>,
}

impl Session {
    async fn follow(&mut self) -> Result<(), Failure> {
        // No event will be printed, so no handler is registered.
        let silent = self.printer.prints_nothing_before_sync() && self.until.contains(&Until::Synced);
        let mut events: SelectAll<BoxStream<'static, NumberedEvent>> = SelectAll::new();
        let mut syncs = FuturesUnordered::new();
        for (number, watched) in self.watched.iter().enumerate() {
            let synced = if silent {
                watched.informer.synced().boxed()
            } else {
                let subscription: Subscription<Value> = watched.informer.subscribe();
                let synced = subscription.synced().boxed();
                events.push(subscription.map(move |event| (number, event)).boxed());
                synced
            };
            syncs.push(synced.map(move |result| (number, result)));
            watched.informer.start();
            let name = watched.kind.full_name();
            self.reporters.spawn(progress::run(name.clone(), watched.informer.clone()));
            self.reporters.spawn(health_report::run(name, watched.informer.clone()));
        }
        let deadline =
            self.until.iter().find_map(|until| if let Until::For(time) = until { Some(*time) } else { None });
        let deadline = deadline.map(|time| Instant::now() + time);
        let mut end = std::pin::pin!(signals::ended());
        loop {
            let received = tokio::select! {
                biased;
                () = &mut end => return Ok(()),
                () = until(deadline) => return Ok(()),
                received = events.next(), if !events.is_empty() => received,
                Some((number, result)) = syncs.next() => {
                    if let Err(error) = result {
                        self.refused(Failure::of_sync(&self.address, &self.watched[number].kind.full_name(), &error))?;
                    }
                    if syncs.is_empty() {
                        self.printer.synced()?;
                        if self.until.contains(&Until::Synced) {
                            return self.failures.drain(..).next().map_or(Ok(()), Err);
                        }
                    }
                    continue;
                }
            };
            let mut next = received;
            while let Some((number, event)) = next {
                let change = Change::now(&self.watched[number].kind, event);
                if self.printer.print(number, change)? == Flow::Ended {
                    return Ok(());
                }
                next = events.next().now_or_never().flatten();
            }
            self.printer.flush()?;
        }
    }

    /// A kind that the server refuses ends the command only if there is no other.
    fn refused(&mut self, failure: Failure) -> Result<(), Failure> {
        if self.failures.len() + 1 == self.watched.len() {
            return Err(failure);
        }
        let first = failure.to_string().lines().next().unwrap_or_default().to_owned();
        stderr(&format!("! {first}; still watching the other kinds"));
        self.failures.push(failure);
        Ok(())
    }

    async fn end(&mut self) {
        self.reporters.shutdown().await;
        let held: usize = self.watched.iter().map(|watched| watched.informer.lister().len()).sum();
        self.printer.end(&format!("{} in the cache", counted(held, "object")));
        future::join_all(self.watched.iter().map(|watched| watched.informer.shutdown())).await;
    }
}

/// Sleeps until the deadline; never completes without one.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Formats a duration in seconds.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;
    use kube_embedded::Server;
    use kube_informer::pipeline::{Figures, InformerName, Metrics};
    use serde_json::json;

    /// The informer's last figures and its maximum number of handlers.
    #[derive(Debug, Clone, Default)]
    struct Record(Arc<Mutex<(Figures, usize)>>);

    impl Metrics for Record {
        fn report(&self, _: &InformerName, figures: &Figures) {
            let mut record = self.0.lock().unwrap();
            *record = (figures.clone(), record.1.max(figures.handlers.len()));
        }

        fn ended(&self, _: &InformerName) {}
    }

    /// Runs the command to its end; returns the numbers of objects, decodes and handlers.
    async fn run_watch(server: &Server, args: &[&str]) -> (usize, u64, usize) {
        let url = server.url();
        let words = [&["kubectl-informer", "watch", "configmaps", "-A", "--server", &url], args].concat();
        let Command::Watch(args) = Cli::parse_from(words).into_command() else { panic!("a watch") };
        let record = Record::default();
        let mut session = begin(&args, |builder| builder.metrics(record.clone())).await.unwrap();
        session.follow().await.unwrap();
        session.end().await;
        let (figures, handlers) = record.0.lock().unwrap().clone();
        (figures.objects, figures.decodes, handlers)
    }

    #[tokio::test]
    async fn waiting_for_a_full_cache_decodes_and_prints_no_object() {
        let server = Server::builder().start().await.unwrap();
        let map = |number: u32| {
            let name = format!("map-{number}");
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "v"}})
        };
        server.load((0..20_000).map(map)).unwrap();
        assert_eq!(run_watch(&server, &["--no-initial", "--until", "synced"]).await, (20_000, 0, 0));
        server.shutdown().await;
    }
}
