//! A simulated cluster: nodes renew their leases, deployments are scaled and rolled out, pods are
//! created, fail and terminate.
//!
//! A [`Pretend`] fills a [`Server`] with the [generator's](crate::generate) objects and then
//! updates them as the scheduler, the controllers and the kubelets of a real cluster would, events
//! included. The seed determines what happens, tokio's clock when it happens. Uses `generate`,
//! `api` and `storage`; must not use `faults` or `controllers`.
//!
//! Clients may write too, and the simulation reconciles their objects: deployments get replica
//! sets, which get pods, pods get nodes and addresses and run, services get endpoint slices.
//! Deployments that a client scales, rolls out, undoes, pauses or deletes are reconciled, pods that
//! it deletes terminate and are replaced, nodes that it cordons get no more pods. Pods that must
//! not be restarted succeed after some time. There are no other controllers: jobs, stateful sets
//! and daemon sets stay as written.
//!
//! ```
//! use kube_embedded::Server;
//! use kube_embedded::pretend::{Pretend, Size};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().in_process().start().await?;
//! let cluster = Pretend::builder().size(Size { nodes: 3, pods: 40 }).rate(50.0).seed(7).start(&server).await?;
//! assert_eq!(server.objects("v1", "Pod")?.len(), 40);
//!
//! let before = server.revision();
//! tokio::time::sleep(std::time::Duration::from_secs(2)).await;
//! assert!(server.revision() > before);
//!
//! cluster.stop().await;
//! # Ok(())
//! # }
//! ```

mod agenda;
mod controllers;
mod deployment;
mod events;
mod fleet;
mod kubelet;
mod reconciler;
#[cfg(test)]
mod tests;
mod times;
mod world;
mod write;
mod write_detector;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::cluster::Cluster;
use crate::generate::layout::NOW;
use crate::http::status::Status;
use crate::server::Server;
use reconciler::Reconciler;
use world::World;
use write::{Author, Verb, Write};
use write_detector::WriteDetector;

/// The interval between steps of the simulation.
const TICK: Duration = Duration::from_millis(50);
/// The number of objects written before the task yields.
const WRITES_PER_YIELD: usize = 32;

/// The size of a simulated cluster. All pods belong to deployments, of which there are as many as
/// the pods need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The number of nodes, at least one.
    pub nodes: u64,
    /// The initial number of pods. The number fluctuates around it.
    pub pods: u64,
}

impl Size {
    /// This many nodes with thirty pods each, as in large clusters.
    #[must_use]
    pub fn of_nodes(nodes: u64) -> Self {
        Self { nodes, pods: nodes * 30 }
    }
}

/// A simulation that runs on a server until it is stopped or dropped. See the [module](self).
#[derive(Debug)]
#[must_use = "the cluster stands still once this is dropped"]
pub struct Pretend {
    task: JoinHandle<()>,
    writes: Arc<AtomicU64>,
}

/// The configuration of a [`Pretend`] before it starts.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing lives until it is started"]
pub struct PretendBuilder {
    seed: u64,
    size: Size,
    rate: f64,
}

impl Pretend {
    /// Returns a builder with the defaults: 20 nodes, 600 pods and 20 writes per second.
    pub fn builder() -> PretendBuilder {
        PretendBuilder { seed: 1, size: Size::of_nodes(20), rate: 20.0 }
    }

    /// The number of writes since the start, without the initial objects.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Stops the simulation. Its objects stay.
    pub async fn stop(mut self) {
        self.task.abort();
        drop((&mut self.task).await);
    }
}

impl Drop for Pretend {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PretendBuilder {
    /// Sets the size of the cluster.
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// Sets the number of writes per second, not counting lease renewals.
    pub fn rate(mut self, writes_per_second: f64) -> Self {
        self.rate = writes_per_second;
        self
    }

    /// Sets the seed of all random choices.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Creates the initial objects on a server, which should be empty, and starts the simulation.
    ///
    /// # Errors
    ///
    /// If the server rejects one of the initial objects, for example because it already exists.
    pub async fn start(self, server: &Server) -> Result<Pretend, Status> {
        let cluster = server.cluster().clone();
        let shift = cluster.clock.now().as_second() - NOW;
        let mut world = World::new(self.seed, self.size, self.rate);
        let mut reconciler = Reconciler::new(self.seed);
        reconciler.take_over(&cluster);
        let mut turn = 0;
        for object in world.populate().flatten() {
            match Write::new(Verb::Load(object)).apply(&cluster, shift) {
                // The namespaces that every server has from the start.
                Err(status) if status.code() == 409 && turn < NAMESPACES => {}
                other => drop(other?),
            }
            turn += 1;
            if turn % WRITES_PER_YIELD == 0 {
                tokio::task::yield_now().await;
            }
        }
        // The simulation starts now: it does not catch up on the time that creating the objects
        // took.
        let start = Start { began: Instant::now(), shift: cluster.clock.now().as_second() - NOW };
        let writes = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(live(world, reconciler, cluster, start, writes.clone()));
        Ok(Pretend { task, writes })
    }
}

/// An upper bound for the number of namespaces.
const NAMESPACES: usize = 400;

/// When the simulation started on tokio's clock, and the offset of the server's time from the
/// generator's.
#[derive(Debug, Clone, Copy)]
struct Start {
    began: Instant,
    shift: i64,
}

async fn live(
    mut world: World,
    mut reconciler: Reconciler,
    cluster: Arc<Cluster>,
    start: Start,
    count: Arc<AtomicU64>,
) {
    let Start { began, shift } = start;
    let mut write_detector = WriteDetector::new(&cluster);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await.duration_since(began);
        if let Some(write_detector) = &mut write_detector {
            write_detector.look(&cluster, &mut world, &mut reconciler);
        }
        let mut writes = world.step(now);
        writes.extend(reconciler.step(&cluster, &mut world));
        for (nth, write) in writes.into_iter().enumerate() {
            let (pod, doomed) = (write.pod, write.doomed().cloned());
            if let (Some(write_detector), Some(doomed)) = (&mut write_detector, &doomed) {
                write_detector.dies(doomed.clone());
            }
            let author = write.author;
            match write.apply(&cluster, shift) {
                Ok(revision) => {
                    count.fetch_add(1, Ordering::Relaxed);
                    if let (Author::Simulation, Some(write_detector)) = (author, &mut write_detector) {
                        write_detector.note_revision(revision);
                    }
                }
                // Another client deleted it: its controller creates a replacement.
                Err(_) => {
                    if let (Some(write_detector), Some(doomed)) = (&mut write_detector, &doomed) {
                        write_detector.lives(doomed);
                    }
                    pod.into_iter().for_each(|pod| world.lost(pod));
                }
            }
            if nth % WRITES_PER_YIELD == WRITES_PER_YIELD - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
}
