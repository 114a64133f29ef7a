//! A shard group of processes that are stopped (SIGSTOP), killed, terminated and added, while
//! objects change: no two members' tenures of a uid overlap, and the last generation is handled.
//!
//! Each worker creates an object for every attempt, labelled with its name, the uid and generation
//! it was for, and the epoch of its tenure. The order in which the server has executed the writes
//! is that of the versions of these objects: for a uid, epochs never go back, and each has one
//! member.

mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube_informer::Version;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use self::worker::run as run_worker;
use crate::Error;
use crate::binaries::Binaries;
use crate::control_plane::ControlPlane;
use crate::informer::{Playground, eventually};
use crate::program::Program;

/// The argument that makes this program a worker.
pub(crate) const WORKER: &str = "shards-worker";

const GROUP: &str = "workers";
const OBJECTS: usize = 30;

/// Runs against a server that ignores shard selectors, and one that obeys them.
pub(crate) async fn run(control_plane: &ControlPlane, binaries: &Binaries) -> Result<String, Error> {
    let off = scale(control_plane).await?;
    let sharded = ControlPlane::start_sharded(binaries).await?;
    let on = scale(&sharded).await?;
    Ok(format!("gate off: {off}; gate on: {on}"))
}

async fn scale(control_plane: &ControlPlane) -> Result<String, Error> {
    let playground = Playground::new(control_plane.target())?;
    let namespace = playground.namespace("shards").await?;
    let stage = Stage {
        deployments: Api::namespaced(playground.client.clone(), &namespace),
        maps: Api::namespaced(playground.client.clone(), &namespace),
        leases: Api::namespaced(playground.client.clone(), &namespace),
        folder: TempDir::with_prefix("kube-e2e-shards-")?,
        namespace,
    };
    stage.create().await?;
    let kubeconfig = control_plane.kubeconfig();
    tokio::select! {
        written = stage.write() => written?,
        disturbed = stage.disturb(&kubeconfig) => disturbed?,
    }
    stage.judge().await
}

struct Stage {
    deployments: Api<Deployment>,
    maps: Api<ConfigMap>,
    leases: Api<Lease>,
    folder: TempDir,
    namespace: String,
}

impl Stage {
    async fn create(&self) -> Result<(), Error> {
        for nth in 0..OBJECTS {
            let name = format!("d{nth}");
            let deployment = serde_json::from_value(json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
                "spec": {
                    "replicas": 0, "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]},
                    },
                },
            }))?;
            self.deployments.create(&PostParams::default(), &deployment).await?;
        }
        Ok(())
    }

    /// Changes the objects for ever.
    async fn write(&self) -> Result<(), Error> {
        for replicas in 1.. {
            for nth in 0..OBJECTS {
                let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
                self.deployments.patch(&format!("d{nth}"), &PatchParams::default(), &patch).await?;
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            }
        }
        Ok(())
    }

    /// Adds, stops, kills and terminates workers. Returns when two are left.
    async fn disturb(&self, kubeconfig: &Path) -> Result<(), Error> {
        let mut workers = Vec::new();
        for name in ["worker-0", "worker-1", "worker-2"] {
            workers.push(self.start(kubeconfig, name)?);
        }
        self.held_by(3, &workers).await?;
        // Stopped past the end of its lease; what it was doing is not sent when it goes on.
        workers[0].signal("STOP").await?;
        self.held_by(2, &workers).await?;
        workers[0].signal("CONT").await?;
        self.held_by(3, &workers).await?;
        workers[1].kill().await?;
        self.held_by(2, &workers).await?;
        workers[1].start()?;
        self.held_by(3, &workers).await?;
        for name in ["worker-3", "worker-4"] {
            workers.push(self.start(kubeconfig, name)?);
        }
        self.held_by(5, &workers).await?;
        for worker in &mut workers[..3] {
            worker.stop().await?;
        }
        self.held_by(2, &workers).await?;
        self.all_handled(&workers).await
    }

    fn start(&self, kubeconfig: &Path, name: &'static str) -> Result<Program, Error> {
        let arguments = [WORKER, &kubeconfig.display().to_string(), &self.namespace, GROUP, name];
        let arguments = arguments.map(str::to_owned).into();
        let mut program = Program::new(name, std::env::current_exe()?, self.folder.path(), arguments);
        program.start()?;
        Ok(program)
    }

    /// Waits until this number of members holds all ranges.
    async fn held_by(&self, count: usize, workers: &[Program]) -> Result<(), Error> {
        let what = format!("{count} members hold all ranges");
        let held = eventually(&what, async || {
            let lease = self.leases.get(GROUP).await.map_err(|error| error.to_string())?;
            let text = lease.annotations().get("kube-controller/ranges").cloned().unwrap_or_default();
            let record: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            let ranges = record["ranges"].as_array().cloned().unwrap_or_default();
            let holders: BTreeSet<&str> = ranges.iter().filter_map(|range| range["holder"].as_str()).collect();
            let is_complete = ranges.iter().all(|range| range["holder"].is_string());
            if is_complete && holders.len() == count { Ok(()) } else { Err(format!("{holders:?}")) }
        });
        match held.await {
            Ok(()) => Ok(()),
            Err(error) => {
                let mut text = error.to_string();
                for worker in workers {
                    text = format!("{text}\n{}", worker.last_lines().await);
                }
                Err(text.into())
            }
        }
    }

    /// Waits until the present generation of every object was handled at some moment.
    async fn all_handled(&self, workers: &[Program]) -> Result<(), Error> {
        let generations = async || -> Result<BTreeMap<String, i64>, String> {
            let all = self.deployments.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            Ok(all.items.iter().filter_map(|one| Some((one.uid()?, one.metadata.generation?))).collect())
        };
        let last = generations().await?;
        let handled = eventually("the last generation of each object is handled", async || {
            let attempts = self.attempts().await.map_err(|error| error.to_string())?;
            let is_handled = |(uid, generation): &(&String, &i64)| {
                attempts.iter().any(|attempt| attempt.uid == **uid && attempt.generation >= **generation)
            };
            match last.iter().find(|object| !is_handled(object)) {
                None => Ok(()),
                Some(missing) => Err(format!("{missing:?}")),
            }
        });
        let Err(error) = handled.await else { return Ok(()) };
        let said = workers.last().map(Program::last_lines);
        let said = match said {
            Some(said) => said.await,
            None => String::new(),
        };
        Err(format!("{error}\n{said}").into())
    }

    /// What the workers wrote, in the order of the server.
    async fn attempts(&self) -> Result<Vec<Attempt>, Error> {
        let listed = self.maps.list_metadata(&ListParams::default().labels("uid")).await?.items;
        let mut attempts: Vec<(Option<u64>, Attempt)> = Vec::new();
        for map in listed {
            let label = |name: &str| map.labels().get(name).cloned().unwrap_or_default();
            let attempt = Attempt {
                member: label("member"),
                uid: label("uid"),
                generation: label("generation").parse()?,
                epoch: label("epoch").parse()?,
                range: label("range"),
            };
            attempts.push((Version::of(&map).and_then(|version| version.number()), attempt));
        }
        attempts.sort_by_key(|(version, _)| *version);
        Ok(attempts.into_iter().map(|(_, attempt)| attempt).collect())
    }

    /// Fails if tenures overlap.
    async fn judge(&self) -> Result<String, Error> {
        let attempts = self.attempts().await?;
        let (mut epochs, mut owners) = (BTreeMap::<&str, u64>::new(), BTreeMap::<(&str, u64), &str>::new());
        for attempt in &attempts {
            let last = epochs.entry(&attempt.uid).or_default();
            if attempt.epoch < *last {
                return Err(format!("written after epoch {last} of the same uid: {attempt:?}").into());
            }
            *last = attempt.epoch;
            let owner = owners.entry((&attempt.range, attempt.epoch)).or_insert(&attempt.member);
            if *owner != attempt.member {
                return Err(format!("also written by {owner} in the same epoch: {attempt:?}").into());
            }
        }
        let members: BTreeSet<&str> = attempts.iter().map(|attempt| &*attempt.member).collect();
        Ok(format!("{} writes by {} members in {} tenures", attempts.len(), members.len(), owners.len()))
    }
}

/// An object that a worker has written.
#[derive(Debug)]
struct Attempt {
    member: String,
    uid: String,
    generation: i64,
    range: String,
    epoch: u64,
}
