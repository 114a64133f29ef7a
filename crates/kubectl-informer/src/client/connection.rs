//! Connection flags: server and user, as in kubectl.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::duration;
use crate::failure::{Failure, causes};
use crate::client::request_timeout::limited;

/// Which server, and as whom.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection, as kubectl has it")]
pub(crate) struct Connection {
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's own service
    /// account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The kubeconfig context to use
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// The kubeconfig cluster to use
    #[arg(long)]
    pub(crate) cluster: Option<String>,
    /// The kubeconfig user to use
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// The address of the server; needs no kubeconfig
    #[arg(short, long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// A user to impersonate
    #[arg(long = "as", value_name = "USER")]
    pub(crate) impersonate: Option<String>,
    /// A group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    pub(crate) impersonate_groups: Vec<String>,
    /// How long a single request may take, a watch until its answer begins; 0 is for ever. Without
    /// it, who waits for a server keeps trying
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration::parse)]
    pub(crate) request_timeout: Duration,
}

/// A client and the namespace of its kubeconfig context.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) request_timeout: Option<Duration>,
}

impl Connection {
    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        let mut config = self.config().await?;
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !self.impersonate_groups.is_empty() {
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        let request_timeout = (!self.request_timeout.is_zero()).then_some(self.request_timeout);
        if let Some(timeout) = request_timeout {
            config.connect_timeout = Some(timeout);
        }
        let namespace = config.default_namespace.clone();
        let client = kube_informer::client(config)
            .map_err(|error| Failure::Other(format!("no client can be made of this kubeconfig: {}", causes(&error))))?;
        let client = match request_timeout {
            Some(timeout) => limited(client, &namespace, timeout),
            None => client,
        };
        Ok(Connected { client, namespace, request_timeout })
    }

    /// A user that is named must exist: without it, requests would be sent as nobody.
    fn check_user(&self, kubeconfig: &Kubeconfig) -> Result<(), Failure> {
        let known = || kubeconfig.auth_infos.iter().map(|user| user.name.as_str());
        match &self.user {
            Some(name) if !known().any(|user| user == name) => {
                let known: Vec<&str> = known().collect();
                Err(Failure::Usage(format!(
                    "--user {name}: no such user in the kubeconfig; it has {}",
                    known.join(", ")
                )))
            }
            _ => Ok(()),
        }
    }

    async fn config(&self) -> Result<Config, Failure> {
        let server = self.server.as_deref().map(address).transpose()?;
        let options =
            KubeConfigOptions { context: self.context.clone(), cluster: self.cluster.clone(), user: self.user.clone() };
        let named = self.context.is_some() || self.cluster.is_some() || self.user.is_some();
        let unusable =
            |error: &dyn std::error::Error| Failure::Usage(format!("the kubeconfig cannot be used: {}", causes(error)));
        let kubeconfig = match &self.kubeconfig {
            Some(file) => Ok(Kubeconfig::read_from(file).map_err(|error| unusable(&error))?),
            None => read_files(env::var_os("KUBECONFIG").as_deref()),
        };
        let read = match kubeconfig {
            Ok(kubeconfig) => {
                self.check_user(&kubeconfig)?;
                Config::from_custom_kubeconfig(kubeconfig, &options).await
            }
            Err(error) => Err(error),
        };
        match (read, server) {
            (Ok(mut config), server) => {
                config.cluster_url = server.unwrap_or(config.cluster_url);
                Ok(config)
            }
            (Err(error), _) if named || self.kubeconfig.is_some() => Err(unusable(&error)),
            (Err(_), Some(server)) => Ok(Config::new(server)),
            (Err(error), None) => Config::incluster().map_err(|_| {
                let cause = causes(&error);
                Failure::Usage(format!(
                    "no cluster to talk to: {cause}.\nName one with --kubeconfig FILE or --server URL. \
                     Without any cluster at hand, try: kubectl-informer demo"
                ))
            }),
        }
    }
}

/// Merges the files that `KUBECONFIG` lists; as in kubectl, those that do not exist are left out.
/// If there is none, the default file is read.
fn read_files(list: Option<&OsStr>) -> Result<Kubeconfig, KubeconfigError> {
    let paths: Vec<PathBuf> = list.into_iter().flat_map(env::split_paths).collect();
    let mut files = paths.iter().filter(|path| path.exists()).map(Kubeconfig::read_from);
    match files.next() {
        Some(first) => files.try_fold(first?, |merged, next| merged.merge(next?)),
        None => Kubeconfig::read(),
    }
}

fn address(text: &str) -> Result<http::Uri, Failure> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: http::Uri = full.parse().map_err(|error| Failure::Usage(format!("--server {text}: {error}")))?;
    match uri.host() {
        Some(host) if !host.is_empty() => Ok(uri),
        _ => Err(Failure::Usage(format!("--server {text}: no host in it; write https://HOST:PORT"))),
    }
}
