//! Random servers, faults and handlers on paused time. A seed decides everything:
//!
//! ```text
//! KUBE_INFORMER_SEEDS=100000 cargo test -p kube-informer --test simulation      # more seeds
//! KUBE_INFORMER_SEED=4711 cargo test -p kube-informer --test simulation         # replays one seed, step by step
//! ```
//!
//! At the end all faults are removed. Then the cache equals the server's state; every handler has
//! received valid event sequences that end in that state; the request rate stayed within its
//! limit; and after the shutdown no task and no watch is left.

mod support;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Backup, Server, Verb};
use kube_informer::pipeline::{Backlog, Discipline, Overflow};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{Event, Informer, Keep, Registration};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::json;
use support::{EventRecorder, client, line, put, remove};
use tokio::time::{Instant, sleep};

const SEEDS: u64 = 1_000;
const STEPS: usize = 120;
/// Number of seeds that are replayed.
const REPLAYED: u64 = 60;
const NAMESPACES: [&str; 3] = ["one", "two", "three"];
/// Maximum time to recover.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Maximum requests per second and watched namespace.
const MAX_REQUESTS_PER_SECOND: usize = 8;

#[test]
fn whatever_happens_the_cache_and_every_handler_end_at_the_truth() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    let seeds: Range<u64> = match (number("KUBE_INFORMER_SEED"), number("KUBE_INFORMER_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(SEEDS),
    };
    let verbosity = if number("KUBE_INFORMER_SEED").is_some() { Verbosity::Verbose } else { Verbosity::Quiet };
    for seed in seeds {
        let result = std::panic::catch_unwind(|| simulate(seed, verbosity));
        assert!(result.is_ok(), "seed {seed}: once more with KUBE_INFORMER_SEED={seed}");
    }
}

/// Replays within one process, so that hash map keys and thread timing differ between the runs.
#[test]
fn a_seed_replays_exactly() {
    for seed in 0..REPLAYED {
        let [first, second] = [(); 2].map(|()| simulate(seed, Verbosity::Quiet));
        assert!(first.len() > STEPS, "seed {seed}: a transcript");
        if let Some(at) = (0..first.len().max(second.len())).find(|at| first.get(*at) != second.get(*at)) {
            let before = first[at.saturating_sub(10)..at].join("\n");
            panic!("seed {seed} goes another way:\n{before}\n< {:?}\n> {:?}", first.get(at), second.get(at));
        }
    }
}

/// Runs a seed; returns a transcript of all actions, events and requests with their times.
fn simulate(seed: u64, verbosity: Verbosity) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let transcript = Transcript::new(verbosity);
    runtime.expect("a runtime").block_on(Simulation::run(seed, transcript.clone()));
    transcript.lines()
}

#[derive(Clone, Copy)]
enum Verbosity {
    Quiet,
    /// Prints each line immediately.
    Verbose,
}

/// Actions, events and requests with their times.
#[derive(Clone)]
struct Transcript(Arc<Mutex<Lines>>);

struct Lines {
    verbosity: Verbosity,
    began: Option<Instant>,
    lines: Vec<String>,
}

impl Transcript {
    fn new(verbosity: Verbosity) -> Self {
        Self(Arc::new(Mutex::new(Lines { verbosity, began: None, lines: Vec::new() })))
    }

    fn log(&self, what: impl Display) {
        let mut lines = self.0.lock().expect("the lock is not poisoned");
        let began = *lines.began.get_or_insert_with(Instant::now);
        let line = format!("{:?} {what}", began.elapsed());
        if let Verbosity::Verbose = lines.verbosity {
            println!("{line}");
        }
        lines.lines.push(line);
    }

    /// Appends the requests that the server received.
    fn requests(&self, server: &Server) {
        let mut lines = self.0.lock().expect("the lock is not poisoned");
        let began = *lines.began.get_or_insert_with(Instant::now);
        let requests = server.requests().into_iter();
        let requests = requests.map(|seen| format!("{:?} {} {:?}", seen.at - began, seen.query, seen.code));
        lines.lines.extend(requests);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().expect("the lock is not poisoned").lines.clone()
    }
}

struct Simulation {
    rng: Pcg64Mcg,
    transcript: Transcript,
    server: Server,
    maps: Informer<ConfigMap>,
    wanted: Wanted,
    handlers: Vec<Handler>,
    backup: Option<Backup>,
    refusing: bool,
    writes: u64,
    /// Number of handlers added so far.
    added: usize,
    /// Times at which watches were interrupted or restarted.
    interruptions: Vec<Instant>,
}

enum Wanted {
    Everything,
    These(Vec<&'static str>),
}

struct Handler {
    subset: Subset,
    recorder: EventRecorder,
    feed: Feed,
}

/// Records a handler's events, for the checks and for the transcript.
#[derive(Clone)]
struct LoggedRecorder {
    recorder: EventRecorder,
    nth: usize,
    transcript: Transcript,
}

impl LoggedRecorder {
    fn record(&self, event: &Event<ConfigMap>) {
        let version = event.object().version();
        self.transcript.log(format_args!("handler {} receives {} {version}", self.nth, line(event)));
        self.recorder.record(event);
    }
}

enum Feed {
    Callback(Registration),
    Stream(tokio::task::JoinHandle<()>),
}

#[derive(Clone, Copy)]
enum Subset {
    All,
    /// Only objects whose value is even.
    Even,
}

/// Version and value of each object.
type View = BTreeMap<String, (String, String)>;

impl Simulation {
    async fn run(seed: u64, transcript: Transcript) {
        let mut simulation = Self::new(seed, transcript).await;
        let before = simulation.begin();
        for _ in 0..STEPS {
            simulation.step().await;
        }
        simulation.end(before).await;
    }

    async fn new(seed: u64, transcript: Transcript) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let server = Server::builder().in_process().seed(seed).history(rng.random_range(5..200));
        let server = server.start().await.expect("a server");
        for name in NAMESPACES {
            server
                .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .expect("a namespace");
        }
        let mut settings = ReflectorSettings::default();
        if rng.random_bool(0.4) {
            settings.streaming = Streaming::Never;
        }
        if rng.random_bool(0.5) {
            settings.page_size = Some(rng.random_range(1..5));
        }
        let wanted = match rng.random_range(0..3) {
            0 => Wanted::These(vec!["one", "two"]),
            _ => Wanted::Everything,
        };
        let mut builder = Informer::<ConfigMap>::builder(client(&server))
            .seed(seed)
            .reflector(settings)
            .keep([Keep::Plain, Keep::Compact, Keep::Decoded][rng.random_range(0..3)])
            .queue([Discipline::Ordered, Discipline::Keyed][rng.random_range(0..2)]);
        if let Wanted::These(namespaces) = &wanted {
            builder = builder.namespaces(namespaces.clone());
        }
        if rng.random_bool(0.5) {
            builder = builder.resync(Duration::from_secs(rng.random_range(1..60)));
        }
        let maps = builder.build();
        Self {
            rng,
            transcript,
            server,
            maps,
            wanted,
            handlers: Vec::new(),
            backup: None,
            refusing: false,
            writes: 0,
            added: 0,
            interruptions: Vec::new(),
        }
    }

    /// Starts the informer; returns the number of tasks before.
    fn begin(&mut self) -> usize {
        // Includes the client's task and the server's.
        let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        for _ in 0..self.rng.random_range(0..20) {
            self.write();
        }
        for _ in 0..self.rng.random_range(0..3) {
            self.add_handler();
        }
        self.maps.start();
        before
    }

    async fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..50 => {
                for _ in 0..self.rng.random_range(1..4) {
                    self.write();
                }
            }
            50..65 => {
                let time = [10, 300, 5_000, 40_000, 200_000][self.rng.random_range(0..5)];
                self.log(format!("{time} ms pass"));
                sleep(Duration::from_millis(time)).await;
            }
            65..70 => tokio::task::yield_now().await,
            70..75 => {
                self.log("cut");
                self.note_interruption();
                self.server.cut();
            }
            75..78 => {
                self.log("compact");
                self.server.compact_now();
            }
            78..80 => {
                self.log("restart");
                self.note_interruption();
                self.server.restart();
            }
            80..83 if self.refusing => {
                self.log("accept");
                self.server.accept().await;
                self.refusing = false;
            }
            80..83 => {
                self.log("refuse");
                self.server.refuse().await;
                self.refusing = true;
            }
            83..90 => self.inject(),
            90..94 => self.add_handler(),
            94..96 => self.remove_handler().await,
            96..98 => self.change_namespaces(),
            98 => {
                self.log("backup");
                self.backup = Some(self.server.backup());
            }
            _ => self.restore().await,
        }
    }

    fn write(&mut self) {
        let namespace = NAMESPACES[self.rng.random_range(0..3)];
        let name = format!("m{}", self.rng.random_range(0..6));
        self.writes += 1;
        if self.server.objects("v1", "ConfigMap").is_ok_and(|maps| maps.namespace(namespace).get(&name).is_ok())
            && self.rng.random_bool(0.35)
        {
            self.log(format!("remove {namespace}/{name}"));
            remove(&self.server, namespace, &name);
        } else {
            self.log(format!("put {namespace}/{name} {}", self.writes));
            put(&self.server, namespace, &name, &self.writes.to_string());
        }
    }

    fn inject(&mut self) {
        let events = self.rng.random_range(0..4);
        let fault = match self.rng.random_range(0..18) {
            0 => Fault::Disconnect,
            1 => Fault::status([400, 401, 403, 404, 500, 503, 504][self.rng.random_range(0..7)]),
            2 => Fault::status(503).retry_after(5),
            3 => Fault::TooManyRequests,
            4 => Fault::GoneAtOpen,
            5 => Fault::Delay(Duration::from_secs(self.rng.random_range(1..100))),
            6 => Fault::StallAfterBytes(self.rng.random_range(0..3_000)),
            7 => Fault::StallAfterEvents(events),
            8 => Fault::CutAfterBytes(self.rng.random_range(0..3_000)),
            9 => Fault::CutAfterEvents(events),
            10 => Fault::CutWithinEvent(events),
            11 => Fault::EndAfterEvents(events),
            12 => Fault::GarbageAfterEvents(events, "]no frame\n".into()),
            13 => Fault::GoneAfterEvents(events),
            14 => Fault::OmitInitialEventsEnd,
            15 => Fault::OmitBookmarks,
            _ => Fault::DuplicateAfterEvents(events.max(1)),
        };
        let times = self.rng.random_range(1..5);
        self.log(format!("fault {fault:?} {times} times"));
        let mut rule = Rule::new(fault).times(times);
        if self.rng.random_bool(0.3) {
            rule = rule.verb([Verb::List, Verb::Watch][self.rng.random_range(0..2)]);
        }
        self.server.faults().inject(rule);
    }

    fn add_handler(&mut self) {
        let backlog = match self.rng.random_range(0..4) {
            0 => Backlog::default(),
            1 => Backlog::Latest,
            2 => Backlog::Every { limit: self.rng.random_range(0..8), overflow: Overflow::Coalesce },
            _ => Backlog::Every { limit: self.rng.random_range(0..8), overflow: Overflow::Replay },
        };
        let subset = if self.rng.random_bool(0.3) { Subset::Even } else { Subset::All };
        let (kind, delay) = (self.rng.random_range(0..4), Duration::from_millis(self.rng.random_range(0..3_000)));
        self.log(format!("add a handler of kind {kind}, {backlog:?}"));
        let recorder = EventRecorder::default();
        recorder.objects_may_return();
        self.added += 1;
        if self.backup.is_some() {
            recorder.server_may_go_back();
        }
        let mut handler = self.maps.handler().backlog(backlog);
        if let Subset::Even = subset {
            handler = handler.filter(|map| map.label("value").is_some_and(is_even));
        }
        let logged =
            LoggedRecorder { recorder: recorder.clone(), nth: self.added, transcript: self.transcript.clone() };
        let feed = match kind {
            0 => Feed::Callback(handler.on_event(move |event| logged.record(&event))),
            1 => Feed::Callback(handler.on_event(move |event| {
                logged.record(&event);
                if event.key().name() == "m3" {
                    // `resume_unwind` skips the panic hook, which would print thousands of
                    // messages.
                    std::panic::resume_unwind(Box::new("as it was meant to"));
                }
            })),
            2 => Feed::Callback(handler.on_event_async(move |event| {
                let logged = logged.clone();
                async move {
                    sleep(delay).await;
                    logged.record(&event);
                }
            })),
            _ => {
                let mut events = handler.subscribe();
                Feed::Stream(tokio::spawn(async move {
                    while let Some(event) = events.next().await {
                        logged.record(&event);
                        sleep(delay / 10).await;
                    }
                }))
            }
        };
        self.handlers.push(Handler { subset, recorder, feed });
    }

    async fn remove_handler(&mut self) {
        if self.handlers.is_empty() {
            return;
        }
        let nth = self.rng.random_range(0..self.handlers.len());
        self.log(format!("remove handler {nth}"));
        let handler = self.handlers.swap_remove(nth);
        match handler.feed {
            Feed::Callback(registration) if self.rng.random_bool(0.5) => registration.remove().await,
            Feed::Callback(registration) => drop(registration),
            Feed::Stream(task) => task.abort(),
        }
        // Checks the events that it received.
        handler.recorder.objects();
    }

    fn change_namespaces(&mut self) {
        let Wanted::These(_) = self.wanted else { return };
        let these: Vec<_> = NAMESPACES.into_iter().filter(|_| self.rng.random_bool(0.6)).collect();
        self.log(format!("namespaces {these:?}"));
        self.note_interruption();
        self.maps.set_namespaces(these.clone()).expect("it is not shared");
        self.wanted = Wanted::These(these);
    }

    /// Restores the server from the backup.
    ///
    /// Writes nothing until the informer has noticed: earlier writes would reuse known versions and
    /// could not be distinguished.
    async fn restore(&mut self) {
        let Some(backup) = self.backup.take() else { return };
        self.log("restore");
        for handler in &self.handlers {
            handler.recorder.server_may_go_back();
        }
        self.note_interruption();
        self.server.restore(&backup);
        self.backup = Some(backup);
        self.settle().await;
    }

    /// Waits until the cache equals the server's state.
    async fn settle(&mut self) {
        self.server.faults().clear();
        self.server.accept().await;
        self.refusing = false;
        let began = Instant::now();
        while self.cached() != self.truth() || !self.maps.is_synced() || self.is_ahead() {
            assert!(
                began.elapsed() < RECOVERY_TIMEOUT,
                "the cache is not what the server has: {:?} is not {:?}; {:?}",
                self.cached(),
                self.truth(),
                self.maps.health()
            );
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Returns whether the cache's version is ahead of the server's, so that the informer has not
    /// yet noticed the restore.
    fn is_ahead(&self) -> bool {
        let reached = self.maps.health().version.and_then(|version| version.number());
        reached.is_some_and(|reached| reached > self.server.revision())
    }

    async fn end(&mut self, before: usize) {
        self.log("all is well again");
        self.note_interruption();
        self.server.cut();
        self.settle().await;
        self.write();
        self.settle().await;
        let truth = self.truth();
        for (nth, handler) in self.handlers.iter().enumerate() {
            let began = Instant::now();
            let wanted: BTreeMap<String, String> = truth
                .iter()
                .filter(|(_, (_, value))| matches!(handler.subset, Subset::All) || is_even(value))
                .map(|(key, (version, _))| (key.clone(), version.clone()))
                .collect();
            if let Feed::Callback(registration) = &handler.feed {
                registration.synced().await.expect("it is synced");
            }
            while handler.recorder.objects() != wanted {
                assert!(
                    began.elapsed() < RECOVERY_TIMEOUT,
                    "handler {nth} believes {:?}, which is not {wanted:?}",
                    handler.recorder.objects()
                );
                sleep(Duration::from_secs(1)).await;
            }
        }
        self.check_rate();
        self.transcript.requests(&self.server);
        self.maps.shutdown().await;
        for handler in self.handlers.drain(..) {
            if let Feed::Stream(task) = handler.feed {
                task.await.expect("the stream ends");
            }
        }
        assert_eq!(self.server.watches().len(), 0, "a watch is left");
        let after = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        // The client's task ended with the informer.
        assert_eq!(after, before - 1, "a task is left");
    }

    fn check_rate(&self) {
        let scopes = if let Wanted::These(_) = self.wanted { NAMESPACES.len() } else { 1 };
        // Continuation pages are not counted as attempts.
        let tries = self.server.requests().into_iter().filter(|seen| !seen.query.contains("continue="));
        let times: Vec<_> = tries.map(|seen| seen.at).collect();
        let soon = |at: Instant, then: &Instant| (at..at + Duration::from_secs(1)).contains(then);
        for (nth, at) in times.iter().enumerate() {
            let within = times[nth..].iter().take_while(|then| soon(*at, then)).count();
            // An established watch that breaks is reopened without backoff.
            let interruptions = self.interruptions.iter().filter(|then| soon(*at, then)).count();
            assert!(
                within <= (MAX_REQUESTS_PER_SECOND + 2 * interruptions) * scopes,
                "{within} requests within a second"
            );
        }
    }

    fn cached(&self) -> View {
        let all = self.maps.lister().list();
        all.iter()
            .map(|map| {
                let value = map.label("value").unwrap_or_default().to_owned();
                (map.key().to_string(), (map.version().to_string(), value))
            })
            .collect()
    }

    fn truth(&self) -> View {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let all = self.server.objects("v1", "ConfigMap").expect("config maps").list();
        let view = all.iter().map(|map| {
            let meta = &map["metadata"];
            let key = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
            (key, (text(&meta["resourceVersion"]), text(&meta["labels"]["value"])))
        });
        view.filter(|(key, _)| match &self.wanted {
            Wanted::Everything => true,
            Wanted::These(namespaces) => namespaces.iter().any(|name| key.starts_with(&format!("{name}/"))),
        })
        .collect()
    }

    fn note_interruption(&mut self) {
        self.interruptions.push(Instant::now());
    }

    fn log(&self, what: impl Display) {
        self.transcript.log(what);
    }
}

fn is_even(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|value| value % 2 == 0)
}
