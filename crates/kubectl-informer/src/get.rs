//! The `get` command: lists objects in pages and prints each as soon as it can.
//!
//! No decoded object is kept: memory does not grow with the number of objects, except by the text
//! of a table. `printer` chooses the format: `rows` prints tables, `list` JSON and YAML, `template`
//! kubectl's JSON paths. `live` is the table of `--watch`.

mod list;
mod live;
mod printer;
mod rows;
mod template;

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::TryStreamExt as _;
use kube_informer::codec::FieldCutter;
use kube_informer::object::FieldPath;
use kube_informer::one_shot::Pager;
use kube_informer::{DecodeError, Obj};
use serde_json::{Value, json};

use crate::args::Get;
use crate::client::connection::Connected;
use crate::client::kinds;
use crate::client::targets::{self, Target};
use crate::failure::Failure;
use crate::object::left_out::LeftOut;
use crate::object::query::Query;
use crate::terminal::output::Output;
use crate::terminal::progress;
use crate::terminal::stderr::{stderr, stderr_lines};
use printer::Printer;

/// How many objects are received ahead of the one that is printed.
const READ_AHEAD: usize = 1_000;

pub(crate) async fn run(args: Get) -> Result<(), Failure> {
    let connected = args.connection.connect().await?;
    let served = kinds::served(&connected).await?;
    let targets = targets::kinds_then_names(&served, &args.words)?;
    let mut out = Output::new(args.choice.color);
    if args.watch {
        return live::run(&args, &connected, targets, out).await;
    }
    let decoder = Decoder::new(&args);
    let mut printer = Printer::new(&args, &decoder, &targets)?;
    let mut listing = Listing { args: &args, connected: &connected, decoder: &decoder, count: 0, missing: Vec::new() };
    let mut failures = Vec::new();
    for target in &targets {
        printer.begin(&connected, target).await;
        if let Err(failure) = listing.print(target, &mut printer, &mut out).await {
            match failure {
                Failure::Usage(_) | Failure::OutputClosed => return Err(failure),
                // The other kinds are printed all the same.
                failure => failures.push(failure),
            }
        }
        printer.end_of_kind(&mut out, target)?;
    }
    if !failures.is_empty() && listing.count == 0 {
        return Err(combined(failures));
    }
    if listing.missing.is_empty() || listing.count > 0 || args.ignore_not_found {
        printer.end(&mut out)?;
        out.flush()?;
    }
    if listing.count == 0 && listing.missing.is_empty() && printer.is_table() {
        stderr(&format!("nothing found{}", listing.scope()));
    }
    if !listing.missing.is_empty() && !args.ignore_not_found {
        failures.push(Failure::NotFound(listing.missing.join("\n")));
    }
    if failures.is_empty() { Ok(()) } else { Err(combined(failures)) }
}

/// Several failures as one, with the exit code of the first.
fn combined(mut failures: Vec<Failure>) -> Failure {
    let first = failures.remove(0);
    if failures.is_empty() {
        return first;
    }
    for failure in failures {
        stderr_lines(&format!("error: {failure}"));
    }
    first
}

/// The requests of one run and what they found.
struct Listing<'a> {
    args: &'a Get,
    connected: &'a Connected,
    decoder: &'a Decoder,
    /// The number of objects printed.
    count: usize,
    /// Names that do not exist, one message for each kind.
    missing: Vec<String>,
}

impl Listing<'_> {
    /// Prints the selected objects of a kind, in the order of their names if those are given.
    async fn print(&mut self, target: &Target, printer: &mut Printer<'_>, out: &mut Output) -> Result<(), Failure> {
        let query = Query::new(&self.args.query, target.kind.kind(), self.args.choice.secrets());
        let mut report = Report::new(&query, self.args.sort_by.as_ref());
        if target.names.is_empty() {
            self.print_list(target, None, &query, &mut report, printer, out).await?;
        }
        let mut missing = Vec::new();
        for name in &target.names {
            if self.print_list(target, Some(name), &query, &mut report, printer, out).await? == 0 {
                missing.push(format!("{name:?}"));
            }
        }
        report.print(&target.kind.kind().to_lowercase());
        if !missing.is_empty() {
            self.missing.push(format!("{} {} not found", target.kind.full_name(), missing.join(", ")));
        }
        Ok(())
    }

    /// Requests and prints one list. Returns the number of objects that the server sent.
    async fn print_list(
        &mut self,
        target: &Target,
        name: Option<&str>,
        query: &Query,
        report: &mut Report<'_>,
        printer: &mut Printer<'_>,
        out: &mut Output,
    ) -> Result<usize, Failure> {
        let kind = target.kind.full_name();
        let mut source = target.source(self.connected, &self.args.choice, name);
        let needs_body = printer.needs_body() || query.reads_body();
        if !needs_body && self.args.query.by.is_empty() && self.args.sort_by.is_none() {
            source = source.metadata_only();
        }
        let chunk = if self.args.chunk_size == 0 { u32::MAX } else { self.args.chunk_size };
        let mut objects = Pager::<Value>::new(source).page_size(chunk).read_ahead(READ_AHEAD).stream();
        let received = AtomicU64::new(0);
        let reading = async {
            while let Some(object) =
                objects.try_next().await.map_err(|error| Failure::of_list(&self.connected.address, &kind, &error))?
            {
                // Some servers ignore field selectors that they do not support.
                if name.is_some_and(|name| name != object.name()) {
                    continue;
                }
                received.fetch_add(1, Ordering::Relaxed);
                report.see(&object);
                if !query.fits_indexes(&object) {
                    continue;
                }
                let body = needs_body.then(|| self.decoder.body(target, &object));
                if let Some(body) = &body
                    && !query.fits_value(object.key(), body, &mut report.left_out)?
                {
                    continue;
                }
                printer.print(out, target, object, body)?;
                self.count += 1;
            }
            Ok(())
        };
        let done: Result<(), Failure> = tokio::select! {
            done = reading => done,
            never = progress::of_list(&kind, &received) => match never {},
        };
        done.map(|()| received.into_inner() as usize)
    }

    /// Where was looked, for the message that nothing was found.
    fn scope(&self) -> String {
        match (&self.args.connection.namespace, self.args.choice.all_namespaces) {
            (_, true) => String::new(),
            (Some(namespace), false) => format!(" in namespace {namespace}"),
            (None, false) => format!(" in namespace {}; -A searches all namespaces", self.connected.namespace),
        }
    }
}

/// Decodes objects for printing.
struct Decoder {
    managed_fields: FieldCutter,
}

impl Decoder {
    fn new(args: &Get) -> Self {
        let path: Option<FieldPath> = "metadata.managedFields".parse().ok();
        Self { managed_fields: FieldCutter::new(path.filter(|_| !args.choice.show_managed_fields)) }
    }

    /// Decodes an object without its managed fields; if that fails, its name and the error.
    ///
    /// Items of a list have no kind, which is added.
    fn body(&self, target: &Target, object: &Obj<Value>) -> Value {
        let json = object.json();
        let json = self.managed_fields.cut(&json).unwrap_or(json);
        let mut body: Value = serde_json::from_slice(&json).unwrap_or_else(|_| {
            let error = object.get().err().as_ref().map(DecodeError::to_string);
            json!({"metadata": {"name": object.name(), "namespace": object.namespace()}, "error": error})
        });
        if let Some(fields) = body.as_object_mut()
            && !fields.contains_key("kind")
        {
            fields.insert("kind".to_owned(), target.kind.kind().into());
            fields.insert("apiVersion".to_owned(), target.kind.resource().api_version.into());
        }
        body
    }
}

/// What is reported of a list: objects for which an expression has no result, and paths at which no
/// object has a value, which are probably misspelled.
struct Report<'q> {
    left_out: LeftOut,
    paths: Vec<&'q FieldPath>,
    is_empty: bool,
}

impl<'q> Report<'q> {
    fn new(query: &'q Query, sort_by: Option<&'q FieldPath>) -> Self {
        Self { left_out: LeftOut::default(), paths: query.paths().chain(sort_by).collect(), is_empty: true }
    }

    fn see(&mut self, object: &Obj<Value>) {
        self.is_empty = false;
        self.paths.retain(|path| object.value_at(*path).is_none());
    }

    fn print(&self, kind: &str) {
        for line in self.left_out.lines(kind) {
            stderr(&line);
        }
        for path in self.paths.iter().filter(|_| !self.is_empty) {
            stderr(&format!("! no {kind} has a value at {path}"));
        }
    }
}

/// Sort key: absent values first, then numbers by value, then text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Absent,
    Number(i128),
    Text(String),
}

impl Rank {
    pub(crate) fn of(value: Option<String>) -> Self {
        let Some(text) = value else { return Self::Absent };
        // Fixed-point with six decimal places, to get a total order.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Self::Number((number * 1e6) as i128),
            _ => Self::Text(text),
        }
    }
}
