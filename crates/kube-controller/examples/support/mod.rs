//! Shared by the examples: the cluster that they run on.
//!
//! Without arguments this is an API server in the process, on which an example shows what it does,
//! and ends. With `--kubeconfig PATH`, or `--kubeconfig` alone for the default file, it is a real
//! cluster, on which it runs until SIGTERM or Ctrl-C.

#![allow(dead_code, reason = "each example uses a part of this")]

use std::error::Error;
use std::path::PathBuf;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_controller::Manager;
use kube_embedded::Server;
use kube_informer::client::ApiListWatch;
use kube_informer::one_shot::until;
use kube_informer::{Obj, ObjectKey};

pub(crate) mod website;

pub(crate) type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// The cluster that an example runs on.
pub(crate) enum Cluster {
    /// An API server in the process.
    Embedded(Server),
    /// The cluster of a kubeconfig.
    Real(Client),
}

impl Cluster {
    /// Returns the cluster that the command line selects. Logs go to standard error from now on.
    pub(crate) async fn from_args() -> Result<Self> {
        let mut arguments = std::env::args_os().skip(1);
        let options = KubeConfigOptions::default();
        let config = match (arguments.next(), arguments.next().map(PathBuf::from), arguments.next()) {
            (None, _, _) => return Self::embedded().await,
            (Some(flag), None, _) if flag == "--kubeconfig" => Config::from_kubeconfig(&options).await?,
            (Some(flag), Some(path), None) if flag == "--kubeconfig" => {
                Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
            }
            _ => return Err("usage: [--kubeconfig [PATH]]".into()),
        };
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
        Ok(Self::Real(kube_informer::client(config)?))
    }

    /// Starts an API server in the process.
    pub(crate) async fn embedded() -> Result<Self> {
        Ok(Self::Embedded(Server::builder().in_process().start().await?))
    }

    /// Returns a client of the cluster.
    pub(crate) fn client(&self) -> Client {
        match self {
            Self::Embedded(server) => Client::new(server.service(), "default"),
            Self::Real(client) => client.clone(),
        }
    }

    /// Creates the definition of a kind, unless it exists, and waits until the kind is served.
    pub(crate) async fn define(&self, definition: &CustomResourceDefinition) -> Result<()> {
        let definitions = Api::<CustomResourceDefinition>::all(self.client());
        match definitions.create(&PostParams::default(), definition).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => drop(created?),
        }
        let key = ObjectKey::cluster(definition.metadata.name.as_deref().unwrap_or_default());
        let source = ApiListWatch::of::<CustomResourceDefinition>(self.client()).object(&key);
        until(source, key, |definition| definition.is_some_and(is_established)).await?;
        Ok(())
    }

    /// Runs a manager: for a demonstration on the server in the process, or else until a signal.
    pub(crate) async fn run(
        &self,
        manager: Manager,
        demonstration: impl AsyncFnOnce(&Server) -> Result<()>,
    ) -> Result<()> {
        let Self::Embedded(server) = self else { return Ok(manager.run().await?) };
        let mut shown = Err("the manager has ended too soon".into());
        manager.run_until(async { shown = demonstration(server).await }).await?;
        shown
    }
}

fn is_established(definition: &Obj<CustomResourceDefinition>) -> bool {
    let status = definition.get().ok().and_then(|definition| definition.status.as_ref());
    let mut conditions = status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}
