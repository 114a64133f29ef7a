//! Shared by the examples: the cluster to run against.
//!
//! Without arguments this is an embedded API server in the process. With `--kubeconfig PATH`, or
//! `--kubeconfig` alone for the default file, it is a real cluster, from which the examples only
//! read.

#![allow(dead_code, reason = "each example uses a part of this")]

use std::error::Error;
use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_embedded::Server;
use serde_json::Value;

/// The cluster an example runs against.
pub(crate) enum Cluster {
    /// An API server in the process, with the objects of the example.
    Embedded(Server),
    /// The cluster of a kubeconfig.
    Real(Client),
}

impl Cluster {
    /// The cluster selected on the command line; an embedded one is created with these objects.
    pub(crate) async fn from_args(objects: impl IntoIterator<Item = Value>) -> Result<Self, Box<dyn Error>> {
        match kubeconfig_argument()? {
            Argument::None => Self::embedded(objects).await,
            Argument::DefaultFile => Self::real(Config::from_kubeconfig(&KubeConfigOptions::default()).await?),
            Argument::File(path) => {
                let file = Kubeconfig::read_from(path)?;
                Self::real(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?)
            }
        }
    }

    /// An API server in the process, with these objects.
    pub(crate) async fn embedded(objects: impl IntoIterator<Item = Value>) -> Result<Self, Box<dyn Error>> {
        let server = Server::builder().in_process().start().await?;
        for object in objects {
            server.create(&object)?;
        }
        Ok(Self::Embedded(server))
    }

    /// The cluster of this configuration.
    pub(crate) fn real(config: Config) -> Result<Self, Box<dyn Error>> {
        Ok(Self::Real(kube_informer::client(config)?))
    }

    /// A client of the cluster.
    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Embedded(server) => Client::new(server.service(), "default"),
            Self::Real(client) => client.clone(),
        }
    }

    /// The embedded server, if there is one: the examples may change it.
    pub(crate) fn server(&self) -> Option<&Server> {
        match self {
            Self::Embedded(server) => Some(server),
            Self::Real(_) => None,
        }
    }

    /// Keeps watching a real cluster until Ctrl-C; returns at once for an embedded one.
    pub(crate) async fn watch_until_ctrl_c(&self) -> Result<(), Box<dyn Error>> {
        if let Self::Real(_) = self {
            eprintln!("watching; Ctrl-C ends it");
            tokio::signal::ctrl_c().await?;
        }
        Ok(())
    }
}

enum Argument {
    None,
    DefaultFile,
    File(PathBuf),
}

fn kubeconfig_argument() -> Result<Argument, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (None, _, _) => Ok(Argument::None),
        (Some(flag), None, _) if flag == "--kubeconfig" => Ok(Argument::DefaultFile),
        (Some(flag), Some(path), None) if flag == "--kubeconfig" => Ok(Argument::File(path.into())),
        _ => Err("usage: [--kubeconfig [PATH]]".into()),
    }
}
