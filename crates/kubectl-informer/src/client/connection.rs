//! Connection flags: server and user, as in kubectl.

use std::convert::Infallible;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCandidates;
use kube::client::AuthError;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedCluster, NamedContext,
};
use kube::{Client, Config};

use super::request_log::logged;
use super::request_timeout::limited;
use crate::completions;
use crate::duration;
use crate::failure::{Failure, causes};
use crate::terminal::progress::Waiting;

/// The log level of kubectl that shows requests.
const LOGS_REQUESTS: u8 = 6;

/// Which server, and as whom.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection (as in kubectl)")]
pub(crate) struct Connection {
    /// The namespace [default: the context's]
    #[arg(short, long, value_parser = namespace, add = ArgValueCandidates::new(completions::namespaces))]
    pub(crate) namespace: Option<String>,
    /// The kubeconfig file [default: $KUBECONFIG, then ~/.kube/config, then the pod's own service
    /// account]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The kubeconfig context to use
    #[arg(long, add = ArgValueCandidates::new(completions::contexts))]
    pub(crate) context: Option<String>,
    /// The kubeconfig cluster to use
    #[arg(long, add = ArgValueCandidates::new(completions::clusters))]
    pub(crate) cluster: Option<String>,
    /// The kubeconfig user to use
    #[arg(long, add = ArgValueCandidates::new(completions::users))]
    pub(crate) user: Option<String>,
    /// The address of the server, without a kubeconfig
    #[arg(short, long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// A bearer token for the server
    #[arg(long)]
    pub(crate) token: Option<Token>,
    /// A file with certificate authorities to trust for the server
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Do not check the server's certificate: anyone on the network path can then read and change
    /// everything
    #[arg(long)]
    pub(crate) insecure_skip_tls_verify: bool,
    /// A user to impersonate
    #[arg(long = "as", value_name = "USER")]
    pub(crate) impersonate: Option<String>,
    /// A group to impersonate; may be repeated
    #[arg(long = "as-group", value_name = "GROUP")]
    pub(crate) impersonate_groups: Vec<String>,
    /// Time limit of each request; of a watch, until its response begins; 0 for none [default: 0]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(crate) request_timeout: Option<Duration>,
    /// Log level; from 6, each request is logged to standard error
    #[arg(short, long = "v", value_name = "LEVEL")]
    pub(crate) verbosity: Option<u8>,
}

/// A bearer token, which is never printed.
#[derive(Clone)]
pub(crate) struct Token(String);

impl FromStr for Token {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// A client and the namespace of its kubeconfig context.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// The address of the server.
    pub(crate) address: String,
    /// The name of the context, or the address if the connection has none.
    pub(crate) name: String,
}

impl Connection {
    /// Adds the flags of `outer` that are not given here.
    pub(crate) fn fill_in(&mut self, outer: Self) {
        let Self { namespace, kubeconfig, context, cluster, user, server, .. } = outer;
        self.namespace = self.namespace.take().or(namespace);
        self.kubeconfig = self.kubeconfig.take().or(kubeconfig);
        self.context = self.context.take().or(context);
        self.cluster = self.cluster.take().or(cluster);
        self.user = self.user.take().or(user);
        self.server = self.server.take().or(server);
        self.token = self.token.take().or(outer.token);
        self.certificate_authority = self.certificate_authority.take().or(outer.certificate_authority);
        self.insecure_skip_tls_verify |= outer.insecure_skip_tls_verify;
        self.impersonate = self.impersonate.take().or(outer.impersonate);
        self.impersonate_groups.extend(outer.impersonate_groups);
        self.request_timeout = self.request_timeout.or(outer.request_timeout);
        self.verbosity = self.verbosity.or(outer.verbosity);
    }

    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        let waiting = Waiting::on("reading the kubeconfig");
        let (mut config, context) = self.config().await?;
        drop(waiting);
        if let Some(Token(token)) = &self.token {
            config.auth_info = AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() };
        }
        if let Some(user) = &self.impersonate {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !self.impersonate_groups.is_empty() {
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        if let Some(file) = &self.certificate_authority {
            config.root_cert = Some(certificates(file).await?);
        }
        config.accept_invalid_certs |= self.insecure_skip_tls_verify;
        let timeout = self.request_timeout.filter(|timeout| !timeout.is_zero());
        if timeout.is_some() {
            config.connect_timeout = timeout;
        }
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let mut client = client(config, &address)?;
        if let Some(timeout) = timeout {
            client = limited(client, &namespace, timeout);
        }
        if self.verbosity.is_some_and(|level| level >= LOGS_REQUESTS) {
            client = logged(client, &namespace, &address);
        }
        let name = context.unwrap_or_else(|| address.clone());
        Ok(Connected { client, namespace, address, name })
    }

    /// The error names the file.
    pub(crate) fn read_kubeconfig(&self) -> Result<Kubeconfig, String> {
        match &self.kubeconfig {
            Some(file) => read_file(file),
            None => read_files(env::var_os("KUBECONFIG").as_deref()),
        }
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

    /// The configuration, and the name of its context.
    async fn config(&self) -> Result<(Config, Option<String>), Failure> {
        let server = self.server.as_deref().map(address).transpose()?;
        let options =
            KubeConfigOptions { context: self.context.clone(), cluster: self.cluster.clone(), user: self.user.clone() };
        let named = self.context.is_some() || self.cluster.is_some() || self.user.is_some();
        let unusable = |why: &str| Failure::Usage(format!("the kubeconfig cannot be used: {why}"));
        let mut context = None;
        let read = match self.read_kubeconfig() {
            Ok(kubeconfig) => {
                self.check_user(&kubeconfig)?;
                context = self.context.clone().or_else(|| kubeconfig.current_context.clone());
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| causes(&error))
            }
            Err(why) if self.kubeconfig.is_some() => return Err(unusable(&why)),
            Err(why) => Err(why),
        };
        match (read, server) {
            (Ok(mut config), Some(server)) => {
                config.cluster_url = server;
                Ok((config, None))
            }
            (Ok(config), None) => Ok((config, context)),
            (Err(why), _) if named || self.kubeconfig.is_some() => Err(unusable(&why)),
            (Err(_), Some(server)) => Ok((Config::new(server), None)),
            (Err(why), None) => Config::incluster().map(|config| (config, None)).map_err(|_| {
                Failure::Usage(format!(
                    "no cluster to connect to: {why}.\nSelect one with --kubeconfig FILE or --server URL. \
                     Without a cluster, try: kubectl-informer demo"
                ))
            }),
        }
    }
}

/// Builds a client. If the kubeconfig names a command that provides credentials, it runs now.
fn client(config: Config, address: &str) -> Result<Client, Failure> {
    let command = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone()).unwrap_or_default();
    let _waiting = match command.as_str() {
        "" => Waiting::on("connecting"),
        command => Waiting::on(format!("running the credential command {command:?}")),
    };
    kube_informer::client(config).map_err(|error| {
        // The errors quote the environment and the output of the command, which may hold secrets.
        let why = match &error {
            kube::Error::Auth(AuthError::AuthExecStart(error)) => format!("cannot be run: {error}"),
            kube::Error::Auth(AuthError::AuthExecRun { out, .. }) => format!("failed with {}", out.status),
            kube::Error::Auth(AuthError::AuthExecParse(_)) => "did not print an ExecCredential".to_owned(),
            _ => return Failure::Other(format!("creating a client for {address}: {}", causes(&error))),
        };
        Failure::Usage(format!("{address}: the credential command {command:?} of the kubeconfig {why}"))
    })
}

/// Merges the files that `KUBECONFIG` lists; as in kubectl, those that do not exist are left out.
/// If there is none, the default file is read.
fn read_files(list: Option<&OsStr>) -> Result<Kubeconfig, String> {
    let paths: Vec<PathBuf> = list.into_iter().flat_map(env::split_paths).collect();
    let mut files = paths.iter().filter(|path| path.exists()).map(|path| read_file(path));
    match files.next() {
        Some(first) => {
            files.try_fold(first?, |merged, next| merged.merge(next?).map_err(|error: KubeconfigError| causes(&error)))
        }
        None => Kubeconfig::read().map_err(|error| causes(&error)),
    }
}

fn read_file(path: &Path) -> Result<Kubeconfig, String> {
    Kubeconfig::read_from(path).map_err(|error| {
        let cause = causes(&error);
        let name = path.display().to_string();
        if cause.contains(&name) { cause } else { format!("{name}: {cause}") }
    })
}

/// Reads certificates as a kubeconfig would name them.
async fn certificates(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let cluster = Cluster {
        server: Some("https://localhost".to_owned()),
        certificate_authority: Some(file.display().to_string()),
        ..Cluster::default()
    };
    let context = Context { cluster: "c".to_owned(), ..Context::default() };
    let kubeconfig = Kubeconfig {
        clusters: vec![NamedCluster { name: "c".to_owned(), cluster: Some(cluster), ..NamedCluster::default() }],
        contexts: vec![NamedContext { name: "c".to_owned(), context: Some(context), ..NamedContext::default() }],
        current_context: Some("c".to_owned()),
        ..Kubeconfig::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    match config.map(|config| config.root_cert) {
        Ok(certificates) => Ok(certificates.unwrap_or_default()),
        Err(error) => Err(Failure::Usage(format!("--certificate-authority {}: {}", file.display(), causes(&error)))),
    }
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

fn address(text: &str) -> Result<http::Uri, Failure> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: http::Uri = full.parse().map_err(|error| Failure::Usage(format!("--server {text}: {error}")))?;
    match uri.host() {
        Some(host) if !host.is_empty() => Ok(uri),
        _ => Err(Failure::Usage(format!("--server {text}: no host in it; write https://HOST:PORT"))),
    }
}
