//! Command-line arguments.
//!
//! One file per command or pair of commands; here, what several of them have.

pub(crate) mod get;
pub(crate) mod servers;
pub(crate) mod views;
pub(crate) mod watch;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use kube_informer::{FieldSelector, Selector};

pub(crate) use self::get::Get;
pub(crate) use self::servers::{Apiserver, Demo};
pub(crate) use self::views::{Top, Tree};
pub(crate) use self::watch::Watch;
use crate::client::connection::Connection;
use crate::object::redaction::Secrets;
use crate::terminal::paint::When;

const EXIT_CODES: &str = "\
Exit codes:
  0  success, also when ended by Ctrl-C or SIGTERM
  1  any other failure
  2  invalid command line or kubeconfig
  3  no such kind or object
  4  refused by the server: 401 or 403
  5  the server cannot be reached";

/// Watch a cluster live, and query an indexed cache of it.
///
/// Also a kubectl plugin: on the PATH, `kubectl informer …` runs it.
#[derive(Debug, Parser)]
#[command(name = "kubectl-informer", version, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    /// Flags before the subcommand; those after it take precedence.
    #[command(flatten)]
    connection: Connection,
    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// The command, with the connection flags that were given before it.
    pub(crate) fn into_command(self) -> Command {
        let Self { connection: outer, mut command } = self;
        let connection = match &mut command {
            Command::Watch(args) => Some(&mut args.connection),
            Command::Get(args) => Some(&mut args.connection),
            Command::Top(args) => Some(&mut args.connection),
            Command::Tree(args) => Some(&mut args.connection),
            Command::Demo(_) | Command::Apiserver(_) | Command::Completions(_) => None,
        };
        if let Some(connection) = connection {
            connection.fill_in(outer);
        }
        command
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Watch(Box<Watch>),
    Get(Box<Get>),
    Top(Box<Top>),
    Tree(Box<Tree>),
    Apiserver(Apiserver),
    Completions(Completions),
}

/// Which objects, and how they are shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct Selection {
    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Only objects whose labels match: app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<Selector>,
    /// Only objects whose fields match: spec.nodeName=node-1
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) field_selector: Option<FieldSelector>,
    /// Keep metadata.managedFields in json, yaml and --where
    #[arg(long)]
    pub(crate) show_managed_fields: bool,
    /// Show the data of Secrets
    #[arg(long)]
    pub(crate) show_secrets: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

impl Selection {
    pub(crate) fn secrets(&self) -> Secrets {
        if self.show_secrets { Secrets::Shown } else { Secrets::Redacted }
    }
}

/// Print the completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # bash
  source <(kubectl-informer completions bash)

  # For `kubectl informer <TAB>`: put this on the PATH, executable
  kubectl-informer completions --kubectl > ~/.local/bin/kubectl_complete-informer")]
pub(crate) struct Completions {
    /// The shell
    #[arg(required_unless_present_any = ["kubectl", "words"])]
    pub(crate) shell: Option<Shell>,
    /// Print the program kubectl_complete-informer, which kubectl calls
    #[arg(long)]
    pub(crate) kubectl: bool,
    /// Candidates for the next word, for that program
    #[arg(long, hide = true, num_args = 0.., allow_hyphen_values = true)]
    pub(crate) words: Option<Vec<String>>,
}
