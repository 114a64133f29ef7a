//! Arguments of `watch`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCandidates;

use super::{Connection, Selection};
use crate::completions;
use crate::duration;
use crate::line::Form;
use crate::object::query::QueryArgs;

/// Print additions, updates and deletions as they happen
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Pods of the current namespace
  kubectl-informer watch pods

  # One deployment and the pods of an application
  kubectl-informer watch deploy/web
  kubectl-informer watch pods -l app=web

  # Several kinds in all namespaces, field by field, with the writer of each field
  kubectl-informer watch deploy,rs,po -A --diff

  # Pods with a container that is not ready, by an expression in CEL
  kubectl-informer watch po --where 'status.?containerStatuses.orValue([]).exists(c, !c.ready)'

  # Wait until the cache is complete, without printing anything
  kubectl-informer watch pods -A --no-initial --until synced

  # The next three deletions
  kubectl-informer watch pods -A --no-initial --only deleted --until count=3 -o name

  # Record what happens and look at it later
  kubectl-informer watch deploy,rs,po,events -A --record incident.jsonl
  kubectl-informer watch pod/web-1 --replay incident.jsonl --since 10m --diff")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Watch {
    /// Kinds by any of their names, separated by spaces or commas: pods, deploy,
    /// certificates.pki.acme.com; or single objects: deploy/web
    #[arg(required = true, value_name = "KIND", add = ArgValueCandidates::new(completions::kinds))]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: Selection,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Show each changed field with its old and new value and its field manager
    #[arg(long)]
    pub(crate) diff: bool,
    /// Also show lease renewals, heartbeats, lastTransitionTime, observedGeneration and the like
    #[arg(long)]
    pub(crate) all_changes: bool,
    /// Print the time at the beginning of each line
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "line")]
    pub(crate) output: Form,
    /// Print every object again at this interval
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) resync: Option<Duration>,
    /// Do not print the objects that exist at the start
    #[arg(long)]
    pub(crate) no_initial: bool,
    /// Start with what was written during this time before: from the recording with --replay,
    /// otherwise from managedFields (which fields, when and by which manager)
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "no_initial")]
    pub(crate) since: Option<Duration>,
    /// Print only these: added, updated, deleted
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) only: Vec<EventType>,
    /// When to stop: synced, count=N (printed events) or for=TIME; may be repeated, the first one
    /// stops it
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Vec<Until>,
    /// Record every event to this file, for --replay; without the data of Secrets
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Print the events of a recording instead of connecting to a server
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Event type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventType {
    Added,
    Updated,
    Deleted,
}

/// Condition that ends `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    Synced,
    Count(u64),
    For(Duration),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "synced" => Ok(Self::Synced),
            Some(("count", number)) => match number.parse() {
                Ok(number) if number > 0 => Ok(Self::Count(number)),
                _ => Err(format!("{number:?} is not a number of events")),
            },
            Some(("for", time)) => duration::parse(time).map(Self::For),
            _ => Err("expected synced, count=N or for=TIME".to_owned()),
        }
    }
}
