//! The embedded server's conformance suite, against either server.

use std::path::Path;

use tokio::process::Command;

use crate::Error;
use crate::control_plane::ControlPlane;

/// Runs the suite against a real server, or against the embedded one.
pub(crate) async fn run(workspace: &Path, real: Option<&ControlPlane>) -> Result<(), Error> {
    let whom = if real.is_some() { "the real server" } else { "the embedded server" };
    println!("e2e: conformance of {whom}");
    let status = Command::new("cargo")
        .args(["test", "--locked", "--package", "kube-embedded", "--test", "conformance"])
        .current_dir(workspace)
        .envs(real.into_iter().flat_map(ControlPlane::conformance_environment))
        .kill_on_drop(true)
        .status()
        .await?;
    if !status.success() {
        return Err(format!("the conformance suite fails against {whom}: see above").into());
    }
    Ok(())
}
