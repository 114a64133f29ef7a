//! Random groups on paused time: never two writers for a range, one at rest, and no member that
//! begins with an older view than the last one had.
//!
//! Two to nine members, whose clocks run at different rates, divide ranges and write for them, on a
//! server that delays and loses requests and responses, stops, and is cut off from members. Members
//! crash, are paused (as by SIGSTOP), and their number changes. A seed decides everything:
//!
//! ```text
//! KUBE_CONTROLLER_SEEDS=10000 cargo test -p kube-controller --test leadership shard_model  # more seeds
//! KUBE_CONTROLLER_SEED=4711 cargo test -p kube-controller --test leadership shard_model    # one seed
//! ```

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::ops::Range;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use kube_controller::Leadership;
use kube_controller::leadership::Clock;
use kube_controller::sharding::{Change, Participant, ShardGroup, Tenure};
use kube_informer::Version;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, service_fn};

use crate::request_plan::RequestPlan;

const SEEDS: u64 = 8;
const RANGES: usize = 8;
const MOST_MEMBERS: usize = 9;
/// How long a run lasts before its faults are removed.
const LENGTH: Duration = Duration::from_secs(300);
/// How likely a request or a response is lost.
const LOSS: f64 = 0.03;
/// How long it may take after that until every range has its owner: leases expire, attempts end.
const RECOVERY: Duration = Duration::from_secs(90);
/// `lease_duration / renew_deadline` is 1.5.
const RATES: Range<f64> = 0.82..1.2;
const RESOURCE: &str = "units";

type Versions = BTreeMap<String, Version>;

#[test]
fn a_range_never_has_two_writers_and_one_at_rest() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    let seeds = match (number("KUBE_CONTROLLER_SEED"), number("KUBE_CONTROLLER_SEEDS")) {
        (Some(seed), _) => {
            // One seed is run to be understood.
            tracing_subscriber::fmt().with_test_writer().try_init().ok();
            seed..seed + 1
        }
        (None, seeds) => 0..seeds.unwrap_or(SEEDS),
    };
    // Each thread takes its share: the seeds are independent.
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let share = |thread| {
            let mine = seeds.clone().filter(move |seed| seed % threads == thread);
            scope.spawn(move || mine.map(|seed| (seed, simulate(seed, RATES))).map(checked).collect::<Vec<_>>())
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a seed that fails is printed above")).collect()
    });
    let total = outcomes.iter().fold(Outcome::default(), |mut total, outcome| {
        total.writes += outcome.writes;
        total.tenures += outcome.tenures;
        total.handoffs += outcome.handoffs;
        total
    });
    let Outcome { writes, tenures, handoffs, .. } = total;
    println!("{writes} writes in {tenures} tenures, {handoffs} of them after a release with versions");
    assert!(writes > 0 && handoffs > 0);
}

fn checked((seed, outcome): (u64, Outcome)) -> Outcome {
    assert!(outcome.violations.is_empty(), "KUBE_CONTROLLER_SEED={seed}: {:#?}", outcome.violations);
    outcome
}

/// The bound is needed, and the test detects what it excludes.
#[test]
fn clocks_beyond_the_documented_bound_let_two_members_write_for_a_range() {
    assert!((0..100).any(|seed| !simulate(seed, 0.4..2.5).violations.is_empty()));
}

#[derive(Default)]
struct Outcome {
    writes: usize,
    tenures: usize,
    handoffs: usize,
    violations: Vec<String>,
}

fn simulate(seed: u64, rates: Range<f64>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let world = World::new(&mut rng);
        let processes = (0..MOST_MEMBERS).map(|number| {
            let mut rng = Pcg64Mcg::seed_from_u64(rng.random());
            let rate = rng.random_range(rates.clone());
            run_process(world.clone(), number, rate, rng)
        });
        let running = futures_util::future::join_all(processes);
        let rescaling = world.rescale(&mut rng);
        tokio::select! {
            _ = running => {}
            () = async {
                rescaling.await;
                sleep_until(world.start + LENGTH + RECOVERY).await;
                world.judge_rest();
            } => {}
        }
        std::mem::take(&mut world.state.lock().unwrap().outcome)
    })
}

/// A process: a member as long as it is wanted, which crashes and is paused.
async fn run_process(world: World, number: usize, rate: f64, mut rng: Pcg64Mcg) {
    let mut wanted = world.wanted.subscribe();
    for life in 0.. {
        wanted.wait_for(|wanted| *wanted > number).await.unwrap();
        let start = Instant::now();
        let clock = Clock::custom(move || start.elapsed().mul_f64(rate));
        let client = world.client(number, rng.random());
        let group = ShardGroup::builder(client.clone(), "default", "group").member(format!("m{number}-{life}"));
        let group = group.ranges(RANGES).clock(clock).seed(rng.random()).drain_deadline(Duration::from_secs(5));
        let group = group.build().unwrap();
        let worker = Worker { world: world.clone(), number, client, lag: rng.random_range(0.0..3.0) };
        let participant = group.participate();
        let mut unwanted = world.wanted.subscribe();
        let running = group.run(async move { drop(unwanted.wait_for(|wanted| *wanted <= number).await) });
        // Not after the end of all faults.
        let crash = Instant::now() + Duration::from_secs_f64(rng.random_range(1.0..250.0));
        let crash = if crash < world.start + LENGTH { crash } else { crash + RECOVERY * 10 };
        let pauses = world.pauses(&mut rng);
        tokio::select! {
            () = paused(running, &pauses) => {}
            () = paused(worker.work(participant, Pcg64Mcg::seed_from_u64(rng.random())), &pauses) => {}
            () = sleep_until(crash) => {}
        }
        world.ends(number);
        if world.has_faults() {
            sleep(Duration::from_secs_f64(rng.random_range(0.0..10.0))).await;
        }
    }
}

/// Runs a future but for the times in which its process is stopped.
async fn paused<T>(future: impl Future<Output = T>, pauses: &[(Instant, Instant)]) -> T {
    let (mut future, mut timer) = (pin!(future), pin!(sleep(Duration::ZERO)));
    poll_fn(|context| {
        let now = Instant::now();
        if let Some((_, until)) = pauses.iter().find(|(from, to)| (*from..*to).contains(&now)) {
            timer.as_mut().reset(*until);
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        future.as_mut().poll(context)
    })
    .await
}

/// What a process does for the ranges that it holds.
struct Worker {
    world: World,
    number: usize,
    client: Client,
    /// How many seconds its cache is behind.
    lag: f64,
}

impl Worker {
    async fn work(&self, mut participant: Participant, mut rng: Pcg64Mcg) {
        let mut running = FuturesUnordered::new();
        let mut stops: HashMap<usize, (u64, watch::Sender<bool>)> = HashMap::new();
        loop {
            let change = tokio::select! {
                change = participant.next() => change,
                Some((tenure, versions)) = running.next(), if !running.is_empty() => {
                    participant.ended(&tenure, versions);
                    continue;
                }
            };
            match change {
                Change::Gained(tenure) => {
                    self.world.gained(self.number, &tenure);
                    let (stop, stopped) = watch::channel(false);
                    stops.insert(index(&tenure), (tenure.epoch(), stop));
                    running.push(self.write(tenure, stopped, Pcg64Mcg::seed_from_u64(rng.random())));
                }
                Change::Draining(tenure) | Change::Lost(tenure) => {
                    if let Some((epoch, stop)) = stops.get(&index(&tenure))
                        && *epoch == tenure.epoch()
                    {
                        stop.send_replace(true);
                    }
                }
                _ => {}
            }
        }
    }

    /// Writes for a range until it is drained or lost. Returns what was seen and written.
    async fn write(
        &self,
        tenure: Tenure,
        mut stopped: watch::Receiver<bool>,
        mut rng: Pcg64Mcg,
    ) -> (Tenure, Option<Versions>) {
        let (range, claimed) = (index(&tenure), Instant::now());
        // A write that runs is cut off now and then: its outcome is unknown.
        let patience = Duration::from_secs_f64(rng.random_range(0.0..8.0));
        let (mut seen, is_stopped) = (Some(0), stopped.clone());
        let writing = async {
            let needed = match tenure.versions() {
                Some(versions) => versions.get(RESOURCE).and_then(Version::number).unwrap_or(0),
                None => self.latest().await,
            };
            while self.world.cached(self.lag) < needed {
                sleep(Duration::from_millis(100)).await;
            }
            seen = Some(needed);
            let writer = tenure.leadership().writer(&self.client);
            let mut is_first = true;
            while !*is_stopped.borrow() {
                let uri = format!("/write/{range}?first={}&cached={}", u8::from(is_first), self.world.cached(self.lag));
                let request = Request::post(uri).header("claimed", self.world.millis(claimed));
                let request = request.header("epoch", tenure.epoch());
                let body = Body::from(b"{}".to_vec());
                let sent = writer.client().send(request.body(body).unwrap()).await;
                let written = match sent {
                    Ok(response) => response.into_body().collect_bytes().await.ok(),
                    Err(_) => None,
                };
                let version = written.and_then(|body| std::str::from_utf8(&body).ok()?.parse::<u64>().ok());
                // An unknown outcome is forgotten only by asking the server.
                seen = seen.zip(version).map(|(seen, version)| seen.max(version));
                is_first = false;
                sleep(Duration::from_secs_f64(rng.random_range(0.3..3.0))).await;
            }
        };
        tokio::select! {
            () = writing => {}
            () = async {
                drop(stopped.wait_for(|stopped| *stopped).await);
                sleep(patience).await;
            } => seen = None,
        }
        (tenure, seen.map(|seen| Versions::from([(RESOURCE.to_owned(), Version::from(seen))])))
    }

    /// The latest version, from the server.
    async fn latest(&self) -> u64 {
        loop {
            let request = Request::get("/version").body(Body::empty()).unwrap();
            let sent = tokio::time::timeout(Duration::from_secs(5), self.client.send(request)).await;
            if let Ok(Ok(response)) = sent
                && let Ok(body) = response.into_body().collect_bytes().await
                && let Some(version) = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok())
            {
                return version;
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
}

fn index(tenure: &Tenure) -> usize {
    usize::try_from((u128::from(tenure.range().start()) * RANGES as u128) >> 64).unwrap()
}

/// The server, and what it judges.
#[derive(Clone)]
struct World {
    start: Instant,
    /// How many processes are to run.
    wanted: watch::Sender<usize>,
    state: Arc<Mutex<State>>,
}

struct State {
    leases: BTreeMap<String, Value>,
    version: u64,
    /// When the server is stopped, and when it is cut off from a process.
    stops: Vec<(Option<usize>, Instant, Instant)>,
    /// For each range the processes that have held it.
    tenures: Vec<HashMap<usize, Leadership>>,
    /// For each range the epoch of the latest tenure.
    epochs: Vec<u64>,
    /// For each range the writes that were executed before the next tenure began: process, version
    /// and time.
    executed: Vec<Vec<(usize, u64, Instant)>>,
    /// All versions of writes, with their times.
    history: Vec<(Instant, u64)>,
    outcome: Outcome,
}

impl World {
    fn new(rng: &mut Pcg64Mcg) -> Self {
        let start = Instant::now();
        let mut stop = |of: Option<usize>| {
            let from = start + LENGTH.mul_f64(rng.random_range(0.0..0.9));
            (of, from, from + Duration::from_secs_f64(rng.random_range(0.5..25.0)))
        };
        let mut stops: Vec<_> = (0..3).map(|_| stop(None)).collect();
        stops.extend((0..MOST_MEMBERS).map(|number| stop(Some(number))));
        let state = State {
            leases: BTreeMap::new(),
            version: 0,
            stops,
            tenures: vec![HashMap::new(); RANGES],
            epochs: vec![0; RANGES],
            executed: vec![Vec::new(); RANGES],
            history: Vec::new(),
            outcome: Outcome::default(),
        };
        let wanted = watch::Sender::new(rng.random_range(2..=MOST_MEMBERS));
        Self { start, wanted, state: Arc::new(Mutex::new(state)) }
    }

    fn has_faults(&self) -> bool {
        Instant::now() < self.start + LENGTH
    }

    /// Changes the number of processes now and then.
    fn rescale(&self, rng: &mut Pcg64Mcg) -> impl Future<Output = ()> + use<> {
        let steps = (0..rng.random_range(1..6))
            .map(|_| (LENGTH.mul_f64(rng.random_range(0.05..1.0)), rng.random_range(2..=MOST_MEMBERS)));
        let mut steps: Vec<_> = steps.collect();
        steps.sort_unstable();
        let (start, wanted) = (self.start, self.wanted.clone());
        async move {
            for (at, count) in steps {
                sleep_until(start + at).await;
                wanted.send_replace(count);
            }
        }
    }

    fn pauses(&self, rng: &mut Pcg64Mcg) -> Vec<(Instant, Instant)> {
        let count = rng.random_range(0..3);
        let pause = |_| {
            let from = Instant::now() + Duration::from_secs_f64(rng.random_range(0.0..200.0));
            (from, from + Duration::from_secs_f64(rng.random_range(0.1..60.0)))
        };
        let end = self.start + LENGTH;
        (0..count).map(pause).filter(|(_, to)| *to < end).collect()
    }

    fn gained(&self, number: usize, tenure: &Tenure) {
        let mut state = self.state.lock().unwrap();
        state.outcome.tenures += 1;
        state.outcome.handoffs +=
            usize::from(tenure.versions().is_some_and(|versions| versions.contains_key(RESOURCE)));
        state.epochs[index(tenure)] = tenure.epoch();
        state.tenures[index(tenure)].insert(number, tenure.leadership().clone());
    }

    /// A process has ended: it writes nothing any more.
    fn ends(&self, number: usize) {
        self.state.lock().unwrap().tenures.iter_mut().for_each(|of| drop(of.remove(&number)));
    }

    /// The version of a cache that is some seconds behind.
    fn cached(&self, lag: f64) -> u64 {
        let state = self.state.lock().unwrap();
        let Some(until) = Instant::now().checked_sub(Duration::from_secs_f64(lag)) else { return 0 };
        let at = state.history.partition_point(|(at, _)| *at <= until);
        if at == 0 { 0 } else { state.history[at - 1].1 }
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from((at - self.start).as_millis()).unwrap()
    }

    fn client(&self, number: usize, seed: u64) -> Client {
        let (world, rng) = (self.clone(), Arc::new(Mutex::new(Pcg64Mcg::seed_from_u64(seed))));
        let service = service_fn(move |request: Request<Body>| {
            let loss = world.has_faults().then_some(LOSS);
            let (world, plan) = (world.clone(), RequestPlan::new(&mut rng.lock().unwrap(), loss));
            async move { world.serve(number, request, plan).await }
        });
        Client::new(service, "default")
    }

    async fn serve(
        &self,
        number: usize,
        request: Request<Body>,
        plan: RequestPlan,
    ) -> Result<Response<Body>, BoxError> {
        // Within the process: a connection is made.
        sleep(plan.connect).await;
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        if parts.uri.path().starts_with("/write/") {
            self.judge(number, &parts);
        }
        // It has left the process: it arrives also if the response is no longer waited for.
        let world = self.clone();
        let (is_lost, arrives) = (plan.is_request_lost, plan.arrives);
        let executed = tokio::spawn(async move {
            sleep(arrives).await;
            world.until_reached(number).await;
            if is_lost {
                return std::future::pending().await;
            }
            world.execute(number, &parts, &body)
        });
        let response = executed.await?;
        if plan.is_response_lost {
            return Err("the connection was cut".into());
        }
        sleep(plan.returns).await;
        Ok(response)
    }

    /// A write leaves a process: no other one may send one for this range now.
    fn judge(&self, number: usize, parts: &http::request::Parts) {
        let mut state = self.state.lock().unwrap();
        let (range, query) = (range(parts), parts.uri.query().unwrap_or_default());
        state.outcome.writes += 1;
        let now = Instant::now() - self.start;
        let others = state.tenures[range].iter().filter(|(other, held)| **other != number && held.check().is_ok());
        let others: Vec<usize> = others.map(|(other, _)| *other).collect();
        if !others.is_empty() {
            state.outcome.violations.push(format!("after {now:?} {number} writes for {range} while {others:?} may"));
        }
        let value =
            |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.parse::<u64>().ok()).unwrap();
        if value("first=") == 1 {
            let claimed: u64 = parts.headers["claimed"].to_str().unwrap().parse().unwrap();
            let before = state.executed[range].iter().rev();
            let before = before.filter(|(other, _, at)| *other != number && self.millis(*at) < claimed);
            let newest = before.map(|(_, version, _)| *version).max().unwrap_or(0);
            let cached = value("cached=");
            if cached < newest {
                let text = format!("after {now:?} {number} begins with {range} at {cached}, which was at {newest}");
                state.outcome.violations.push(text);
            }
        }
    }

    /// At rest every range has exactly one owner, which has written.
    fn judge_rest(&self) {
        let mut state = self.state.lock().unwrap();
        for range in 0..RANGES {
            let owners =
                state.tenures[range].iter().filter(|(_, held)| held.check().is_ok()).map(|(number, _)| *number);
            let owners: Vec<usize> = owners.collect();
            let last = state.executed[range].last().map(|(number, _, at)| (*number, at.elapsed()));
            let is_written = last.is_some_and(|(number, ago)| [number] == *owners && ago < Duration::from_secs(10));
            if !is_written {
                state.outcome.violations.push(format!("at rest {owners:?} own {range}, last written by {last:?}"));
            }
        }
    }

    async fn until_reached(&self, number: usize) {
        loop {
            let until = {
                let (state, now) = (self.state.lock().unwrap(), Instant::now());
                let concerns = |of: &Option<usize>| of.is_none_or(|of| of == number);
                let stops = state.stops.iter().filter(|(of, from, to)| concerns(of) && (*from..*to).contains(&now));
                stops.map(|(_, _, to)| *to).max()
            };
            let Some(until) = until else { return };
            sleep_until(until).await;
        }
    }

    fn execute(&self, number: usize, parts: &http::request::Parts, body: &[u8]) -> Response<Body> {
        let mut state = self.state.lock().unwrap();
        let path = parts.uri.path();
        if path == "/version" {
            return response(200, state.history.last().map_or(0, |(_, version)| *version).to_string());
        }
        if path.starts_with("/write/") {
            state.version += 1;
            let (range, version, now) = (range(parts), state.version, Instant::now());
            // A request of an earlier tenure that something between has held back is what remains.
            if parts.headers["epoch"] == state.epochs[range].to_string() {
                state.executed[range].push((number, version, now));
            }
            state.history.push((now, version));
            return response(200, version.to_string());
        }
        let name = path.rsplit_once("/leases").map(|(_, name)| name.trim_start_matches('/')).unwrap().to_owned();
        state.execute_lease(&parts.method, name, body)
    }
}

impl State {
    /// Leases as the server keeps them.
    fn execute_lease(&mut self, method: &Method, name: String, body: &[u8]) -> Response<Body> {
        let mut sent: Value = serde_json::from_slice(body).unwrap_or_default();
        if name.is_empty() && *method == Method::GET {
            let items: Vec<&Value> = self.leases.values().collect();
            let list =
                json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": items});
            return response(200, list.to_string());
        }
        let name = if name.is_empty() { sent["metadata"]["name"].as_str().unwrap().to_owned() } else { name };
        let known = self.leases.get(&name);
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        let refusal = match (method, known) {
            (&Method::POST, Some(_)) => Some(409),
            (&Method::POST, None) => None,
            (_, None) => Some(404),
            (&Method::PUT, Some(lease)) if version(&sent) != version(lease) => Some(409),
            (&Method::DELETE, Some(lease)) => {
                let named = &sent["preconditions"]["resourceVersion"];
                (!named.is_null() && *named != version(lease)).then_some(409)
            }
            _ => None,
        };
        if let Some(code) = refusal {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "", "code": code});
            return response(code, status.to_string());
        }
        if *method == Method::GET || *method == Method::DELETE {
            let lease = known.map(ToString::to_string).unwrap();
            if *method == Method::DELETE {
                self.leases.remove(&name);
            }
            return response(200, lease);
        }
        self.version += 1;
        sent["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.leases.insert(name, sent.clone());
        response(200, sent.to_string())
    }
}

fn range(parts: &http::request::Parts) -> usize {
    parts.uri.path().rsplit_once('/').unwrap().1.parse().unwrap()
}

fn response(code: u16, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
