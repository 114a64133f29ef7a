//! The embedded server's conformance suite, against either server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::Error;
use crate::choice::Release;
use crate::control_plane::ControlPlane;

/// Runs the suite against a real server, or against the embedded one, and says how many cases passed.
pub(crate) async fn run(workspace: &Path, real: Option<(&ControlPlane, Release)>) -> Result<String, Error> {
    let mut suite = Command::new(build(workspace).await?);
    if let Some((control_plane, release)) = real {
        suite.envs(control_plane.conformance_environment());
        if release == Release::Old {
            let expected = workspace.join(release.module()).join("expected-failures.txt");
            suite.env("KUBE_CONFORMANCE_EXPECTED_FAILURES", expected);
        }
    }
    let mut suite = suite.current_dir(workspace).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
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

/// Builds the suite and says where it is. It is run without cargo, so that nobody is left behind when it is killed.
async fn build(workspace: &Path) -> Result<PathBuf, Error> {
    let output = Command::new("cargo")
        .args(["test", "--locked", "--package", "kube-embedded", "--test", "conformance", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(workspace)
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .output()
        .await?;
    let said = String::from_utf8(output.stdout)?;
    let mut messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| "the conformance suite could not be built: see above".into())
}

/// The counts of a result, without the verdict and the time.
fn tidy(result: &str) -> String {
    let counts = result.split("; finished").next().unwrap_or_default();
    counts.strip_prefix("ok. ").unwrap_or(counts).replace(';', ",")
}
