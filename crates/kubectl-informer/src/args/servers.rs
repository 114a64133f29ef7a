//! Arguments of the commands that run the embedded API server: `demo` and `apiserver`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::duration;
use crate::terminal::paint::When;

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
    /// Stop after this time and print a summary
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse)]
    pub(crate) time: Option<Duration>,
    /// When to use colours
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// Run the embedded API server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # A server with a simulated cluster, for kubectl in a second terminal
  kubectl-informer apiserver --pretend --write-kubeconfig pretend.yaml &
  kubectl --kubeconfig pretend.yaml get pods -A

  # With authentication: alice may read pods, members of system:masters may do everything
  kubectl-informer apiserver --token-auth-file tokens.csv --allow 'alice get,list,watch pods'

  # A recorded incident, for kubectl: as it was at the end, or played ten times as fast
  kubectl-informer apiserver --replay incident.jsonl
  kubectl-informer apiserver --replay incident.jsonl --speed 10")]
pub(crate) struct Apiserver {
    /// Port to listen on; 0 selects a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on; one that other machines can reach needs --token-auth-file
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
    /// line; enables TLS
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Grant access: 'WHO VERBS RESOURCES' or 'WHO VERBS RESOURCES NAMESPACE', where WHO is a user,
    /// group=NAME or *; may be repeated
    #[arg(long, value_name = "RULE", requires = "token_auth_file")]
    pub(crate) allow: Vec<AllowRule>,
    /// Load all .yaml, .yml and .json manifests of this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) load: Option<PathBuf>,
    /// Serve the objects of a recording made by `watch` or `top`, as they were at its end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pretend", "load"])]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay: serve the objects as they were this long before its end
    #[arg(long, value_name = "TIME", requires = "replay", value_parser = duration::parse, conflicts_with = "speed")]
    pub(crate) before_end: Option<Duration>,
    /// With --replay: play it from the beginning, this many times as fast as it happened
    #[arg(long, value_name = "FACTOR", requires = "replay", value_parser = speed)]
    pub(crate) speed: Option<f64>,
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
                return Err(
                    "expected 'WHO VERBS RESOURCES [NAMESPACE]', as in 'alice get,list,watch pods web'".to_owned()
                );
            }
        };
        let split = |words: &str| words.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Ok(Self { who: (*who).to_owned(), verbs: split(verbs), resources: split(resources), namespace })
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if (0.001..=1e6).contains(&speed) => Ok(speed),
        _ => Err(format!("{text:?} is not a factor between 0.001 and 1000000")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.0..=1e6).contains(&rate) => Ok(rate),
        _ => Err(format!("{text:?} is not a number of writes per second")),
    }
}
