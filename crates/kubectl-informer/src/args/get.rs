//! Arguments of `get`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use kube_informer::object::FieldPath;

use super::{Connection, Selection};
use crate::completions;
use crate::duration;
use crate::object::query::QueryArgs;

/// List objects, as a table with kubectl's columns or in another format
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # As kubectl get
  kubectl-informer get pods -A
  kubectl-informer get deploy,svc
  kubectl-informer get po/web-1 -o yaml
  kubectl-informer get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName

  # By node, address, owner, label or any path
  kubectl-informer get pods -A --by node=node-1
  kubectl-informer get pods -A --by ip=10.1.2.3
  kubectl-informer get pods -A --by label:app=web --by spec.priorityClassName=high

  # By an expression over any field, in CEL
  kubectl-informer get pods -A --where 'status.containerStatuses.exists(c, c.restartCount > 3)'
  kubectl-informer get deploy -A --where 'status.?readyReplicas.orValue(0) < spec.replicas'
  kubectl-informer get po -A --where 'timestamp(metadata.creationTimestamp) > now - duration(\"1h\")'

  # A live table: changed cells are marked, deleted rows linger
  kubectl-informer get pods -A --watch")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Get {
    /// Kinds by any of their names, separated by commas, then names of objects; or KIND/NAME …
    #[arg(required = true, value_name = "KIND [NAME]", add = ArgValueCandidates::new(completions::kinds_and_names))]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: Selection,
    #[command(flatten)]
    pub(crate) query: QueryArgs,
    /// Sort by the value at a path, such as .metadata.creationTimestamp
    #[arg(long, value_name = "PATH", add = ArgValueCandidates::new(completions::sort_paths))]
    pub(crate) sort_by: Option<FieldPath>,
    /// Output format: table, wide, json, yaml, name, jsonpath=TEMPLATE or
    /// custom-columns=NAME:PATH,…
    #[arg(short, long, value_name = "FORMAT", default_value = "table", add = ArgValueCandidates::new(completions::formats))]
    pub(crate) output: GetForm,
    /// Add a column for each of these labels
    #[arg(short = 'L', long, value_name = "KEY", value_delimiter = ',', add = ArgValueCandidates::new(completions::label_keys))]
    pub(crate) label_columns: Vec<String>,
    /// Add a column with all labels
    #[arg(long)]
    pub(crate) show_labels: bool,
    /// Print the kind before each name (always with several kinds)
    #[arg(long)]
    pub(crate) show_kind: bool,
    /// Do not print the column names
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Exit with 0 if a named object does not exist
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// How many objects to request at a time; 0 for all
    #[arg(long, value_name = "OBJECTS", default_value_t = 500)]
    pub(crate) chunk_size: u32,
    /// Keep running and show changes as they happen
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// With --watch: stop this long after the table is complete
    #[arg(long = "for", value_name = "TIME", requires = "watch", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Output format of `get`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GetForm {
    Table,
    /// All columns.
    Wide,
    Json,
    Yaml,
    /// kind/name.
    Name,
    /// A template of kubectl's.
    JsonPath(String),
    /// Names and paths.
    CustomColumns(String),
}

impl GetForm {
    pub(crate) const NAMES: [&str; 7] = ["table", "wide", "json", "yaml", "name", "jsonpath=", "custom-columns="];
}

impl FromStr for GetForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.split_once('=').unwrap_or((text, "")) {
            ("table", "") => Self::Table,
            ("wide", "") => Self::Wide,
            ("json", "") => Self::Json,
            ("yaml", "") => Self::Yaml,
            ("name", "") => Self::Name,
            ("jsonpath", template) if !template.is_empty() => Self::JsonPath(template.to_owned()),
            ("custom-columns", columns) if !columns.is_empty() => Self::CustomColumns(columns.to_owned()),
            _ => return Err(format!("expected one of {}", Self::NAMES.join(", "))),
        })
    }
}

impl fmt::Display for GetForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str("table"),
            Self::Wide => f.write_str("wide"),
            Self::Json => f.write_str("json"),
            Self::Yaml => f.write_str("yaml"),
            Self::Name => f.write_str("name"),
            Self::JsonPath(template) => write!(f, "jsonpath={template}"),
            Self::CustomColumns(columns) => write!(f, "custom-columns={columns}"),
        }
    }
}
