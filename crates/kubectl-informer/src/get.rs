//! The `get` command: syncs once, then answers from the cache.
//!
//! `grid` the table layout, `left_out` what is reported of `--where`,
//! and `live` the table of `--watch`. Shares informer selection and failure reports with `watch`.

mod grid;
mod left_out;
mod live;

use std::time::SystemTime;

use http::Request;
use kube_embedded::table::Columns;
use kube_informer::client::{ResourceScope, Served};
use kube_informer::object::FieldPath;
use kube_informer::{Condition, FieldSelector, Informer, Obj};
use serde_json::{Value, json};

use crate::object::by::Lookup;

use crate::args::{Get, GetForm};
use crate::client::connection::Connected;
use crate::terminal::document::Document;
use crate::failure::Failure;
use crate::object::filter::{Filter, Outcome};
use crate::client::kinds::{self, singular_name};
use crate::line::{Detail, Form, Style};
use crate::terminal::output::Output;
use crate::terminal::progress;
use crate::object::redaction::Secrets;
use crate::terminal::stderr::stderr;
use crate::watch::{Watched, health_report, select};
use grid::{Grid, TableOptions};
use left_out::LeftOut;

pub(crate) async fn run(args: Get) -> Result<(), Failure> {
    let connected = args.connection.connect().await?;
    let mut kinds = kinds::find(&connected, std::slice::from_ref(&args.kind)).await?;
    let kind = match kinds.len() {
        1 => kinds.remove(0),
        _ => return Err(Failure::Usage(format!("{} names several kinds; get takes one", args.kind))),
    };
    let mut settings = select(&connected, &args.choice, &kind);
    // For a single name, the server sends only that object.
    if let ([name], None) = (args.names.as_slice(), &args.choice.field_selector) {
        let only: Result<FieldSelector, _> = format!("metadata.name={name}").parse();
        settings = settings.fields(only.map_err(|error| Failure::Usage(error.to_string()))?);
    }
    if !args.choice.show_managed_fields {
        settings = settings.drop_managed_fields();
    }
    let informer = Informer::builder_for(connected.client.clone(), kind.resource()).settings(settings).build();
    let watched = Watched { kind, informer };
    let question = Query::new(&args, &watched);
    let result = answer(&args, &connected, &watched, &question).await;
    watched.informer.shutdown().await;
    result
}

async fn answer(args: &Get, connected: &Connected, watched: &Watched, question: &Query) -> Result<(), Failure> {
    let name = watched.kind.full_name();
    let mut out = Output::new(args.choice.color);
    let grid = match args.output {
        GetForm::Table | GetForm::Wide => Some(grid(args, connected, &watched.kind).await),
        GetForm::Json | GetForm::Yaml | GetForm::Name => None,
    };
    if let (true, Some(grid)) = (args.watch, &grid) {
        return live::run(args, watched, question, grid, &mut out).await;
    }
    if args.watch {
        return Err(Failure::Usage("--watch shows a table; use the watch command for other formats".to_owned()));
    }
    watched.informer.start();
    {
        let mut reporters = tokio::task::JoinSet::new();
        reporters.spawn(progress::run(name.clone(), watched.informer.clone()));
        reporters.spawn(health_report::run(name.clone(), watched.informer.clone()));
        let synced = tokio::select! {
            synced = watched.informer.synced() => synced.map_err(|error| Failure::of_sync(&name, &error)),
            why = unreachable(&watched.informer), if connected.request_timeout.is_some() => Err(Failure::unreachable(&why)),
        };
        reporters.shutdown().await;
        synced?;
    }
    let (found, left_out) = question.ask(watched)?;
    let kind = watched.kind.kind().to_lowercase();
    for line in left_out.lines(&kind) {
        stderr(&line);
    }
    for path in question.paths_without_values(watched) {
        stderr(&format!("! no {kind} has a value at {path}"));
    }
    let is_missing = |name: &&String| !found.iter().any(|object| object.name() == *name);
    let missing: Vec<String> = args.names.iter().filter(is_missing).map(|name| format!("{name:?}")).collect();
    if missing.is_empty() || !found.is_empty() {
        match &grid {
            Some(grid) => show_table(args, grid, &found, &mut out)?,
            None => show_objects(args, &watched.kind, &found, &mut out)?,
        }
        out.flush()?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::NotFound(format!("{name} {} not found", missing.join(", "))))
}

/// Completes with the cause as soon as a request fails without a response.
async fn unreachable(informer: &Informer<Value>) -> String {
    let mut health = informer.watch_health();
    loop {
        if let Condition::Degraded { cause, .. } = &health.borrow_and_update().condition
            && cause.code().is_none()
        {
            return cause.to_string();
        }
        if health.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

fn show_table(args: &Get, grid: &Grid, found: &[Obj<Value>], out: &mut Output) -> Result<(), Failure> {
    if found.is_empty() {
        let scope = match (&args.choice.namespace, args.choice.all_namespaces) {
            (Some(namespace), _) => format!(" in namespace {namespace}"),
            (None, false) => " in the current namespace; -A looks everywhere".to_owned(),
            (None, true) => String::new(),
        };
        stderr(&format!("nothing found{scope}"));
        return Ok(());
    }
    let objects: Vec<Value> = found.iter().map(|object| object.get().cloned().unwrap_or_default()).collect();
    for line in grid.lines(&grid.rows(&objects, SystemTime::now())) {
        out.line(&line)?;
    }
    Ok(())
}

fn show_objects(args: &Get, kind: &Served, found: &[Obj<Value>], out: &mut Output) -> Result<(), Failure> {
    if args.output == GetForm::Name {
        for object in found {
            out.line(&format!("{}/{}", singular_name(kind), object.name()))?;
        }
        return Ok(());
    }
    let secrets = if args.choice.show_secrets { Secrets::Shown } else { Secrets::Redacted };
    let style = Style { form: Form::Json, secrets, detail: Detail::Summary, kind_width: 0 };
    let mut objects: Vec<Value> = found.iter().map(|object| style.object(kind, object)).collect();
    // As in kubectl, a single object requested by name is printed without a list.
    let whole = match (args.names.len(), objects.len()) {
        (1, 1) => objects.remove(0),
        _ => json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}),
    };
    let document = match args.output {
        GetForm::Yaml => Document::yaml(&whole)?,
        _ => Document::indented_json(&whole),
    };
    out.document(&document)?;
    Ok(())
}

/// The printer columns: built-in, from the `CustomResourceDefinition`, or name and age.
async fn grid(args: &Get, connected: &Connected, kind: &Served) -> Grid {
    let columns = match Columns::built_in(kind.group(), kind.version(), kind.plural()) {
        Some(columns) => columns,
        None => {
            let definition = kind.full_name();
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition}");
            let request = Request::get(path).body(Vec::new()).ok();
            let definition: Option<Value> = match request {
                // Without permission to read the definition, the generic columns are used.
                Some(request) => connected.client.request(request).await.ok(),
                None => None,
            };
            definition
                .and_then(|definition| Columns::custom(&definition, kind.version()))
                .unwrap_or_else(Columns::generic)
        }
    };
    let look = TableOptions {
        wide: args.output == GetForm::Wide,
        headers: !args.no_headers,
        namespaces: args.choice.all_namespaces && kind.scope() == ResourceScope::Namespaced,
    };
    Grid::new(columns, look)
}

/// A query of the cache.
pub(crate) struct Query {
    names: Vec<String>,
    lookups: Vec<Lookup>,
    condition: Option<Filter>,
    /// Whether an evaluation error may quote values of the object.
    quoting: Quoting,
    sort_by: Option<FieldPath>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Allowed,
    Forbidden,
}

impl Query {
    fn new(args: &Get, watched: &Watched) -> Self {
        Self {
            names: args.names.clone(),
            lookups: args.by.iter().map(|by| by.look_up(&watched.informer)).collect(),
            condition: args.condition.clone(),
            quoting: match args.choice.show_secrets || watched.kind.kind() != "Secret" {
                true => Quoting::Allowed,
                false => Quoting::Forbidden,
            },
            sort_by: args.sort_by.clone(),
        }
    }

    /// Returns the matching objects, sorted, and those for which the expression had no result.
    fn ask(&self, watched: &Watched) -> Result<(Vec<Obj<Value>>, LeftOut), Failure> {
        let (first, others) = match self.lookups.split_first() {
            Some((first, others)) => (first.get(), others),
            None => (watched.informer.lister().list(), [].as_slice()),
        };
        let (mut found, mut left_out) = (Vec::new(), LeftOut::default());
        for object in first {
            if others.iter().all(|lookup| lookup.fits(&object)) && self.fits_rest(&object, &mut left_out)? {
                found.push(object);
            }
        }
        found.sort_by(|one, other| one.key().cmp(other.key()));
        if let Some(path) = &self.sort_by {
            found.sort_by_cached_key(|object| Rank::of(object.value_at(path)));
        }
        Ok((found, left_out))
    }

    /// The paths of `--by` and `--sort-by` at which no object has a value: probably misspelled.
    fn paths_without_values(&self, watched: &Watched) -> Vec<&FieldPath> {
        let mut paths: Vec<&FieldPath> = self.lookups.iter().filter_map(Lookup::path).chain(&self.sort_by).collect();
        if paths.is_empty() {
            return paths;
        }
        let objects = watched.informer.lister().list();
        paths.retain(|path| !objects.is_empty() && objects.iter().all(|object| object.value_at(*path).is_none()));
        paths
    }

    /// Returns whether an object matches, without using the indexes.
    fn fits(&self, object: &Obj<Value>) -> Result<bool, Failure> {
        let fits_lookups = self.lookups.iter().all(|lookup| lookup.fits(object));
        Ok(fits_lookups && self.fits_rest(object, &mut LeftOut::default())?)
    }

    fn fits_rest(&self, object: &Obj<Value>, left_out: &mut LeftOut) -> Result<bool, Failure> {
        if !self.names.is_empty() && !self.names.iter().any(|name| name == object.name()) {
            return Ok(false);
        }
        let Some(condition) = &self.condition else { return Ok(true) };
        let Ok(value) = object.get() else { return Ok(false) };
        let evaluation = condition.evaluate(value).map_err(|why| self.evaluation_failure(object, why))?;
        let fits = evaluation.outcome == Outcome::True;
        left_out.add(object.key(), evaluation, self.quoting);
        Ok(fits)
    }

    /// The failure of the expression. Errors may quote values, so for Secrets the cause is
    /// withheld.
    fn evaluation_failure(&self, object: &Obj<Value>, why: String) -> Failure {
        match self.quoting {
            Quoting::Allowed => Failure::Usage(why),
            Quoting::Forbidden => Failure::Usage(format!("--where: cannot read {}; see --show-secrets", object.key())),
        }
    }
}

/// Sort key: absent values first, then numbers by value, then text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Absent,
    Number(i128),
    Text(String),
}

impl Rank {
    fn of(value: Option<String>) -> Self {
        let Some(text) = value else { return Self::Absent };
        // Fixed-point with six decimal places, to get a total order.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Self::Number((number * 1e6) as i128),
            _ => Self::Text(text),
        }
    }
}
