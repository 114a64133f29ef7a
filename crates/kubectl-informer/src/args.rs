//! Command-line arguments.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kube_informer::object::FieldPath;
use kube_informer::{FieldSelector, Selector};

use crate::client::connection::Connection;
use crate::duration;
use crate::object::filter::Filter;
use crate::object::by::By;
use crate::line::Form;
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
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(Demo),
    Watch(Box<Watch>),
    Get(Box<Get>),
    Apiserver(Apiserver),
    Completions(Completions),
}

/// Run informers on a simulated cluster; needs no other server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Show it live until Ctrl-C
  kubectl-informer demo

  # Ten seconds of a larger and busier one
  kubectl-informer demo --size 200 --rate 500 --for 10s")]
pub(crate) struct Demo {
    /// Number of nodes, with thirty pods each (at most 5000)
    #[arg(long, value_name = "NODES", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=5_000))]
    pub(crate) size: u64,
    /// Writes per second, without lease renewals
    #[arg(long, value_name = "WRITES", default_value_t = 20.0, value_parser = rate)]
    pub(crate) rate: f64,
    /// Seed of the simulation; the same seed gives the same cluster and changes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// End after this time and print a summary
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// Print additions, updates and deletions as they happen
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Pods of the current namespace
  kubectl-informer watch pods

  # Several kinds in all namespaces, field by field, with the writer of each field
  kubectl-informer watch deploy,rs,po -A --diff

  # Wait until the cache is complete, print nothing
  kubectl-informer watch pods -A --no-initial --until synced

  # The next three deletions
  kubectl-informer watch pods -A --no-initial --only deleted --until count=3 -o name")]
pub(crate) struct Watch {
    /// Kinds by any of their names, separated by spaces or commas: pods, deploy,
    /// certificates.pki.acme.com
    #[arg(required = true, value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: Selection,
    /// Show each changed field with its old and new value and its field manager
    #[arg(long)]
    pub(crate) diff: bool,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "line")]
    pub(crate) output: Form,
    /// Print every object again at this interval
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) resync: Option<Duration>,
    /// Do not print the objects that exist at the start
    #[arg(long)]
    pub(crate) no_initial: bool,
    /// Print only these: added, updated, deleted
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) only: Vec<EventType>,
    /// When to end: synced, count=N (printed events) or for=TIME; the first that holds ends it
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Vec<Until>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List objects from a synced cache, as a table with kubectl's columns
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # As kubectl get
  kubectl-informer get pods -A

  # By an index of the cache: node, ip, owner, a label or any path
  kubectl-informer get pods -A --by node=node-1
  kubectl-informer get pods -A --by ip=10.1.2.3
  kubectl-informer get pods -A --by label:app=web --by spec.priorityClassName=high

  # By an expression over any field, in CEL
  kubectl-informer get pods -A --where 'status.containerStatuses.exists(c, c.restartCount > 3)'
  kubectl-informer get deploy -A --where 'status.?readyReplicas.orValue(0) < spec.replicas'

  # A live table: changed cells are marked, deleted rows linger
  kubectl-informer get pods -A --watch")]
pub(crate) struct Get {
    /// A kind by any of its names
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,
    /// Names of objects
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: Selection,
    /// Look up in an index: node=NAME, ip=ADDRESS, owner=NAME, label:KEY=VALUE or PATH=VALUE;
    /// objects must match all of them
    #[arg(long, value_name = "INDEX=VALUE")]
    pub(crate) by: Vec<By>,
    /// Only objects for which this CEL expression is true, over metadata, spec, status, data, … and
    /// object
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) condition: Option<Filter>,
    /// Sort by the value at a path, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH")]
    pub(crate) sort_by: Option<FieldPath>,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    pub(crate) output: GetForm,
    /// Do not print the column names
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Keep running and show changes as they happen
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With --watch: end this long after the table is complete
    #[arg(long = "for", value_name = "TIME", requires = "watch", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Output format of `get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetForm {
    /// kubectl's columns.
    Table,
    /// All columns.
    Wide,
    /// One list.
    Json,
    /// One list.
    Yaml,
    /// kind/name.
    Name,
}

/// Which objects, and how they are shown.
#[derive(Debug, Clone, Args)]
pub(crate) struct Selection {
    /// The namespace [default: the context's]
    #[arg(short, long, value_parser = namespace)]
    pub(crate) namespace: Option<String>,
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
            _ => Err("write synced, count=N or for=TIME".to_owned()),
        }
    }
}

/// Run the embedded API server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # A server with a simulated cluster, for kubectl in a second terminal
  kubectl-informer apiserver --pretend --write-kubeconfig pretend.yaml &
  kubectl --kubeconfig pretend.yaml get pods -A

  # With authentication: alice may read pods, members of system:masters may do everything
  kubectl-informer apiserver --token-auth-file tokens.csv --allow 'alice get,list,watch pods'")]
pub(crate) struct Apiserver {
    /// Port to listen on; 0 selects a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on; one that other machines can reach requires tokens
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// Allow all requests of all clients, even if other machines can reach the address
    #[arg(long, conflicts_with = "token_auth_file")]
    pub(crate) no_authentication: bool,
    /// Run a simulated cluster in it
    #[arg(long)]
    pub(crate) pretend: bool,
    /// Number of simulated nodes, with thirty pods each (at most 5000)
    #[arg(long, value_name = "NODES", default_value_t = 20, requires = "pretend", value_parser = clap::value_parser!(u64).range(1..=5_000))]
    pub(crate) size: u64,
    /// Writes per second in the simulated cluster
    #[arg(long, value_name = "WRITES", default_value_t = 20.0, requires = "pretend", value_parser = rate)]
    pub(crate) rate: f64,
    /// Seed of the simulation; the same seed gives the same cluster and changes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Tokens and their users in kube-apiserver's format, one TOKEN,USER,UID,"GROUP,GROUP" per
    /// line; turns TLS on
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Grant access: 'WHO VERBS RESOURCES' or 'WHO VERBS RESOURCES NAMESPACE', where WHO is a user,
    /// group=NAME or *; may be repeated
    #[arg(long, value_name = "RULE", requires = "token_auth_file")]
    pub(crate) allow: Vec<AllowRule>,
    /// Load all .yaml, .yml and .json manifests of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) load: Option<PathBuf>,
    /// Write the kubeconfig to this file once the server is ready, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) write_kubeconfig: Option<PathBuf>,
}

/// An access rule from `--allow`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllowRule {
    pub(crate) who: String,
    pub(crate) verbs: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) namespace: Option<String>,
}

impl FromStr for AllowRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (who, verbs, resources, namespace) = match words.as_slice() {
            [who, verbs, resources] => (who, verbs, resources, None),
            [who, verbs, resources, namespace] => (who, verbs, resources, Some((*namespace).to_owned())),
            _ => {
                return Err("write 'WHO VERBS RESOURCES [NAMESPACE]', as in 'alice get,list,watch pods web'".to_owned());
            }
        };
        let split = |words: &str| words.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Ok(Self { who: (*who).to_owned(), verbs: split(verbs), resources: split(resources), namespace })
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

/// A name that no namespace can have would be requested again and again.
fn namespace(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if is_name {
        Ok(text.to_owned())
    } else {
        Err("a namespace's name consists of lower case letters, digits and '-'".to_owned())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.0..=1e6).contains(&rate) => Ok(rate),
        _ => Err(format!("{text:?} is not a number of writes per second")),
    }
}
