//! Arguments of the full-screen and tree views: `top` and `tree`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;

use super::{Connection, Selection};
use crate::completions;
use crate::duration;
use crate::object::query::QueryArgs;

/// Full-screen view of kinds, their objects and what happens to them
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Workloads, services, config maps, nodes and events of the current namespace
  kubectl-informer top

  # Some kinds, in all namespaces
  kubectl-informer top pods,nodes,deploy,events -A

Press ? for the keys.")]
pub(crate) struct Top {
    /// Kinds by any of their names [default: workloads, services, config maps, nodes and events]
    #[arg(value_name = "KIND", add = ArgValueCandidates::new(completions::kinds))]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: Selection,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Megabytes of history to keep
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) history: u32,
    /// Also show lease renewals, heartbeats, lastTransitionTime, observedGeneration and the like
    #[arg(long)]
    pub(crate) all_changes: bool,
    /// Record every event to this file, for --replay; without the data of Secrets
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Play a recording instead of connecting to a server
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Show an object with its owners, what it owns, and whether each is ready
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # A deployment, its replica sets and their pods
  kubectl-informer tree deploy/web

  # Live, until Ctrl-C
  kubectl-informer tree deploy/web --watch")]
pub(crate) struct Tree {
    /// The object: KIND/NAME, or KIND NAME
    #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME", add = ArgValueCandidates::new(completions::kinds_and_names))]
    pub(crate) words: Vec<String>,
    /// Keep running and show changes as they happen
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With --watch: stop this long after the tree is complete
    #[arg(long = "for", value_name = "TIME", requires = "watch", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: crate::terminal::paint::When,
    #[command(flatten)]
    pub(crate) connection: Connection,
}
