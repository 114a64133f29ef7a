//! Command-line arguments.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use kube_informer::object::FieldPath;
use kube_informer::{FieldSelector, Selector};

use crate::connection::Connection;
use crate::filter::Filter;
use crate::get::By;
use crate::line::Form;
use crate::paint::When;
use crate::span;

const EXIT_CODES: &str = "\
Exit codes:
  0  done; what runs until it is ended: ended by Ctrl-C or SIGTERM
  1  something failed
  2  the command line or the kubeconfig is wrong
  3  there is no such kind or object
  4  the server refuses: 401 or 403
  5  no server answers";

/// See a cluster move, ask its cache.
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

/// Informers on a cluster that is made up on the spot: needs nothing
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Watch it move until Ctrl-C
  kubectl-informer demo

  # Ten seconds of a larger and busier one
  kubectl-informer demo --size 200 --rate 500 --for 10s")]
pub(crate) struct Demo {
    /// Nodes of the cluster, with thirty pods each (at most 5000)
    #[arg(long, value_name = "NODES", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=5_000))]
    pub(crate) size: u64,
    /// Writes a second, the renewals of leases not counted
    #[arg(long, value_name = "WRITES", default_value_t = 20.0, value_parser = rate)]
    pub(crate) rate: f64,
    /// What happens follows from this
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// End after this time, with a summary
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    pub(crate) time: Option<Duration>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// Add, update and delete as they come
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Pods of the present namespace
  kubectl-informer watch pods

  # Several kinds everywhere, field by field, with who wrote what
  kubectl-informer watch deploy,rs,po -A --diff

  # Wait until the cache is full, print nothing
  kubectl-informer watch pods -A --no-initial --until synced

  # The next three deletions
  kubectl-informer watch pods -A --no-initial --only deleted --until count=3 -o name")]
pub(crate) struct Watch {
    /// Kinds by any of their names, one by one or with commas: pods, deploy,
    /// certificates.pki.acme.com
    #[arg(required = true, value_name = "KIND")]
    pub(crate) kinds: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: Selection,
    /// Show each field that changed, old and new, and who wrote it
    #[arg(long)]
    pub(crate) diff: bool,
    /// The form of the output
    #[arg(short, long, value_name = "FORM", default_value = "line")]
    pub(crate) output: Form,
    /// Tell everything again this often
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    pub(crate) resync: Option<Duration>,
    /// Say nothing of what is there already
    #[arg(long)]
    pub(crate) no_initial: bool,
    /// Only these: added, updated, deleted
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) only: Vec<EventType>,
    /// When to end: synced, count=N (events told), or for=TIME; several end at the first
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Vec<Until>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// One sync, then the answer: a table with kubectl's columns, out of the cache
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # As kubectl get
  kubectl-informer get pods -A

  # By an index of the cache: node, ip, owner, a label, or any path
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
    /// Ask an index: node=NAME, ip=ADDRESS, owner=NAME, label:KEY=VALUE or PATH=VALUE; several must
    /// all fit
    #[arg(long, value_name = "INDEX=VALUE")]
    pub(crate) by: Vec<By>,
    /// Only objects for which this expression is true: CEL over metadata, spec, status, data, … and
    /// object
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) condition: Option<Filter>,
    /// Sort by the value at a path, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH")]
    pub(crate) sort_by: Option<FieldPath>,
    /// The form of the output
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    pub(crate) output: GetForm,
    /// No line with the names of the columns
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Stay, and show what changes
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With --watch: end so long after the table has become full
    #[arg(long = "for", value_name = "TIME", requires = "watch", value_parser = span::parse)]
    pub(crate) time: Option<Duration>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Output format of `get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GetForm {
    /// kubectl's columns.
    Table,
    /// All columns there are.
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
    /// Only objects with such labels: app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<Selector>,
    /// Only objects with such fields: spec.nodeName=node-1
    #[arg(long, value_name = "SELECTOR")]
    pub(crate) field_selector: Option<FieldSelector>,
    /// Keep metadata.managedFields: for json, yaml and --where
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
                _ => Err(format!("{number:?} is no number of events")),
            },
            Some(("for", time)) => span::parse(time).map(Self::For),
            _ => Err("write synced, count=N or for=TIME".to_owned()),
        }
    }
}

/// The embedded API server alone
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # A server with a living cluster, for kubectl in a second terminal
  kubectl-informer apiserver --pretend --write-kubeconfig pretend.yaml &
  kubectl --kubeconfig pretend.yaml get pods -A

  # One that asks who is there; alice may read pods, and members of system:masters everything
  kubectl-informer apiserver --token-auth-file tokens.csv --allow 'alice get,list,watch pods'")]
pub(crate) struct Apiserver {
    /// The port to listen on; 0 is any that is free
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// The address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// Fill it with a cluster that lives
    #[arg(long)]
    pub(crate) pretend: bool,
    /// Nodes of that cluster, with thirty pods each (at most 5000)
    #[arg(long, value_name = "NODES", default_value_t = 20, requires = "pretend", value_parser = clap::value_parser!(u64).range(1..=5_000))]
    pub(crate) size: u64,
    /// Writes a second of that cluster
    #[arg(long, value_name = "WRITES", default_value_t = 20.0, requires = "pretend", value_parser = rate)]
    pub(crate) rate: f64,
    /// What happens in that cluster follows from this
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Who is known: TOKEN,USER,UID,"GROUP,GROUP" a line, as kube-apiserver has it. Served over TLS
    /// then
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// What somebody may do: 'WHO VERBS RESOURCES' or 'WHO VERBS RESOURCES NAMESPACE', WHO a user
    /// or group=NAME, * for any; may be repeated
    #[arg(long, value_name = "RULE", requires = "token_auth_file")]
    pub(crate) allow: Vec<AllowRule>,
    /// Load every manifest of this directory, .yaml, .yml and .json
    #[arg(long, value_name = "DIR")]
    pub(crate) load: Option<PathBuf>,
    /// Write the kubeconfig here once the server is ready, instead of printing it
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

/// Completions for a shell
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
    /// The program kubectl_complete-informer, which kubectl asks
    #[arg(long)]
    pub(crate) kubectl: bool,
    /// What may follow these words: for that program
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
        _ => Err(format!("{text:?} is no number of writes a second")),
    }
}
