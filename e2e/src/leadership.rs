//! Leader election between processes that are stopped (SIGSTOP), killed and terminated, and without
//! a server: the writes of two leaders never mix.
//!
//! Each worker creates objects all the time while it leads. The order in which the server has
//! executed the writes is that of the versions of these objects: as soon as one worker has written,
//! no other one does that led before.

mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube_informer::Version;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) use self::worker::run as run_worker;
use crate::Error;
use crate::control_plane::ControlPlane;
use crate::informer::{Playground, eventually};
use crate::program::Program;

/// The argument that makes this program a worker.
pub(crate) const WORKER: &str = "leadership-worker";

/// The workers that take over from a leader that is stopped past the end of its lease.
const SUCCESSORS: [&str; 4] = ["worker-1", "worker-2", "worker-3", "worker-4"];
/// What a leader has to write before something happens to it.
const ENOUGH: usize = 100;

/// Runs workers and does everything to them. Returns a summary.
pub(crate) async fn run(control_plane: &mut ControlPlane) -> Result<String, Error> {
    let playground = Playground::new(control_plane.target())?;
    let stage = Stage {
        maps: Api::namespaced(playground.client.clone(), &playground.namespace("leadership").await?),
        folder: TempDir::with_prefix("kube-e2e-leadership-")?,
    };
    let kubeconfig = control_plane.kubeconfig();
    let start = |name| stage.start(&kubeconfig, name);

    let mut leader = start("worker-0")?;
    leader.writes(&stage).await?;
    for name in SUCCESSORS {
        let next = start(name)?;
        next.is_ready_and_follows().await?;
        leader.writes(&stage).await?;
        leader.program.signal("STOP").await?;
        next.writes(&stage).await?;
        // It goes on with what it was doing, and sends nothing of it.
        leader.program.signal("CONT").await?;
        leader.ends(1, "is lost").await?;
        leader = next;
    }

    // Killed: the lease expires.
    let mut next = start("killed-successor")?;
    next.is_ready_and_follows().await?;
    leader.program.kill().await?;
    next.writes(&stage).await?;

    // Terminated: the lease is released.
    leader = next;
    next = start("released-successor")?;
    next.is_ready_and_follows().await?;
    leader.program.signal("TERM").await?;
    leader.ends(0, "leadership released").await?;
    next.writes(&stage).await?;

    // Without a server, a leader ends and others wait.
    leader = next;
    next = start("outage-successor")?;
    next.is_ready_and_follows().await?;
    control_plane.apiserver.kill().await?;
    leader.ends(1, "is lost").await?;
    control_plane.apiserver.start()?;
    control_plane.ready().await?;
    next.writes(&stage).await?;
    next.program.signal("TERM").await?;
    next.ends(0, "leadership released").await?;

    let terms = stage.terms().await?;
    let writes: usize = terms.iter().map(|(_, writes)| writes).sum();
    let (terms, stopped) = (terms.len(), SUCCESSORS.len());
    Ok(format!("{writes} writes in {terms} terms: {stopped} leaders stopped, one killed, one terminated, one outage"))
}

/// What the workers write.
struct Stage {
    maps: Api<ConfigMap>,
    folder: TempDir,
}

struct Worker {
    name: &'static str,
    program: Program,
}

impl Stage {
    fn start(&self, kubeconfig: &Path, name: &'static str) -> Result<Worker, Error> {
        let namespace = self.maps.namespace().unwrap_or_default().to_owned();
        let arguments = vec![WORKER.to_owned(), kubeconfig.display().to_string(), namespace, name.to_owned()];
        let mut program = Program::new(name, std::env::current_exe()?, self.folder.path(), arguments);
        program.start()?;
        Ok(Worker { name, program })
    }

    /// The workers in the order of their writes, with the number of writes. Fails if they mix.
    async fn terms(&self) -> Result<Vec<(String, usize)>, Error> {
        let mut maps = self.maps.list_metadata(&ListParams::default()).await?.items;
        maps.retain(|map| map.metadata.labels.is_some());
        maps.sort_by_key(|map| Version::of(map).and_then(|version| version.number()));
        let mut terms: Vec<(String, usize)> = Vec::new();
        for map in maps {
            let writer = map.metadata.labels.and_then(|labels| labels.get("writer").cloned()).unwrap_or_default();
            match terms.iter().position(|(name, _)| *name == writer) {
                None => terms.push((writer, 1)),
                Some(nth) if nth + 1 == terms.len() => terms[nth].1 += 1,
                Some(_) => {
                    let late = map.metadata.name.unwrap_or_default();
                    return Err(format!("two writers: {late} was created after another leader's: {terms:?}").into());
                }
            }
        }
        Ok(terms)
    }
}

impl Worker {
    /// Waits until it has written enough more.
    async fn writes(&self, stage: &Stage) -> Result<(), Error> {
        let count = async || -> Result<usize, String> {
            let terms = stage.terms().await.map_err(|error| error.to_string())?;
            Ok(terms.iter().find(|(name, _)| name == self.name).map_or(0, |(_, writes)| *writes))
        };
        let before = count().await?;
        let what = format!("{} writes", self.name);
        let wrote = eventually(&what, async || match count().await? {
            writes if writes >= before + ENOUGH => Ok(()),
            writes => Err(format!("{} of {ENOUGH}", writes - before)),
        });
        match wrote.await {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("{error}\n{}", self.program.last_lines().await).into()),
        }
    }

    /// Waits until its caches are full, while another one leads.
    async fn is_ready_and_follows(&self) -> Result<(), Error> {
        let answers = async |path: &str| -> Result<String, String> {
            let said = self.program.said().await;
            let address = said.lines().find_map(|line| line.strip_prefix("serving ")).ok_or("it does not serve")?;
            get(address.parse().map_err(|_| "no address")?, path).await.map_err(|error| error.to_string())
        };
        eventually(&format!("{} is ready", self.name), async || {
            let ready = answers("/readyz").await?;
            if !ready.starts_with("HTTP/1.1 200") {
                return Err(ready);
            }
            let metrics = answers("/metrics").await?;
            let follows = "leader_election_master_status{name=\"workers\"} 0";
            if metrics.contains(follows) { Ok(()) } else { Err(metrics) }
        })
        .await
    }

    /// Waits until it has ended by itself.
    async fn ends(&mut self, code: i32, saying: &str) -> Result<(), Error> {
        let name = self.name;
        let ended = async || match self.program.ended() {
            Ok(Some(status)) => Ok(status),
            other => Err(format!("{other:?}")),
        };
        let status: ExitStatus = eventually(&format!("{name} ends"), ended).await?;
        let said = self.program.said().await;
        if status.code() != Some(code) || !said.contains(saying) {
            return Err(format!("{name} ended with {status} instead of {code}:\n{said}").into());
        }
        Ok(())
    }
}

async fn get(address: SocketAddr, path: &str) -> Result<String, Error> {
    let request = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok(response)
    };
    tokio::time::timeout(Duration::from_secs(10), request).await?
}
