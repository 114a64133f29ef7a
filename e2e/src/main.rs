//! Tests this workspace against a real kube-apiserver: `cargo run -p e2e`, or `just e2e`.
//!
//! Needs Go: the control plane is built from Go modules, about eight minutes on two cores the first
//! time and seconds after that. Everything runs on loopback, on free ports, with temporary data
//! that is deleted also on failure and on Ctrl-C. The results are written to
//! `target/e2e/results.md`.
//!
//! Steps can be selected by name (`cargo run -p e2e -- informer/tokens`) or by folder (`--
//! informer`). With `serve` only a control plane is started, until Ctrl-C. With `KUBECONFIG` an
//! existing cluster is used: steps that kill something are skipped.

mod binaries;
mod built;
mod choice;
mod clean_up;
mod command;
mod conformance;
mod control_plane;
mod controllers;
mod credentials;
mod differential;
mod forms;
mod informer;
mod kubectl;
mod leadership;
mod link;
mod program;
mod programs;
mod results;
mod shards;
mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use self::binaries::Binaries;
use self::built::Built;
use self::choice::{Choice, Release};
use self::command::Plugin;
use self::conformance::Conformance;
use self::control_plane::ControlPlane;
use self::results::Results;
use self::target::Target;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == leadership::WORKER => leadership::run_worker(rest).await,
        Some((first, rest)) if first == shards::WORKER => shards::run_worker(rest).await,
        _ => match Choice::parse(arguments) {
            Ok(choice) => judge(choice).await,
            Err(error) => Err(error),
        },
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
    let outcome = match std::env::var_os("KUBECONFIG").filter(|files| !files.is_empty()) {
        None => until_interrupted(run(&results)).await,
        Some(files) => judge_by(&results, files).await,
    };
    results.finish(&outcome)?;
    outcome
}

/// Runs against an existing cluster, and cleans up afterwards.
async fn judge_by(results: &Results, files: OsString) -> Result<(), Error> {
    let target = Target::new("kubectl".into(), files).await?;
    let version = target.version().await?;
    println!("e2e: KUBECONFIG is set: {} ({version}) is the judge", target.config.cluster_url);
    results.fact("server", format!("{version}, an existing cluster"))?;
    let playground = informer::Playground::new(&target)?;
    let outcome = until_interrupted(run_on_existing(results, &playground)).await;
    playground.clean_up().await;
    outcome
}

/// Runs the steps on a control plane for tests.
async fn run(results: &Results) -> Result<(), Error> {
    let workspace = workspace();
    let release = results.choice().release;
    let binaries = Binaries::ensure(&workspace, release).await?;
    // Builds only what the selected steps need.
    let suites = ["conformance/real", "conformance/embedded", "conformance/sharded"];
    let others = ["command/real", "command/embedded", "command/forms", "controllers/foo", "controllers/website"];
    let built = match suites.iter().chain(&others).any(|step| results.choice().wants(step)) {
        true => Some(Built::ensure(&workspace).await?),
        false => None,
    };
    let suite = built.as_ref().map(|built| Conformance::new(&workspace, built));
    let plugin = built.as_ref().map(|built| Plugin::new(built, &binaries)).transpose()?;
    let mut control_plane = ControlPlane::start(&binaries).await?;
    let (version, etcd) = (control_plane.target().version().await?, control_plane.etcd_version().await?);
    results.fact("server", format!("kube-apiserver {version} with etcd v{etcd}, started for this run"))?;
    // Three steps mostly wait and do not affect the others, so they run concurrently.
    tokio::try_join!(
        informer::expiring(results, &control_plane),
        results.step("differential/embedded", differential::against_embedded(&workspace)),
        results.step("programs/embedded", programs::against_embedded(&workspace)),
        async {
            if let Some(suite) = &suite {
                results.step("conformance/real", suite.real(&control_plane, release)).await?;
                results.step("conformance/embedded", suite.embedded()).await?;
                if release == Release::Current {
                    results.step("conformance/sharded", suite.sharded(&binaries)).await?;
                }
            }
            if release == Release::Current {
                results.step("kubectl", kubectl::run(&binaries, &control_plane)).await?;
                results.step("programs/real", programs::against_real(&workspace, &control_plane)).await?;
            }
            if let Some(plugin) = &plugin {
                results.step("command/real", plugin.on_real(&control_plane.kubeconfig())).await?;
                results.step("command/embedded", plugin.as_server()).await?;
                if release == Release::Current {
                    results.step("command/forms", plugin.forms(&control_plane.kubeconfig())).await?;
                }
            }
            if release == Release::Current {
                results.step("informer/sharded", informer::on_sharded_server(&binaries)).await?;
            }
            informer::undisturbed(results, &control_plane).await
        },
    )?;
    informer::outages(results, &mut control_plane).await?;
    results.step("leadership", leadership::run(&mut control_plane)).await?;
    if release == Release::Current {
        results.step("shards", shards::run(&control_plane, &binaries)).await?;
    }
    if let Some(built) = built.as_ref().filter(|_| release == Release::Current) {
        results.step("controllers/foo", controllers::foo(&workspace, built, &mut control_plane)).await?;
        results.step("controllers/website", controllers::website(built, &mut control_plane)).await?;
    }
    results.step("differential/real", differential::against_real(&workspace, &mut control_plane)).await?;
    results.step("without-go", clean_up::without_go(release)).await?;
    results.step("clean-up", clean_up::run(release)).await
}

/// Runs the steps that are safe on a shared cluster.
async fn run_on_existing(results: &Results, playground: &informer::Playground) -> Result<(), Error> {
    results.skip("conformance/real", "needs a server without other users and controllers")?;
    results.skip("conformance/sharded", "needs a server of its own")?;
    let suite = Conformance::new(&workspace(), &Built::ensure(&workspace()).await?);
    results.step("conformance/embedded", suite.embedded()).await?;
    for step in ["kubectl", "command/real", "command/embedded", "command/forms"] {
        results.skip(step, "needs a kubectl of its own")?;
    }
    results.skip("programs/real", "needs a server without other users")?;
    results.step("programs/embedded", programs::against_embedded(&workspace())).await?;
    informer::elsewhere(results, playground).await?;
    results.skip("differential/real", "needs a server without other writers")?;
    results.step("differential/embedded", differential::against_embedded(&workspace())).await?;
    for step in ["leadership", "shards", "controllers/foo", "controllers/website"] {
        results.skip(step, "kills the server")?;
    }
    results.skip("clean-up", "needs a control plane of its own")
}

/// Runs a control plane until it ends.
async fn serve(choice: &Choice) -> Result<(), Error> {
    let binaries = Binaries::ensure(&workspace(), choice.release).await?;
    let mut control_plane = ControlPlane::start(&binaries).await?;
    println!("export KUBECONFIG={}", control_plane.kubeconfig().display());
    Err(control_plane.ended().await?.into())
}

/// Runs a future until it completes or is interrupted. Dropping it kills all started processes.
async fn until_interrupted(run: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = run => outcome,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        _ = terminate.recv() => Err("terminated".into()),
    }
}

/// The folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}
