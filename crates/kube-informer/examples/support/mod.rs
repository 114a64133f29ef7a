//! What the examples share: a cluster to work with.
//!
//! Without arguments it is made up on the spot, an API server in the process. With `--kubeconfig PATH`, or `--kubeconfig` alone for
//! the usual file, it is a real one, of which the examples only read.

#![allow(dead_code, reason = "each example uses a part of this")]

use std::error::Error;
use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_embedded::Server;
use serde_json::Value;

/// Where an example runs.
pub(crate) enum Cluster {
    /// An API server in the process, with what the example put there.
    MadeUp(Server),
    /// The cluster that a kubeconfig names.
    Real(Client),
}

impl Cluster {
    /// The cluster that the command line asks for; these objects are in it from the start if it is made up.
    pub(crate) async fn from_args(objects: impl IntoIterator<Item = Value>) -> Result<Self, Box<dyn Error>> {
        match kubeconfig_argument()? {
            Argument::None => Self::made_up(objects).await,
            Argument::Usual => Self::real(Config::from_kubeconfig(&KubeConfigOptions::default()).await?),
            Argument::File(path) => {
                let file = Kubeconfig::read_from(path)?;
                Self::real(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
            }
        }
    }

    /// An API server in the process, with these objects in it.
    pub(crate) async fn made_up(objects: impl IntoIterator<Item = Value>) -> Result<Self, Box<dyn Error>> {
        let server = Server::builder().in_process().start().await?;
        for object in objects {
            server.create(&object)?;
        }
        Ok(Self::MadeUp(server))
    }

    /// The cluster of this configuration.
    pub(crate) fn real(config: Config) -> Result<Self, Box<dyn Error>> {
        Ok(Self::Real(kube_informer::client(config)?))
    }

    /// A client of it.
    pub(crate) fn client(&self) -> Client {
        match self {
            Self::MadeUp(server) => Client::new(server.service(), "default"),
            Self::Real(client) => client.clone(),
        }
    }

    /// The server, if it is ours to change.
    pub(crate) fn server(&self) -> Option<&Server> {
        match self {
            Self::MadeUp(server) => Some(server),
            Self::Real(_) => None,
        }
    }

    /// Lets a real cluster show what happens in it, until Ctrl-C. What is made up has had its say.
    pub(crate) async fn linger(&self) -> Result<(), Box<dyn Error>> {
        if let Self::Real(_) = self {
            eprintln!("watching; Ctrl-C ends it");
            tokio::signal::ctrl_c().await?;
        }
        Ok(())
    }
}

enum Argument {
    None,
    Usual,
    File(PathBuf),
}

fn kubeconfig_argument() -> Result<Argument, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (None, _, _) => Ok(Argument::None),
        (Some(flag), None, _) if flag == "--kubeconfig" => Ok(Argument::Usual),
        (Some(flag), Some(path), None) if flag == "--kubeconfig" => Ok(Argument::File(path.into())),
        _ => Err("usage: [--kubeconfig [PATH]]".into()),
    }
}
