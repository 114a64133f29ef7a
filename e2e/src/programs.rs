//! Unmodified third-party programs on either server: client-go's sample controller, a
//! controller-runtime manager and kube-rs's controller.

mod kube_rs;
mod manager;
mod sample_controller;
mod stage;

use std::path::Path;

use tempfile::TempDir;
use tokio::fs;

use self::stage::Stage;
use crate::Error;
use crate::binaries::{self, Programs};
use crate::control_plane::ControlPlane;

/// Runs every program against the real server. Returns a summary.
pub(crate) async fn against_real(workspace: &Path, control_plane: &ControlPlane) -> Result<String, Error> {
    let programs = binaries::programs(workspace).await?;
    run(&programs, &control_plane.kubeconfig()).await
}

/// Runs every program against the embedded server. Returns a summary.
pub(crate) async fn against_embedded(workspace: &Path) -> Result<String, Error> {
    let programs = binaries::programs(workspace).await?;
    let server = kube_embedded::Server::builder().tls().start().await?;
    let folder = TempDir::with_prefix("kube-e2e-embedded-")?;
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, server.kubeconfig()).await?;
    let result = run(&programs, &kubeconfig).await;
    server.shutdown().await;
    result
}

async fn run(programs: &Programs, kubeconfig: &Path) -> Result<String, Error> {
    let stage = Stage::new(kubeconfig).await?;
    let (sample, manager, kube_rs) = tokio::try_join!(
        sample_controller::run(&stage, programs),
        manager::run(&stage, programs),
        Box::pin(kube_rs::run(&stage)),
    )?;
    Ok(format!("sample-controller: {sample}; controller-runtime: {manager}; kube-rs: {kube_rs}"))
}
