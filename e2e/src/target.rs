//! The cluster under test and its client settings.

use std::ffi::OsString;
use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::process::Command;

use crate::Error;

/// A cluster and credentials with all permissions.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The configuration of clients with all permissions.
    pub(crate) config: kube::Config,
    kubectl: PathBuf,
    /// The kubeconfig for `kubectl`.
    kubeconfig: OsString,
}

impl Target {
    /// The cluster of these kubeconfig files, separated as in a PATH, and the `kubectl` to use.
    pub(crate) async fn new(kubectl: PathBuf, kubeconfig: OsString) -> Result<Self, Error> {
        let mut merged = Kubeconfig::default();
        for file in std::env::split_paths(&kubeconfig).filter(|file| !file.as_os_str().is_empty()) {
            let one = Kubeconfig::read_from(&file);
            merged = merged.merge(one.map_err(|error| format!("reading {}: {error}", file.display()))?)?;
        }
        let config = kube::Config::from_custom_kubeconfig(merged, &KubeConfigOptions::default()).await?;
        Ok(Self { config, kubectl, kubeconfig })
    }

    /// A client for informers with all permissions.
    pub(crate) fn client(&self) -> Result<kube::Client, Error> {
        Ok(kube_informer::client(self.config.clone())?)
    }

    /// The version that the server reports.
    pub(crate) async fn version(&self) -> Result<String, Error> {
        Ok(self.client()?.apiserver_version().await?.git_version)
    }

    /// Runs `kubectl` and parses its JSON output.
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
