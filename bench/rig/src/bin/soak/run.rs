//! The soak test itself.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config};
use kube_informer::workqueue::RateLimit;
use kube_informer::{Event, Informer, ObjectKey, Registration, WorkQueue};
use parking_lot::Mutex;
use rig::machine::Machine;
use rig::{process, prose};
use serde_json::Value;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout, timeout_at};

use crate::Error;
use crate::cluster::{PROBE, WRITTEN};
use crate::fault_injection::FaultCounters;
use crate::handlers::{Delivery, Handler};
use crate::host::{Host, HostFigures};
use crate::informers::{self, Tally, Watched};
use crate::judge::{self, Check};
use crate::options::Options;
use crate::page;
use crate::record::{self, Line, Recorder};

/// Interval at which a handler is replaced.
const ROTATION: Duration = Duration::from_secs(2);
/// Interval at which an informer changes its namespaces.
const REMOVAL: Duration = Duration::from_secs(25);
/// Interval at which a temporary informer is started, synced and stopped.
const VISIT: Duration = Duration::from_secs(20);
/// Interval of comparisons between caches and server; shorter in short runs.
const CHECK: Duration = Duration::from_secs(30);
/// Maximum time until all changes must have arrived, despite any faults.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(90);

/// Runs the soak test, evaluates it and writes the report.
pub fn run(options: &Options) -> Result<ExitCode, Error> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let machine = Machine::detect(&root);
    let runtime = Runtime::new()?;
    let soaked = runtime.block_on(soak(options))?;
    fs::create_dir_all(&options.out)?;
    fs::write(options.out.join("soak.md"), prose::wrap(&page::write(options, &machine, &soaked)))?;
    fs::write(options.out.join("soak.svg"), page::draw(&soaked))?;
    fs::write(options.out.join("soak.json"), serde_json::to_vec(&page::raw(options, &machine, &soaked))?)?;
    println!();
    for check in &soaked.checks {
        println!(
            "{} {}: {} (wanted: {})",
            if check.passed { "ok  " } else { "FAIL" },
            check.what,
            check.found,
            check.wanted
        );
    }
    let passed = soaked.checks.iter().all(|check| check.passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The results of a soak test.
pub struct Soaked {
    pub lines: Vec<Line>,
    pub checks: Vec<Check>,
    pub faults: FaultCounters,
    pub stalls: u64,
    pub visits: u64,
    pub comparisons: u64,
    pub reconciled: u64,
}

/// Counters shared by all tasks.
#[derive(Debug, Clone, Default)]
struct Counts {
    events: Arc<AtomicU64>,
    handlers: Arc<AtomicU64>,
    visits: Arc<AtomicU64>,
    comparisons: Arc<AtomicU64>,
    reconciled: Arc<AtomicU64>,
    lags: Arc<Mutex<Vec<f64>>>,
    /// Detected errors.
    wrong: Arc<Mutex<Vec<String>>>,
}

impl Counts {
    fn note(&self, wrong: String) {
        eprintln!("WRONG: {wrong}");
        let mut all = self.wrong.lock();
        // The first errors are sufficient.
        if all.len() < 20 {
            all.push(wrong);
        }
    }
}

async fn soak(options: &Options) -> Result<Soaked, Error> {
    let (host, url) = Host::start(options)?;
    let runtime = Handle::current();
    // The runtime may have sockets for signals.
    let at_first = record::sample(&runtime);
    let client = kube_informer::client(Config::new(url.parse()?))?;
    let (tally, counts, faults) = (Tally::default(), Counts::default(), FaultCounters::default());
    let namespaces = namespaces(&host).await?;
    let watched: Arc<Vec<Watched>> = Arc::new(informers::start(&client, &tally, &namespaces[0]));
    for one in watched.iter() {
        timeout(DELIVERY_TIMEOUT, one.informer.synced()).await.map_err(|_| format!("{} is not synced", one.name))??;
    }
    let staying: Vec<(usize, Handler)> = (0..watched.len())
        .flat_map(|at| [(at, Delivery::Every), (at, Delivery::Latest)])
        .map(|(at, delivery)| (at, Handler::add(&watched[at], delivery, &counts.events)))
        .collect();
    // Fills the cache of decoded bodies up to its limit before the start, so that it does not grow
    // during the run.
    if options.reads > 0.0 {
        for pod in watched[0].informer.view::<Pod>().lister().list() {
            pod.get()?;
        }
    }
    let queue = Queue::start(&watched[0].informer, &counts);
    let lag = listen_for_lag(&watched[8].informer, &counts);
    print_head();

    let began = Instant::now();
    let until = began + options.time;
    let all = Arc::clone(&watched);
    let objects = move || all.iter().map(|one| one.informer.lister().len()).sum();
    let recorder = Recorder::start(runtime.clone(), at_first.connections, objects, options.time);
    let injecting = tokio::spawn(faults.clone().inject(host.clone(), options.fault_interval, until));
    let rotating = tokio::spawn(rotate(Arc::clone(&watched), counts.clone(), until));
    let chores = vec![
        tokio::spawn(remove(Arc::clone(&watched), namespaces, until)),
        tokio::spawn(visit(client.clone(), counts.clone(), until)),
        tokio::spawn(compare(Arc::clone(&watched), host.clone(), counts.clone(), CHECK.min(options.time / 8), until)),
        tokio::spawn(read(Arc::clone(&watched), options.reads, until)),
    ];
    let mut lines = Vec::new();
    let mut before = (began, process::cpu(), host.figures().await?);
    while Instant::now() < until {
        sleep(options.every.min(until - Instant::now())).await;
        let now = (Instant::now(), process::cpu(), host.figures().await?);
        let mut line = at_work(&watched, &tally, &counts, &recorder, (before, now));
        line.at = began.elapsed().as_secs_f64();
        print(&line);
        lines.push(line);
        before = now;
    }
    // Sampling stops before anything is shut down, which is not part of the steady state.
    let samples = recorder.stop();
    let mut checks = judge::steady(&samples);
    injecting.await??;
    for chore in chores {
        chore.await?;
    }
    let moving = rotating.await?;
    host.ask("still").await?;

    let handlers: Vec<(usize, Handler)> = staying.into_iter().chain(moving).collect();
    checks.extend(nothing_lost(&watched, &handlers, &queue, &client, &counts).await);
    let totals = tally.totals();
    checks.push(disturbed(&faults, totals.relists, &counts));
    let (visits, comparisons) = (counts.visits.load(Ordering::Relaxed), counts.comparisons.load(Ordering::Relaxed));
    let reconciled = counts.reconciled.load(Ordering::Relaxed);

    queue.end().await;
    lag.remove().await;
    for (_, handler) in handlers {
        handler.end().await;
    }
    for one in watched.iter() {
        one.informer.shutdown().await;
    }
    drop((watched, client));
    checks.push(nothing_left(&runtime, at_first.connections).await);
    Ok(Soaked { lines, checks, faults, stalls: totals.stalls, visits, comparisons, reconciled })
}

/// Two overlapping sets of namespaces.
async fn namespaces(host: &Host) -> Result<[Vec<String>; 2], Error> {
    let mut pods: HashMap<String, usize> = HashMap::new();
    for (key, _) in host.truth("v1", "Pod").await? {
        *pods.entry(key.split('/').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    let mut names: Vec<(usize, String)> = pods.into_iter().map(|(name, count)| (count, name)).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let names: Vec<String> = names.into_iter().map(|(_, name)| name).take(4).collect();
    let set = |from: usize| names.iter().cycle().skip(from).take(3.min(names.len())).cloned().collect();
    Ok([set(0), set(1)])
}

/// A controller that records the resource versions it has seen. One item in sixteen fails at first.
struct Queue {
    seen: Arc<Mutex<HashMap<ObjectKey, u64>>>,
    queue: WorkQueue<ObjectKey>,
    feed: Registration,
    worker: JoinHandle<()>,
}

impl Queue {
    fn start(informer: &Informer<Value>, counts: &Counts) -> Self {
        let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
        let feed = informer.on_event(queue.enqueue());
        let seen: Arc<Mutex<HashMap<ObjectKey, u64>>> = Arc::default();
        let (work, lister, into, counted) = (queue.clone(), informer.lister(), Arc::clone(&seen), counts.clone());
        let worker = tokio::spawn(async move {
            let mut nth = 0_u64;
            while let Some(item) = work.next().await {
                nth += 1;
                if nth.is_multiple_of(16) && item.attempts() == 0 {
                    item.retry();
                    continue;
                }
                match lister.get(&item) {
                    Some(object) => into.lock().insert(item.clone(), object.version().number().unwrap_or(0)),
                    None => into.lock().remove(&*item),
                };
                counted.reconciled.fetch_add(1, Ordering::Relaxed);
                item.forget();
            }
        });
        Self { seen, queue, feed, worker }
    }

    fn agrees(&self, cached: &HashMap<String, u64>) -> Result<(), String> {
        let seen: HashMap<String, u64> =
            self.seen.lock().iter().map(|(key, version)| (key.to_string(), *version)).collect();
        if seen == *cached && self.queue.is_empty() && self.queue.delayed() == 0 && self.queue.running() == 0 {
            return Ok(());
        }
        let odd = cached.iter().find(|(key, version)| seen.get(*key) != Some(version));
        Err(format!("the controller has seen {} of {}; {odd:?} is not as it knows it", seen.len(), cached.len()))
    }

    async fn end(self) {
        self.feed.remove().await;
        self.queue.shutdown();
        drop(self.worker.await);
    }
}

fn listen_for_lag(informer: &Informer<Value>, counts: &Counts) -> Registration {
    let lags = Arc::clone(&counts.lags);
    informer.handler().filter(|object| object.name() == PROBE).on_event(move |event: Event<Value>| {
        let now = process::now_nanos();
        let Ok(body) = event.object().get() else { return };
        let written = body["metadata"]["annotations"][WRITTEN].as_str().and_then(|nanos| nanos.parse().ok());
        lags.lock().extend(written.map(|written: u64| now.saturating_sub(written) as f64 / 1e6));
    })
}

/// Replaces handlers continuously: one of each mode, on every informer in turn.
async fn rotate(watched: Arc<Vec<Watched>>, counts: Counts, until: Instant) -> Vec<(usize, Handler)> {
    let places: Vec<(usize, Delivery)> = (0..2 * Delivery::ALL.len())
        .map(|nth| (nth % watched.len(), Delivery::ALL[nth % Delivery::ALL.len()]))
        .collect();
    let mut slots: Vec<Handler> =
        places.iter().map(|(at, delivery)| Handler::add(&watched[*at], *delivery, &counts.events)).collect();
    let mut ticks = interval(ROTATION);
    for nth in (0..slots.len()).cycle() {
        ticks.tick().await;
        if Instant::now() > until + Duration::from_secs(1) {
            break;
        }
        let (at, delivery) = places[nth];
        let gone = std::mem::replace(&mut slots[nth], Handler::add(&watched[at], delivery, &counts.events));
        gone.error().into_iter().for_each(|error| counts.note(error));
        gone.end().await;
        counts.handlers.fetch_add(1, Ordering::Relaxed);
    }
    places.into_iter().map(|(at, _)| at).zip(slots).collect()
}

/// Moves one informer between two sets of namespaces.
async fn remove(watched: Arc<Vec<Watched>>, sets: [Vec<String>; 2], until: Instant) {
    for set in sets.iter().cycle().skip(1) {
        if !pause(REMOVAL, until).await {
            break;
        }
        watched[1].move_to(set);
    }
}

/// Starts and syncs informers and stops them, by a shutdown or by dropping the last handle.
async fn visit(client: Client, counts: Counts, until: Instant) {
    for nth in 0_u64.. {
        if !pause(VISIT, until).await {
            break;
        }
        let replica_sets = informers::resource("apps", "ReplicaSet", "replicasets");
        let informer = Informer::<Value>::builder_for(client.clone(), replica_sets).build();
        let handler = informer.on_event(|_| ());
        informer.start();
        match timeout(DELIVERY_TIMEOUT, handler.synced()).await {
            Ok(Ok(())) => drop(counts.visits.fetch_add(1, Ordering::Relaxed)),
            other => counts.note(format!("a visiting informer was not synced: {other:?}")),
        }
        if nth.is_multiple_of(2) {
            informer.shutdown().await;
        }
    }
}

/// Waits for this time, or until the end; returns whether to continue. No task ends early, because
/// the number of tasks is measured.
async fn pause(time: Duration, until: Instant) -> bool {
    let next = Instant::now() + time;
    sleep_until(next.min(until + Duration::from_secs(2))).await;
    next < until
}

/// Compares the caches with the server while both change.
async fn compare(watched: Arc<Vec<Watched>>, host: Host, counts: Counts, every: Duration, until: Instant) {
    while pause(every, until).await {
        for one in watched.iter() {
            if let Err(wrong) = agrees(one, &host).await {
                counts.note(format!("{} is not as the server is: {wrong}", one.name));
            }
            counts.comparisons.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Checks that no object is missing, unless the informer changes namespaces, and that deleted
/// objects do not stay for long.
async fn agrees(one: &Watched, host: &Host) -> Result<(), String> {
    let start = Instant::now();
    let mut before: Option<HashMap<String, u64>> = None;
    loop {
        let comparison = timeout(DELIVERY_TIMEOUT, one.compare(host)).await;
        let comparison = comparison
            .map_err(|_| format!("it waited {DELIVERY_TIMEOUT:?} for a version"))?
            .map_err(|error| error.to_string())?;
        let late = start.elapsed() > DELIVERY_TIMEOUT;
        if let Some(missing) = comparison.missing.first().filter(|_| late || !one.moves()) {
            return Err(format!("{missing}, and {} others", comparison.missing.len() - 1));
        }
        let still: HashMap<String, u64> = match before {
            Some(before) => {
                comparison.gone.into_iter().filter(|(key, version)| before.get(key) == Some(version)).collect()
            }
            None => comparison.gone,
        };
        if still.is_empty() && comparison.missing.is_empty() {
            return Ok(());
        }
        if let Some((key, version)) = still.iter().next().filter(|_| late) {
            return Err(format!(
                "for {DELIVERY_TIMEOUT:?} {key} of {version} is cached and gone, and {} others",
                still.len() - 1
            ));
        }
        before = Some(still);
        sleep(Duration::from_millis(200)).await;
    }
}

/// Reads continuously.
async fn read(watched: Arc<Vec<Watched>>, per_second: f64, until: Instant) {
    let pods = watched[0].informer.view::<Pod>();
    let nodes = pods.index_by_path("spec.nodeName").expect("it is a path");
    let lister = pods.lister();
    // Almost never if no reads are configured.
    let mut ticks = interval(Duration::from_secs_f64(1.0 / per_second.max(1e-6)));
    ticks.tick().await;
    for nth in 0_usize.. {
        if timeout_at(until + Duration::from_secs(2), ticks.tick()).await.is_err() {
            break;
        }
        let keys = lister.keys();
        let Some(pod) = keys.get(nth * 7919 % keys.len().max(1)).and_then(|key| lister.get(key)) else { continue };
        let node = pod.get().ok().and_then(|pod| pod.spec.as_ref()?.node_name.clone()).unwrap_or_default();
        std::hint::black_box((
            nodes.get(&node).len(),
            lister.namespace(pod.namespace().unwrap_or_default()).list().len(),
        ));
    }
}

/// After the cluster has stopped, checks everything: caches against a fresh LIST, handlers, the
/// controller and all recorded events.
async fn nothing_lost(
    watched: &[Watched],
    handlers: &[(usize, Handler)],
    queue: &Queue,
    client: &Client,
    counts: &Counts,
) -> Vec<Check> {
    let deadline = Instant::now() + DELIVERY_TIMEOUT;
    let mut checks = Vec::new();
    let (mut objects, mut agreeing) = (0, 0);
    let mut lost = None;
    for (at, one) in watched.iter().enumerate() {
        let equal = loop {
            let found = one.equals_a_list(client).await.map_err(|error| format!("{}: {error}", one.name));
            if found.is_ok() || Instant::now() > deadline {
                break found;
            }
            sleep(Duration::from_millis(200)).await;
        };
        match equal {
            Ok(count) => objects += count,
            Err(wrong) => drop(lost.get_or_insert(wrong)),
        }
        let cached = one.cached();
        for (_, handler) in handlers.iter().filter(|(of, _)| *of == at) {
            let agrees = loop {
                let found = handler.agrees(&cached);
                if found.is_ok() || Instant::now() > deadline {
                    break found;
                }
                sleep(Duration::from_millis(50)).await;
            };
            match agrees {
                Ok(()) => agreeing += 1,
                Err(wrong) => counts.note(format!("{}: {wrong}", one.name)),
            }
            handler.error().into_iter().for_each(|error| counts.note(error));
        }
    }
    let found = lost.map_or(Ok(format!("{objects} objects in {} caches", watched.len())), Err);
    checks.push(Check::new("caches", "body by body as a fresh LIST", found));
    let cached = watched[0].cached();
    while queue.agrees(&cached).is_err() && Instant::now() < deadline {
        sleep(Duration::from_millis(50)).await;
    }
    let found = queue.agrees(&cached).map(|()| format!("{} objects, queue empty", cached.len()));
    checks.push(Check::new("a controller on the work queue", "has seen the last state of every pod", found));
    let wrong = counts.wrong.lock();
    let found = format!(
        "{agreeing} handlers at the end, {} that went, {} comparisons on the way",
        counts.handlers.load(Ordering::Relaxed),
        counts.comparisons.load(Ordering::Relaxed)
    );
    let found = if wrong.is_empty() { Ok(found) } else { Err(wrong.join("; ")) };
    checks.push(Check::new("handlers", "events in order, and at the end the state of the cache", found));
    checks
}

/// Checks that faults occurred; otherwise the run is meaningless.
fn disturbed(faults: &FaultCounters, relists: u64, counts: &Counts) -> Check {
    let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let (cuts, expiries, handlers) = (number(&faults.cuts), number(&faults.expiries), number(&counts.handlers));
    let found = format!("{cuts} cuts, {expiries} expiries, {relists} relists, {handlers} handlers");
    let enough = cuts > 0 && expiries > 0 && relists > 0 && handlers > 0;
    Check::new(
        "disturbed",
        "cuts, expired versions, relists, handlers that came and went",
        if enough { Ok(found) } else { Err(found) },
    )
}

/// Checks that a shutdown leaves no tasks or connections.
async fn nothing_left(runtime: &Handle, at_first: f64) -> Check {
    let deadline = Instant::now() + Duration::from_secs(10);
    let found = loop {
        let now = record::sample(runtime);
        let connections = now.connections - at_first;
        let found = format!("{} tasks, {connections} connections", now.tasks);
        if now.tasks == 0.0 && connections == 0.0 {
            break Ok(found);
        }
        if Instant::now() > deadline {
            break Err(found);
        }
        sleep(Duration::from_millis(100)).await;
    };
    Check::new("after the shutdown", "no task, no connection", found)
}

type Moment = (Instant, Duration, HostFigures);

fn at_work(
    watched: &[Watched],
    tally: &Tally,
    counts: &Counts,
    recorder: &Recorder,
    (from, to): (Moment, Moment),
) -> Line {
    let span = (to.0 - from.0).as_secs_f64().max(0.001);
    let samples = recorder.latest(span);
    let mean =
        |figure: fn(&record::Sample) -> f64| samples.iter().map(figure).sum::<f64>() / samples.len().max(1) as f64;
    let (tasks, connections) = judge::usual_counts(&samples);
    let mut lags = counts.lags.lock();
    lags.sort_by(f64::total_cmp);
    let (lag_median, lag_most) =
        (lags.get(lags.len() / 2).copied().unwrap_or(f64::NAN), lags.last().copied().unwrap_or(f64::NAN));
    lags.clear();
    let totals = tally.totals();
    Line {
        at: 0.0,
        resident: mean(|sample| sample.resident),
        heap: mean(|sample| sample.heap),
        objects: watched.iter().map(|one| one.informer.lister().len()).sum(),
        writes: to.2.writes,
        events: counts.events.load(Ordering::Relaxed),
        lag_median,
        lag_most,
        tasks,
        connections,
        handlers: counts.handlers.load(Ordering::Relaxed),
        relists: totals.relists,
        watches: totals.watches,
        requests: to.2.requests,
        errors: totals.errors,
        cpu: (to.1 - from.1).as_secs_f64() / span,
        host_cpu: (to.2.cpu - from.2.cpu) / span,
        host_resident: to.2.resident,
        load: record::load(),
    }
}

fn print_head() {
    println!(
        "{:>6} {:>8} {:>8} {:>8} {:>9} {:>10} {:>9} {:>9} {:>6} {:>5} {:>8} {:>8} {:>8} {:>7} {:>6} {:>6}",
        "s",
        "RSS MB",
        "heap MB",
        "objects",
        "writes",
        "events",
        "lag ms",
        "most ms",
        "tasks",
        "conns",
        "handlers",
        "relists",
        "watches",
        "errors",
        "CPU %",
        "server"
    );
}

fn print(line: &Line) {
    println!(
        "{:>6.0} {:>8.1} {:>8.1} {:>8} {:>9.0} {:>10} {:>9.2} {:>9.1} {:>6} {:>5} {:>8} {:>8} {:>8} {:>7} {:>6.1} {:>6.1}",
        line.at,
        line.resident / 1e6,
        line.heap / 1e6,
        line.objects,
        line.writes,
        line.events,
        line.lag_median,
        line.lag_most,
        line.tasks,
        line.connections,
        line.handlers,
        line.relists,
        line.watches,
        line.errors,
        line.cpu * 100.0,
        line.host_cpu * 100.0
    );
}
