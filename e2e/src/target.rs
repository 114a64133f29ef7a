//! The cluster that judges, seen by its clients.

use std::ffi::OsString;
use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::process::Command;

use crate::Error;

/// Where a cluster is, and what may be asked of it: everything.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// For clients that may do everything.
    pub(crate) config: kube::Config,
    kubectl: PathBuf,
    /// What `kubectl` finds the cluster with.
    kubeconfig: OsString,
}

impl Target {
    /// The cluster that these files name, separated as in a PATH; whose `kubectl` that is.
    pub(crate) async fn new(kubectl: PathBuf, kubeconfig: OsString) -> Result<Self, Error> {
        let mut merged = Kubeconfig::default();
        for file in std::env::split_paths(&kubeconfig).filter(|file| !file.as_os_str().is_empty()) {
            let one = Kubeconfig::read_from(&file);
            merged = merged.merge(one.map_err(|error| format!("reading {}: {error}", file.display()))?)?;
        }
        let config = kube::Config::from_custom_kubeconfig(merged, &KubeConfigOptions::default()).await?;
        Ok(Self { config, kubectl, kubeconfig })
    }

    /// A client for informers that may do everything.
    pub(crate) fn client(&self) -> Result<kube::Client, Error> {
        Ok(kube_informer::client(self.config.clone())?)
    }

    /// What the server says it is.
    pub(crate) async fn version(&self) -> Result<String, Error> {
        Ok(self.client()?.apiserver_version().await?.git_version)
    }

    /// What `kubectl` prints as JSON.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> Result<Value, Error> {
        let output = Command::new(&self.kubectl)
            .args(arguments)
            .args(["--output", "json"])
            .env("KUBECONFIG", &self.kubeconfig)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| format!("running kubectl: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("kubectl {} failed: {said}", arguments.join(" ")).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
