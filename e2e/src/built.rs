//! The programs of this workspace that are run as separate processes.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::Error;

/// The built programs. They are run without cargo, so that killing them leaves no child process.
#[derive(Debug)]
pub(crate) struct Built {
    /// The embedded server's conformance suite.
    pub(crate) conformance: PathBuf,
    /// `kubectl-informer`.
    pub(crate) command: PathBuf,
    /// The examples of `kube-controller`.
    pub(crate) foo: PathBuf,
    pub(crate) website: PathBuf,
}

impl Built {
    /// Builds them with the same features as the tests, so that nothing is built twice.
    pub(crate) async fn ensure(workspace: &Path) -> Result<Self, Error> {
        let output = Command::new("cargo")
            .args(["build", "--locked", "--workspace", "--bin", "e2e", "--bin", "kubectl-informer"])
            .args(["--test", "conformance", "--example", "foo", "--example", "website"])
            .args(["--message-format", "json-render-diagnostics"])
            .current_dir(workspace)
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await?;
        let said = String::from_utf8(output.stdout)?;
        let messages: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let program = |name: &str| {
            let path = |message: &Value| message["executable"].as_str().map(PathBuf::from);
            let mut ours = messages.iter().filter(|message| message["target"]["name"] == name);
            ours.find_map(path).ok_or_else(|| format!("{name} could not be built: see above"))
        };
        Ok(Self {
            conformance: program("conformance")?,
            command: program("kubectl-informer")?,
            foo: program("foo")?,
            website: program("website")?,
        })
    }
}
