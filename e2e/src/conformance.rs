//! The embedded server's conformance suite, run against either server.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::Error;
use crate::binaries::Binaries;
use crate::built::Built;
use crate::choice::Release;
use crate::control_plane::ControlPlane;

/// The built suite.
#[derive(Debug)]
pub(crate) struct Conformance {
    workspace: PathBuf,
    program: PathBuf,
}

impl Conformance {
    pub(crate) fn new(workspace: &Path, built: &Built) -> Self {
        Self { workspace: workspace.to_owned(), program: built.conformance.clone() }
    }

    /// Runs the suite against the real server. Returns how many cases passed.
    pub(crate) async fn real(&self, control_plane: &ControlPlane, release: Release) -> Result<String, Error> {
        let mut suite = self.suite();
        suite.envs(control_plane.conformance_environment());
        if release == Release::Old {
            let expected = self.workspace.join(release.module()).join("expected-failures.txt");
            suite.env("KUBE_CONFORMANCE_EXPECTED_FAILURES", expected);
        }
        run(suite).await
    }

    /// Runs the cases of shard selectors against a server that obeys them. Returns how many passed.
    pub(crate) async fn sharded(&self, binaries: &Binaries) -> Result<String, Error> {
        let control_plane = ControlPlane::start_sharded(binaries).await?;
        let mut suite = self.suite();
        suite.envs(control_plane.conformance_environment()).env("KUBE_CONFORMANCE_SHARDED", "1").arg("shards::");
        run(suite).await
    }

    /// Runs the suite against the embedded server, with a socket and in process.
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
