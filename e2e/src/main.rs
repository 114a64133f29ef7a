//! Runs the real kube-apiserver and lets it judge this workspace: `cargo run -p e2e`, or `just e2e`.
//!
//! Needs Go: the control plane is built from Go modules, about eight minutes on two cores the first time and seconds after
//! that. Everything runs on loopback, on free ports, with data that is thrown away, also on failure and on Ctrl-C.

mod binaries;
mod conformance;
mod control_plane;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let run = tokio::select! {
        run = run() => run,
        // Everything started is killed when it is dropped, which leaving here does.
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Error> {
    let workspace = workspace();
    let binaries = binaries::Binaries::ensure(&workspace).await?;
    let control_plane = control_plane::ControlPlane::start(&binaries).await?;
    conformance::run(&workspace, Some(&control_plane)).await?;
    conformance::run(&workspace, None).await?;
    println!("e2e: everything agrees");
    Ok(())
}

/// The folder of the workspace, in which cargo runs us.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}
