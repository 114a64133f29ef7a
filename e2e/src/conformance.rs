//! The embedded server's conformance suite, against either server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::Error;
use crate::choice::Release;
use crate::control_plane::ControlPlane;

/// The suite, built. It is run without cargo, so that nobody is left behind when it is killed.
#[derive(Debug)]
pub(crate) struct Conformance {
    workspace: PathBuf,
    program: PathBuf,
}

impl Conformance {
    pub(crate) async fn build(workspace: &Path) -> Result<Self, Error> {
        // With the features that the gate has built it with, so that it need not be built again.
        let output = Command::new("cargo")
            .args(["test", "--locked", "--workspace", "--test", "conformance", "--no-run"])
            .args(["--message-format", "json-render-diagnostics"])
            .current_dir(workspace)
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .output()
            .await?;
        let said = String::from_utf8(output.stdout)?;
        let mut messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let program = messages.find_map(|message| {
            let ours = message["target"]["name"] == "conformance";
            message["executable"].as_str().filter(|_| ours).map(PathBuf::from)
        });
        let program = program.ok_or("the conformance suite could not be built: see above")?;
        Ok(Self { workspace: workspace.to_owned(), program })
    }

    /// Judges the real server, and says how many cases passed.
    pub(crate) async fn real(&self, control_plane: &ControlPlane, release: Release) -> Result<String, Error> {
        let mut suite = self.suite();
        suite.envs(control_plane.conformance_environment());
        if release == Release::Old {
            let expected = self.workspace.join(release.module()).join("expected-failures.txt");
            suite.env("KUBE_CONFORMANCE_EXPECTED_FAILURES", expected);
        }
        run(suite).await
    }

    /// Judges the embedded server, with a socket and without.
    pub(crate) async fn embedded(&self) -> Result<String, Error> {
        run(self.suite()).await
    }

    fn suite(&self) -> Command {
        let mut suite = Command::new(&self.program);
        suite.current_dir(&self.workspace);
        suite
    }
}

async fn run(mut suite: Command) -> Result<String, Error> {
    let mut suite = suite.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let mut counted = Vec::new();
    if let Some(said) = suite.stdout.take() {
        let mut lines = BufReader::new(said).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(result) = line.strip_prefix("test result: ") {
                counted.push(tidy(result));
            } else if !line.ends_with("... ok") {
                println!("{line}");
            }
        }
    }
    if !suite.wait().await?.success() {
        return Err("the suite fails: see above".into());
    }
    Ok(counted.join(", then "))
}

/// The counts of a result, without the verdict and the time.
fn tidy(result: &str) -> String {
    let counts = result.split("; finished").next().unwrap_or_default();
    counts.strip_prefix("ok. ").unwrap_or(counts).replace(';', ",")
}
