//! The informer's public interface against a real server.

mod access;
mod compaction;
mod deadline;
mod definitions;
mod event_recorder;
mod kinds;
mod outages;
mod playground;
mod shards;
mod tokens;
mod watched;
mod writer;
mod writes;

use kube_informer::shard::ShardSupport;

use self::kinds::Trial;
use crate::Error;
use crate::binaries::Binaries;
use crate::control_plane::ControlPlane;
use crate::results::Results;

pub(crate) use self::deadline::eventually;
pub(crate) use self::playground::Playground;

/// Expiring tokens: mostly waits, so that other steps can run concurrently.
pub(crate) async fn expiring(results: &Results, control_plane: &ControlPlane) -> Result<(), Error> {
    let playground = Playground::new(control_plane.target())?;
    results.step("informer/tokens", tokens::run(&playground, &control_plane.credentials)).await
}

/// Steps that need a control plane for tests, but do not kill it.
pub(crate) async fn undisturbed(results: &Results, control_plane: &ControlPlane) -> Result<(), Error> {
    let playground = Playground::new(control_plane.target())?;
    gentle(results, &playground, Trial::WithExamples).await?;
    results.step("informer/shards", shards::run(&playground, ShardSupport::Ignored)).await?;
    results.step("informer/compaction", compaction::run(&playground, control_plane)).await
}

/// Steps that kill the control plane, so that no other step can run concurrently.
pub(crate) async fn outages(results: &Results, control_plane: &mut ControlPlane) -> Result<(), Error> {
    let playground = Playground::new(control_plane.target())?;
    results.step("informer/apiserver-killed", outages::apiserver_killed(&playground, control_plane)).await?;
    results.step("informer/etcd-stopped", outages::etcd_stopped(&playground, control_plane)).await
}

/// Steps that can run on an existing cluster. The caller cleans up the playground.
pub(crate) async fn elsewhere(results: &Results, playground: &Playground) -> Result<(), Error> {
    const OURS: &str = "needs a control plane of its own";
    results.skip("informer/tokens", OURS)?;
    gentle(results, playground, Trial::LookOnly).await?;
    for step in [
        "informer/shards",
        "informer/sharded",
        "informer/compaction",
        "informer/apiserver-killed",
        "informer/etcd-stopped",
    ] {
        results.skip(step, OURS)?;
    }
    Ok(())
}

/// Steps that do not harm a shared cluster.
async fn gentle(results: &Results, playground: &Playground, trial: Trial) -> Result<(), Error> {
    results.step("informer/kinds", kinds::run(playground, trial)).await?;
    results.step("informer/writes", writes::run(playground)).await?;
    results.step("informer/access", access::run(playground)).await?;
    results.step("informer/definitions", definitions::run(playground)).await
}

/// Shards on a server that obeys their selectors, which is started for this.
pub(crate) async fn on_sharded_server(binaries: &Binaries) -> Result<String, Error> {
    let control_plane = ControlPlane::start_sharded(binaries).await?;
    shards::run(&Playground::new(control_plane.target())?, ShardSupport::Honoured).await
}
