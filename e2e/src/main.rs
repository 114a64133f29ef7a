//! Runs the real kube-apiserver and lets it judge this workspace: `cargo run -p e2e`, or `just e2e`.
//!
//! Needs Go: the control plane is built from Go modules, about eight minutes on two cores the first time and seconds after
//! that. Everything runs on loopback, on free ports, with data that is thrown away, also on failure and on Ctrl-C.

#![allow(dead_code, reason = "the steps that use the rest are being written")]

mod binaries;
mod choice;
mod conformance;
mod control_plane;
mod credentials;
mod program;
mod proxy;
mod results;
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use self::binaries::Binaries;
use self::choice::Choice;
use self::control_plane::ControlPlane;
use self::results::Results;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Choice::parse(std::env::args().skip(1)) {
        Ok(choice) => judge(choice).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("e2e: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn judge(choice: Choice) -> Result<(), Error> {
    if choice.is_serve() {
        return until_interrupted(serve(&choice)).await;
    }
    let results = Results::new(workspace().join(choice.release.page()), choice);
    let outcome = until_interrupted(run(&results)).await;
    results.finish(&outcome)?;
    outcome
}

/// The steps, one after the other.
async fn run(results: &Results) -> Result<(), Error> {
    let workspace = workspace();
    let release = results.choice().release;
    let binaries = Binaries::ensure(&workspace, release).await?;
    results.fact("server", format!("kube-apiserver {}, of this run", binaries.version))?;
    let control_plane = ControlPlane::start(&binaries).await?;
    results.step("conformance/real", conformance::run(&workspace, Some((&control_plane, release)))).await?;
    results.step("conformance/embedded", conformance::run(&workspace, None)).await?;
    println!("e2e: everything agrees");
    Ok(())
}

/// A control plane for whoever wants one, until it ends.
async fn serve(choice: &Choice) -> Result<(), Error> {
    let binaries = Binaries::ensure(&workspace(), choice.release).await?;
    let mut control_plane = ControlPlane::start(&binaries).await?;
    println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
    Err(control_plane.ended().await?.into())
}

/// Everything started is killed when it is dropped, which ends whatever is still running here.
async fn until_interrupted(run: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = run => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        _ = terminate.recv() => Err("terminated".into()),
    }
}

/// The folder of the workspace, in which cargo runs us.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}
