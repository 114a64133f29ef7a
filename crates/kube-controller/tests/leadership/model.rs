//! Random elections on paused time: never two writers.
//!
//! Two to five candidates, whose clocks run at different rates, elect a leader that writes, on a
//! server that delays and loses requests and responses, and stops. Candidates crash,
//! release and return. A seed decides everything:
//!
//! ```text
//! KUBE_CONTROLLER_SEEDS=10000 cargo test -p kube-controller --test leadership model      # more seeds
//! KUBE_CONTROLLER_SEED=4711 cargo test -p kube-controller --test leadership model        # one seed
//! ```
//!
//! Whenever a write leaves a process, no other process may send one. At the end all faults are
//! removed; then someone leads.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use kube_controller::Leadership;
use kube_controller::leadership::{Clock, LeaderElection};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, service_fn};

use crate::request_plan::RequestPlan;

const SEEDS: u64 = 40;
/// How long a run lasts before its faults are removed.
const LENGTH: Duration = Duration::from_secs(400);
/// How likely a request or a response is lost.
const LOSS: f64 = 0.05;
/// How long the election of a leader may take after that: a lease that was acquired last, and an
/// attempt.
const RECOVERY: Duration = Duration::from_secs(60);
/// `lease_duration / renew_deadline` is 1.5.
const RATES: Range<f64> = 0.82..1.2;

#[test]
fn there_are_never_two_writers() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    let seeds = match (number("KUBE_CONTROLLER_SEED"), number("KUBE_CONTROLLER_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(SEEDS),
    };
    let (mut writes, mut terms, mut losses) = (0, 0, 0);
    for seed in seeds {
        let outcome = simulate(seed, RATES);
        assert!(outcome.violations.is_empty(), "seed {seed}: KUBE_CONTROLLER_SEED={seed}: {:#?}", outcome.violations);
        assert!(outcome.has_recovered, "seed {seed}: KUBE_CONTROLLER_SEED={seed}: nobody leads");
        (writes, terms, losses) = (writes + outcome.writes, terms + outcome.terms, losses + outcome.losses);
    }
    println!("{writes} writes in {terms} terms, {losses} of which were lost");
    assert!(writes > 0 && losses > 0);
}

/// The bound is needed, and the test detects what it excludes.
#[test]
fn clocks_beyond_the_documented_bound_are_detected() {
    assert!((0..100).any(|seed| !simulate(seed, 0.5..2.0).violations.is_empty()));
}

#[derive(Default)]
struct Outcome {
    writes: usize,
    terms: usize,
    losses: usize,
    violations: Vec<String>,
    has_recovered: bool,
}

fn simulate(seed: u64, rates: Range<f64>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let count = rng.random_range(2..=5);
        let world = World::new(&mut rng, count);
        let candidates = (0..count).map(|number| {
            let mut rng = Pcg64Mcg::seed_from_u64(rng.random());
            let rate = rng.random_range(rates.clone());
            run_candidate(world.clone(), number, rate, rng)
        });
        let candidates = futures_util::future::join_all(candidates);
        tokio::select! {
            _ = candidates => {}
            () = sleep(LENGTH) => {}
        }
        // Faults have ended at LENGTH; what runs now are new processes, and old requests.
        world.0.lock().unwrap().outcome.writes = 0;
        let candidates = futures_util::future::join_all((0..count).map(|number| {
            let rng = Pcg64Mcg::seed_from_u64(rng.random());
            run_candidate(world.clone(), number, 1.0, rng)
        }));
        tokio::select! {
            _ = candidates => {}
            () = sleep(RECOVERY) => {}
        }
        let mut state = world.0.lock().unwrap();
        state.outcome.has_recovered = state.outcome.writes > 0;
        std::mem::take(&mut state.outcome)
    })
}

/// A process: elects itself, writes while it leads, and ends its terms in one of several ways.
async fn run_candidate(world: World, number: usize, rate: f64, mut rng: Pcg64Mcg) {
    let mut life = 0;
    loop {
        life += 1;
        let start = Instant::now();
        let clock = Clock::custom(move || start.elapsed().mul_f64(rate));
        let client = world.client(number, rng.random());
        let builder = LeaderElection::builder(client.clone(), "default", "lease");
        let mut election =
            builder.identity(format!("{number}-{life}")).clock(clock).seed(rng.random()).build().unwrap();
        // Some processes crash while they wait, too.
        let crash = if world.has_faults() { rng.random_range(1.0..300.0) } else { 1e6 };
        let crash = Instant::now() + Duration::from_secs_f64(crash);
        let leadership = tokio::select! {
            leadership = election.acquire() => leadership,
            () = sleep_until(crash) => continue,
        };
        world.lead(number, Some(&leadership));
        let writer = leadership.writer(&client);
        let work = async {
            // Several writes at once, so that some of them wait when the leadership is lost.
            let write = |wait: f64| {
                let writer = &writer;
                async move {
                    loop {
                        sleep(Duration::from_secs_f64(wait)).await;
                        let request = Request::post("/write").body(Body::from(b"{}".to_vec())).unwrap();
                        writer.client().send(request).await.ok();
                    }
                }
            };
            tokio::join!(write(0.7), write(1.7), write(2.9));
        };
        let releases = rng.random_bool(0.5);
        tokio::select! {
            _ = election.hold() => world.0.lock().unwrap().outcome.losses += 1,
            () = work => {}
            () = sleep_until(crash) => {
                if releases {
                    election.release().await.ok();
                } else if rng.random_bool(0.5) {
                    // Renewals stop, and writes go on.
                    let writes = async {
                        loop {
                            sleep(Duration::from_secs_f64(0.2)).await;
                            let request = Request::post("/write").body(Body::from(b"{}".to_vec())).unwrap();
                            writer.client().send(request).await.ok();
                        }
                    };
                    tokio::time::timeout(Duration::from_secs(30), writes).await.ok();
                }
            }
        }
        drop(election);
        world.lead(number, None);
        if world.has_faults() {
            sleep(Duration::from_secs_f64(rng.random_range(0.0..10.0))).await;
        }
    }
}

/// The server, and what it judges.
#[derive(Clone)]
struct World(Arc<Mutex<State>>);

struct State {
    lease: Option<Value>,
    version: u64,
    /// When the server is stopped.
    stops: Vec<(Instant, Instant)>,
    faults_end: Instant,
    leaders: Vec<Option<Leadership>>,
    outcome: Outcome,
}

impl World {
    fn new(rng: &mut Pcg64Mcg, count: usize) -> Self {
        let start = Instant::now();
        let stop = |rng: &mut Pcg64Mcg| {
            let from = start + LENGTH.mul_f64(rng.random_range(0.0..0.9));
            (from, from + Duration::from_secs_f64(rng.random_range(0.5..25.0)))
        };
        let stops = (0..rng.random_range(0..6)).map(|_| stop(rng)).collect();
        Self(Arc::new(Mutex::new(State {
            lease: None,
            version: 0,
            stops,
            faults_end: start + LENGTH,
            leaders: vec![None; count],
            outcome: Outcome::default(),
        })))
    }

    fn has_faults(&self) -> bool {
        Instant::now() < self.0.lock().unwrap().faults_end
    }

    fn lead(&self, number: usize, leadership: Option<&Leadership>) {
        let mut state = self.0.lock().unwrap();
        state.outcome.terms += usize::from(leadership.is_some());
        state.leaders[number] = leadership.cloned();
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
        if parts.uri.path() == "/write" {
            self.judge(number);
        }
        // It has left the process: it arrives also if the response is no longer waited for.
        let world = self.clone();
        let is_lost = plan.is_request_lost;
        let arrives = plan.arrives;
        let executed = tokio::spawn(async move {
            sleep(arrives).await;
            world.until_running().await;
            if is_lost {
                return std::future::pending().await;
            }
            world.execute(&parts.method, &body)
        });
        let response = executed.await?;
        if plan.is_response_lost {
            return Err("the connection was cut".into());
        }
        sleep(plan.returns).await;
        Ok(response)
    }

    /// A write leaves a process: no other one may send one now.
    fn judge(&self, number: usize) {
        let mut state = self.0.lock().unwrap();
        state.outcome.writes += 1;
        let others: Vec<usize> = (0..state.leaders.len())
            .filter(|other| *other != number)
            .filter(|other| state.leaders[*other].as_ref().is_some_and(|leadership| leadership.check().is_ok()))
            .collect();
        if !others.is_empty() {
            let at = Instant::now() + LENGTH - state.faults_end;
            state.outcome.violations.push(format!("after {at:?} {number} writes while {others:?} may"));
        }
    }

    async fn until_running(&self) {
        let until = {
            let (state, now) = (self.0.lock().unwrap(), Instant::now());
            state.stops.iter().filter(|(from, to)| (*from..*to).contains(&now)).map(|(_, to)| *to).max()
        };
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }

    /// Leases as the server keeps them.
    fn execute(&self, method: &Method, body: &[u8]) -> Response<Body> {
        let mut state = self.0.lock().unwrap();
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let is_current = |lease: &Value| sent["metadata"]["resourceVersion"] == lease["metadata"]["resourceVersion"];
        let refusal = match (method, &state.lease) {
            (&Method::GET | &Method::PUT, None) => Some(404),
            (&Method::POST, Some(_)) if sent["spec"].is_object() => Some(409),
            (&Method::PUT, Some(lease)) if !is_current(lease) => Some(409),
            _ => None,
        };
        if let Some(code) = refusal {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "", "code": code});
            return response(code, &status);
        }
        if !sent["spec"].is_object() {
            return response(200, state.lease.as_ref().unwrap_or(&json!({})));
        }
        state.version += 1;
        let mut lease = sent;
        lease["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.lease = Some(lease.clone());
        response(200, &lease)
    }
}

fn response(code: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(serde_json::to_vec(body).unwrap()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
