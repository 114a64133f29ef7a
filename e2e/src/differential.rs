//! Differential test: client-go's informer and this project's on the same server, during writes and
//! connection faults.
//!
//! Both record the events of their handler and their cache; [`comparison`] checks that they are the
//! same.

mod comparison;
mod driver;
mod ours;
mod outcome;
mod run;
mod scenario;
mod scene;
mod server;
mod theirs;
mod transcript;
mod transcript_recorder;

use std::path::Path;
use std::sync::Arc;

use tokio::fs;
use tokio::task::JoinSet;

use self::outcome::Outcome;
use self::run::Setup;
use self::scenario::{ALONE, Scenario, TOGETHER};
use self::server::Server;
use crate::Error;
use crate::binaries;
use crate::control_plane::ControlPlane;

/// Sets the random seed, to reproduce a run.
const SEED: &str = "E2E_SEED";

/// Restricts the run to this scenario.
const SCENARIO: &str = "E2E_SCENARIO";

/// Runs every scenario against the real server. Returns a summary of the comparisons.
pub(crate) async fn against_real(workspace: &Path, control_plane: &mut ControlPlane) -> Result<String, Error> {
    against(workspace, Server::Real(control_plane)).await
}

/// Runs every scenario against the embedded server. Returns a summary of the comparisons.
pub(crate) async fn against_embedded(workspace: &Path) -> Result<String, Error> {
    against(workspace, Server::embedded().await?).await
}

async fn against(workspace: &Path, mut server: Server<'_>) -> Result<String, Error> {
    let seed = match std::env::var(SEED) {
        Ok(seed) => seed.parse().map_err(|_| format!("{SEED} must be a number, not {seed:?}"))?,
        Err(_) => 1,
    };
    let folder = workspace.join("target/e2e/differential").join(server.name());
    fs::create_dir_all(&folder).await?;
    println!("e2e: {SEED}={seed} gives the same again, up to timing; the transcripts are in {}", folder.display());
    let program = binaries::client_go_informer(workspace).await?;
    let setup = Arc::new(Setup { endpoint: server.endpoint()?, program, folder });
    let only = std::env::var(SCENARIO).ok();
    let wanted = |scenario: &Scenario| only.as_deref().is_none_or(|name| name == scenario.name);
    let mut runs = JoinSet::new();
    for (nth, scenario) in (0..).zip(TOGETHER).filter(|(_, scenario)| wanted(scenario)) {
        let setup = Arc::clone(&setup);
        runs.spawn(async move { run::run(&setup, &scenario, seed + nth, None).await });
    }
    let mut verdicts = Verdicts::default();
    while let Some(run) = runs.join_next().await {
        verdicts.note(run?);
    }
    if wanted(&ALONE) {
        verdicts.note(Box::pin(run::run(&setup, &ALONE, seed, Some(&mut server))).await);
    }
    verdicts.sum()
}

/// The results of all scenarios.
#[derive(Debug, Default)]
struct Verdicts {
    agreed: Vec<Outcome>,
    failed: Vec<Error>,
}

impl Verdicts {
    fn note(&mut self, run: Result<Outcome, Error>) {
        match run {
            Ok(outcome) => {
                println!("e2e:   {outcome}");
                self.agreed.push(outcome);
            }
            Err(error) => {
                println!("e2e:   {error}");
                self.failed.push(error);
            }
        }
    }

    fn sum(self) -> Result<String, Error> {
        if self.failed.is_empty() {
            return Ok(Outcome::sum(&self.agreed));
        }
        let failed: Vec<String> = self.failed.iter().map(ToString::to_string).collect();
        Err(failed.join("\n").into())
    }
}
