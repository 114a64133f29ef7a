//! The `watch` command: prints added, updated and deleted objects.
//!
//! `health_report` reports connection failures and `tally` counts events; `get` and `demo` use them
//! too.

pub(crate) mod health_report;
mod tally;

use std::time::Duration;

use futures_util::stream::{BoxStream, SelectAll};
use futures_util::{FutureExt as _, StreamExt as _, future};
use kube_informer::client::{ResourceScope, Served};
use kube_informer::{Event, Informer, InformerBuilder, Origin, Subscription};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::args::{EventType, Selection, Until, Watch};
use crate::client::connection::Connected;
use crate::failure::Failure;
use crate::client::kinds;
use crate::line::{Detail, Form, Style};
use crate::terminal::output::Output;
use crate::object::redaction::Secrets;
use crate::terminal::stderr::stderr;
use crate::signals;
use crate::terminal::progress;
pub(crate) use tally::Tally;

/// A kind and its informer.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) kind: Served,
    pub(crate) informer: Informer<Value>,
}

/// An event and the index of its kind.
type NumberedEvent = (usize, Event<Value>);

pub(crate) async fn run(args: Watch) -> Result<(), Failure> {
    let mut session = begin(&args, |builder| builder).await?;
    let result = session.follow().await;
    session.end().await;
    result
}

type Builder = InformerBuilder<Value>;

async fn begin(args: &Watch, also: impl Fn(Builder) -> Builder) -> Result<Session, Failure> {
    let connected = args.connection.connect().await?;
    let kinds = kinds::find(&connected, &args.kinds).await?;
    // Differences name the manager of each field.
    let needs_managers = args.diff && matches!(args.output, Form::Line | Form::Wide);
    let watched: Vec<Watched> = kinds
        .into_iter()
        .map(|kind| {
            let mut settings = select(&connected, &args.choice, &kind);
            if !needs_managers && !args.choice.show_managed_fields {
                settings = settings.drop_managed_fields();
            }
            if let Some(period) = args.resync {
                settings = settings.resync(period);
            }
            let builder = Informer::builder_for(connected.client.clone(), kind.resource());
            Watched { informer: also(builder.settings(settings)).build(), kind }
        })
        .collect();
    Ok(Session::new(args, watched))
}

/// Informer settings for the objects selected on the command line.
pub(crate) fn select(
    connected: &Connected,
    choice: &Selection,
    kind: &Served,
) -> kube_informer::informer::InformerSettings<Value> {
    let mut settings = kube_informer::informer::InformerSettings::default();
    if kind.scope() == ResourceScope::Namespaced && !choice.all_namespaces {
        settings = settings.namespace(choice.namespace.clone().unwrap_or_else(|| connected.namespace.clone()));
    }
    if let Some(labels) = &choice.selector {
        settings = settings.labels(labels.clone());
    }
    if let Some(fields) = &choice.field_selector {
        settings = settings.fields(fields.clone());
    }
    settings
}

struct Session {
    watched: Vec<Watched>,
    style: Style,
    out: Output,
    only: Vec<EventType>,
    initial: Initial,
    until: Vec<Until>,
    tally: Tally,
    /// Tasks that report progress and failures.
    reporters: JoinSet<()>,
}

/// Whether events of the initial list are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    Shown,
    Skipped,
}

impl Session {
    fn new(args: &Watch, watched: Vec<Watched>) -> Self {
        let style = Style {
            form: args.output,
            secrets: if args.choice.show_secrets { Secrets::Shown } else { Secrets::Redacted },
            detail: if args.diff { Detail::Fields } else { Detail::Summary },
            kind_width: watched.iter().map(|watched| watched.kind.kind().len()).max().unwrap_or(0),
        };
        Self {
            watched,
            style,
            out: Output::new(args.choice.color),
            only: args.only.clone(),
            initial: if args.no_initial { Initial::Skipped } else { Initial::Shown },
            until: args.until.clone(),
            tally: Tally::new(),
            reporters: JoinSet::new(),
        }
    }

    async fn follow(&mut self) -> Result<(), Failure> {
        // No event will be printed, so no handler is registered.
        let silent = self.initial == Initial::Skipped && self.until.contains(&Until::Synced);
        let mut events: SelectAll<BoxStream<'static, NumberedEvent>> = SelectAll::new();
        let mut syncs = Vec::new();
        for (number, watched) in self.watched.iter().enumerate() {
            if silent {
                syncs.push((number, watched.informer.synced().boxed()));
            } else {
                let subscription: Subscription<Value> = watched.informer.subscribe();
                syncs.push((number, subscription.synced().boxed()));
                events.push(subscription.map(move |event| (number, event)).boxed());
            }
            watched.informer.start();
            let name = watched.kind.full_name();
            self.reporters.spawn(progress::run(name.clone(), watched.informer.clone()));
            self.reporters.spawn(health_report::run(name, watched.informer.clone()));
        }
        let mut synced = future::try_join_all(
            syncs.into_iter().map(|(number, synced)| synced.map(move |result| result.map_err(|error| (number, error)))),
        )
        .fuse();
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
                result = &mut synced => {
                    result.map_err(|(number, error)| Failure::of_sync(&self.watched[number].kind.full_name(), &error))?;
                    if self.until.contains(&Until::Synced) {
                        return Ok(());
                    }
                    continue;
                }
            };
            let mut next = received;
            while let Some((number, event)) = next {
                if self.print_event(number, &event)? == Flow::Ended {
                    return Ok(());
                }
                next = events.next().now_or_never().flatten();
            }
            self.out.flush()?;
        }
    }

    fn print_event(&mut self, number: usize, event: &Event<Value>) -> Result<Flow, Failure> {
        let what = match event {
            Event::Added { .. } => EventType::Added,
            Event::Updated { .. } => EventType::Updated,
            Event::Deleted { .. } => EventType::Deleted,
        };
        let skipped = self.initial == Initial::Skipped && event.origin() == Origin::Initial;
        if skipped || !self.only.is_empty() && !self.only.contains(&what) {
            return Ok(Flow::On);
        }
        self.tally.count(what);
        self.style.print(&mut self.out, &self.watched[number].kind, event)?;
        let enough = self.until.iter().any(|until| matches!(until, Until::Count(most) if self.tally.total() >= *most));
        Ok(if enough { Flow::Ended } else { Flow::On })
    }

    async fn end(&mut self) {
        self.reporters.shutdown().await;
        // The reader may have closed the pipe.
        drop(self.out.flush());
        let held: usize = self.watched.iter().map(|watched| watched.informer.lister().len()).sum();
        stderr(&self.tally.summary(held));
        future::join_all(self.watched.iter().map(|watched| watched.informer.shutdown())).await;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Ended,
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
        let Command::Watch(args) = Cli::parse_from(words).command else { panic!("a watch") };
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
