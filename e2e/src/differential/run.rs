//! The execution of a scenario.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use tokio::fs;

use super::comparison::{self, Resync, Terms, Trial, Window};
use super::driver::Driver;
use super::ours::Ours;
use super::outcome::Outcome;
use super::scenario::{Faults, Scenario};
use super::scene::Scene;
use super::server::{Endpoint, Server};
use super::theirs::Theirs;
use super::transcript::State;
use crate::Error;
use crate::link::{Link, Mode};

/// Writes per window.
const WRITES: u32 = 40;

/// The inputs of all scenarios.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) endpoint: Endpoint,
    /// The path of client-go's informer program.
    pub(crate) program: PathBuf,
    /// The folder for transcripts.
    pub(crate) folder: PathBuf,
}

/// Both informers, each with its own link to the server.
struct Run<'a> {
    scene: &'a Scene,
    driver: Driver,
    ours: Ours,
    theirs: Theirs,
    /// Random numbers for faults only, because the number of writes depends on timing.
    rng: Pcg64Mcg,
    windows: Vec<Window>,
    last_barrier: Option<State>,
}

/// How a connection breaks.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Cut once.
    Cut,
    /// Cut in the middle of a transfer.
    CutMidway,
    /// Cut once, and again after the reconnect.
    CutTwice,
    /// Cut, and new connections are refused for some time.
    Refused,
    /// Cut, and new connections are closed at once for some time.
    Slammed,
    /// Stalled for some time.
    Stalled,
}

/// Runs a scenario and compares the transcripts. Some scenarios need exclusive use of the server.
pub(crate) async fn run(
    setup: &Setup,
    scenario: &Scenario,
    seed: u64,
    server: Option<&mut Server<'_>>,
) -> Result<Outcome, Error> {
    let began = Instant::now();
    let folder = setup.folder.join(scenario.slug());
    fs::create_dir_all(&folder).await?;
    let with_name = |error: Error| format!("{}: {error}\n  see {}", scenario.name, folder.display());
    let scene = Scene::open(scenario.name, setup.endpoint.address().await?, &folder).await?;
    let played = async {
        let mut run = Run::begin(setup, scenario, seed, &folder, &scene).await?;
        run.play(scenario, server).await?;
        let agreement = run.verdict(scenario).await?;
        scene.doing("stopping both informers");
        let Run { driver, ours, theirs, .. } = run;
        theirs.stop().await?;
        ours.stop().await;
        scene.doing("cleaning up");
        driver.clean_up().await;
        Ok((agreement, driver.writes))
    };
    let (agreement, writes) = Box::pin(scene.watch_over(played)).await.map_err(with_name)?;
    let cuts = [scene.links[0].cuts(), scene.links[1].cuts()];
    Ok(Outcome { scenario: scenario.name, writes, cuts, agreement, took: began.elapsed() })
}

impl<'a> Run<'a> {
    /// Starts both informers while objects are being written.
    async fn begin(
        setup: &Setup,
        scenario: &Scenario,
        seed: u64,
        folder: &Path,
        scene: &'a Scene,
    ) -> Result<Self, Error> {
        scene.doing("preparing");
        let keys = format!("e2e-{}-{:x}", scenario.slug(), std::process::id());
        let mut driver = Driver::prepare(setup.endpoint.client().await?, scenario, &keys, seed).await?;
        driver.write(WRITES).await?;
        let namespace = driver.namespace();
        let [our_link, their_link] = &scene.links;
        let [our_recorder, their_recorder] = scene.recorders.clone();
        let config = setup.endpoint.through(our_link.address())?.config().await?;
        let kubeconfig = setup.endpoint.through(their_link.address())?.write(folder).await?;
        let theirs = Theirs::start(&setup.program, &kubeconfig, scenario, &namespace, their_recorder)?;
        let ours = Ours::start(config, scenario, &namespace, our_recorder)?;
        let rng = Pcg64Mcg::seed_from_u64(!seed);
        let mut run = Self { scene, driver, ours, theirs, rng, windows: Vec::new(), last_barrier: None };
        scene.doing("writing while both begin");
        for _ in 0..5 * WRITES {
            if run.ours.recorder.has_synced() && run.theirs.recorder.has_synced() {
                break;
            }
            run.driver.write(1).await?;
        }
        for recorder in &scene.recorders {
            scene.doing(format!("waiting until {} has synced", recorder.name()));
            recorder.synced().await?;
        }
        run.connected().await?;
        Ok(run)
    }

    async fn play(&mut self, scenario: &Scenario, server: Option<&mut Server<'_>>) -> Result<(), Error> {
        match (scenario.faults, server) {
            (Faults::None, _) => {
                for _ in 0..5 {
                    self.connected().await?;
                }
            }
            (Faults::Cuts, _) => {
                for fault in self.faults() {
                    self.fault(fault).await?;
                    self.connected().await?;
                }
            }
            (Faults::LostHistory, Some(server)) => {
                self.lost_history(server).await?;
                self.connected().await?;
            }
            (Faults::LostHistory, None) => return Err("this one needs the server for itself".into()),
        }
        Ok(())
    }

    /// Writes while both are connected.
    async fn connected(&mut self) -> Result<(), Error> {
        self.scene.doing("writing while both are connected");
        self.driver.write(WRITES).await?;
        self.barrier(Terms::Connected).await
    }

    /// Writes while the connections of one or both break.
    async fn fault(&mut self, fault: Fault) -> Result<(), Error> {
        self.scene.doing(format!("writing while connections break ({fault:?})"));
        let before = self.rng.random_range(0..WRITES);
        self.driver.write(before).await?;
        let chance = self.rng.random_range(0..6000);
        let links = match self.rng.random_range(0..3) {
            0 => &self.scene.links[..1],
            1 => &self.scene.links[1..],
            _ => &self.scene.links[..],
        };
        let each = |act: &dyn Fn(&Link)| links.iter().for_each(act);
        match fault {
            Fault::Cut => {
                each(&Link::cut);
                self.driver.write(WRITES).await?;
            }
            Fault::CutMidway => {
                let cuts = counts(links, Link::cuts);
                each(&|link| link.cut_after(chance));
                for _ in 0..3 * WRITES {
                    if all_above(links, Link::cuts, &cuts) {
                        break;
                    }
                    self.driver.write(1).await?;
                }
            }
            Fault::CutTwice => {
                let accepted = counts(links, Link::accepted);
                each(&Link::cut);
                self.scene.doing("waiting until the disconnected informers connect again");
                until_above(links, Link::accepted, &accepted).await;
                match chance % 3 {
                    // A watch without events.
                    0 | 1 => until_quiet(links).await,
                    _ => self.driver.write(2).await?,
                }
                each(&Link::cut);
                self.driver.write(WRITES).await?;
            }
            Fault::Refused => {
                each(&|link| link.set(Mode::Refuse));
                each(&Link::cut);
                self.driver.write(WRITES).await?;
            }
            Fault::Slammed => {
                let accepted = counts(links, Link::accepted);
                each(&|link| link.set(Mode::Slam));
                each(&Link::cut);
                self.driver.write(WRITES).await?;
                self.scene.doing("waiting until the disconnected informers connect again");
                until_above(links, Link::accepted, &accepted).await;
                self.driver.write(WRITES).await?;
            }
            Fault::Stalled => {
                each(&|link| link.set(Mode::Stall));
                self.driver.write(WRITES).await?;
                if chance.is_multiple_of(2) {
                    each(&Link::cut);
                }
            }
        }
        each(&Link::heal);
        self.barrier(Terms::Cut).await
    }

    /// Writes while neither is connected, and makes the server lose the history that they would
    /// need to continue.
    async fn lost_history(&mut self, server: &mut Server<'_>) -> Result<(), Error> {
        self.scene.doing("writing while neither is connected");
        for link in &self.scene.links {
            link.set(Mode::Refuse);
            link.cut();
        }
        self.driver.write(WRITES).await?;
        self.scene.doing("compacting the history of the server");
        server.lose_history().await?;
        self.driver.served().await?;
        self.scene.doing("writing while neither is connected, after the compaction");
        self.driver.write(WRITES).await?;
        self.scene.links.iter().for_each(Link::heal);
        self.barrier(Terms::Cut).await
    }

    /// Ends a window: waits until both have received everything before.
    async fn barrier(&mut self, terms: Terms) -> Result<(), Error> {
        let barrier = self.driver.barrier().await?;
        for recorder in &self.scene.recorders {
            let State { key, version, .. } = &barrier;
            self.scene.doing(format!("waiting until {} receives {key} at {version}", recorder.name()));
            recorder.received(&barrier).await?;
        }
        self.windows.push(Window { end: barrier.version, terms });
        self.last_barrier = Some(barrier);
        Ok(())
    }

    /// Compares what both have reported.
    async fn verdict(&mut self, scenario: &Scenario) -> Result<comparison::Agreement, Error> {
        let [ours, theirs] = &self.scene.recorders;
        let resync = if scenario.resync.is_some() { Resync::On } else { Resync::Off };
        if let (Resync::On, Some(last)) = (resync, &self.last_barrier) {
            for recorder in [ours, theirs] {
                self.scene.doing(format!("waiting until {} has resynced all objects", recorder.name()));
                // After the second resync of this object, the first resync is complete.
                recorder.resynced(last, 2).await?;
            }
        }
        self.scene.doing("reading both caches");
        self.ours.print_cache()?;
        self.theirs.print_cache().await?;
        let keys = self.driver.keys();
        let trial = Trial {
            ours: ours.transcript(keys, &ours.cache().await?),
            theirs: theirs.transcript(keys, &theirs.cache().await?),
            windows: self.windows.clone(),
            written: self.driver.written.clone(),
            listed: self.driver.list().await?,
            resync,
        };
        comparison::compare(&trial).map_err(|differences| differences.to_string().into())
    }

    /// Each fault once, in random order.
    fn faults(&mut self) -> Vec<Fault> {
        use Fault::{Cut, CutMidway, CutTwice, Refused, Slammed, Stalled};
        let mut left = vec![Cut, CutMidway, CutTwice, Refused, Slammed, Stalled];
        let mut faults = Vec::new();
        while !left.is_empty() {
            faults.push(left.swap_remove(self.rng.random_range(0..left.len())));
        }
        faults
    }
}

fn counts(links: &[Link], count: fn(&Link) -> usize) -> Vec<usize> {
    links.iter().map(count).collect()
}

fn all_above(links: &[Link], count: fn(&Link) -> usize, before: &[usize]) -> bool {
    links.iter().zip(before).all(|(link, before)| count(link) > *before)
}

/// Waits until no more bytes arrive from the server.
async fn until_quiet(links: &[Link]) {
    loop {
        let passed = counts(links, Link::passed);
        tokio::time::sleep(Duration::from_millis(50)).await;
        if counts(links, Link::passed) == passed {
            return;
        }
    }
}

async fn until_above(links: &[Link], count: fn(&Link) -> usize, before: &[usize]) {
    while !all_above(links, count, before) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
