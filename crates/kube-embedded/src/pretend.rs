//! A cluster that lives: nodes renew their leases, deployments are scaled and rolled out, pods
//! come, fail and go.
//!
//! A [`Pretend`] fills a [`Server`] with the [generator's](crate::generate) objects and then keeps
//! them moving as the scheduler, the controllers and the kubelets of a real cluster would, events
//! included. What happens follows from the seed alone; when it happens, from tokio's clock.
//!
//! Others may write too. What they create is brought to life: deployments get replica sets, those
//! get pods, pods get nodes and addresses and run, services get endpoint slices. Deployments that
//! they scale, roll out, undo, pause or delete follow, pods that they delete end and are replaced,
//! nodes that they cordon get no more pods. Pods that are not to be restarted succeed after a
//! while. There are no other controllers: jobs, stateful sets and daemon sets stay as they were
//! written.
//!
//! ```
//! use kube_embedded::Server;
//! use kube_embedded::pretend::{Pretend, Size};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().in_process().start().await?;
//! let cluster = Pretend::builder().size(Size { nodes: 3, pods: 40 }).rate(50.0).seed(7).start(&server).await?;
//! assert_eq!(server.objects("v1", "Pod")?.count(), 40);
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
mod fleet;
mod kubelet;
mod news;
mod onlooker;
mod steward;
#[cfg(test)]
mod tests;
mod times;
mod world;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::cluster::Cluster;
use crate::generate::layout::NOW;
use crate::http::status::Status;
use crate::server::Server;
use onlooker::Onlooker;
use steward::Steward;
use world::World;
use write::{Author, Verb, Write};

/// How often the cluster moves.
const TICK: Duration = Duration::from_millis(50);
/// So many objects are written before others get their turn.
const TURN: usize = 32;

/// How large a pretended cluster is. Pods are those of deployments: there are as many of them as
/// the pods need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Nodes, at least one.
    pub nodes: u64,
    /// Pods in the beginning. The number wanders about this one.
    pub pods: u64,
}

impl Size {
    /// So many nodes with thirty pods each, as large clusters have.
    #[must_use]
    pub fn of_nodes(nodes: u64) -> Self {
        Self { nodes, pods: nodes * 30 }
    }
}

/// A cluster that lives on a server, until it is stopped or dropped. See the [module](self).
#[derive(Debug)]
#[must_use = "the cluster stands still once this is dropped"]
pub struct Pretend {
    task: JoinHandle<()>,
    writes: Arc<AtomicU64>,
}

/// How a [`Pretend`] is to be.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing lives until it is started"]
pub struct Builder {
    seed: u64,
    size: Size,
    rate: f64,
}

impl Pretend {
    /// A cluster of 20 nodes and 600 pods with 20 writes a second, unless something else is said.
    pub fn builder() -> Builder {
        Builder { seed: 1, size: Size::of_nodes(20), rate: 20.0 }
    }

    /// How many writes it has made since it began to live.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    /// Stops. What was written stays, and nothing more is.
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

impl Builder {
    /// How large it is.
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// How many writes it makes a second, the renewals of leases not counted.
    pub fn rate(mut self, writes_per_second: f64) -> Self {
        self.rate = writes_per_second;
        self
    }

    /// What follows from chance follows from this.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Fills the server, which had better be empty, and lets the cluster live.
    ///
    /// # Errors
    ///
    /// If the server refuses one of the first objects, because it is there already for example.
    pub async fn start(self, server: &Server) -> Result<Pretend, Status> {
        let cluster = server.cluster().clone();
        let shift = cluster.clock.now().as_second() - NOW;
        let mut world = World::new(self.seed, self.size, self.rate);
        let mut steward = Steward::new(self.seed);
        steward.take_over(&cluster);
        let mut turn = 0;
        for object in world.populate().flatten() {
            match Write::new(Verb::Load(object)).apply(&cluster, shift) {
                // The namespaces that every server has.
                Err(status) if status.code() == 409 && turn < NAMESPACES => {}
                other => drop(other?),
            }
            turn += 1;
            if turn % TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        // Making it up may have taken a while, which is not to be lived through all at once.
        let start = Start { began: Instant::now(), shift: cluster.clock.now().as_second() - NOW };
        let writes = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(live(world, steward, cluster, start, writes.clone()));
        Ok(Pretend { task, writes })
    }
}

/// More than there are namespaces.
const NAMESPACES: usize = 400;

/// When it began: on tokio's clock, and how far the generator's time is from the server's.
#[derive(Debug, Clone, Copy)]
struct Start {
    began: Instant,
    shift: i64,
}

async fn live(mut world: World, mut steward: Steward, cluster: Arc<Cluster>, start: Start, count: Arc<AtomicU64>) {
    let Start { began, shift } = start;
    let mut onlooker = Onlooker::new(&cluster);
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ticks.tick().await.duration_since(began);
        if let Some(onlooker) = &mut onlooker {
            onlooker.look(&cluster, &mut world, &mut steward);
        }
        let mut writes = world.step(now);
        writes.extend(steward.step(&cluster, &mut world));
        for (nth, write) in writes.into_iter().enumerate() {
            let (pod, doomed) = (write.pod, write.doomed().cloned());
            if let (Some(onlooker), Some(doomed)) = (&mut onlooker, &doomed) {
                onlooker.dies(doomed.clone());
            }
            let author = write.author;
            match write.apply(&cluster, shift) {
                Ok(revision) => {
                    count.fetch_add(1, Ordering::Relaxed);
                    if let (Author::Story, Some(onlooker)) = (author, &mut onlooker) {
                        onlooker.note_revision(revision);
                    }
                }
                // Somebody else deleted it: its controller makes another one.
                Err(_) => {
                    if let (Some(onlooker), Some(doomed)) = (&mut onlooker, &doomed) {
                        onlooker.lives(doomed);
                    }
                    pod.into_iter().for_each(|pod| world.lost(pod));
                }
            }
            if nth % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
}
