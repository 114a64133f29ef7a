//! The benchmark plan.

use std::env;
use std::path::{Path, PathBuf};

use rig::work::Work;

use crate::growth;

/// The measured implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    ClientGo,
    KubeRs,
    Ours,
    /// A mutex and a list: the lower bound for a queue.
    Plain,
    /// As a framework of controllers.
    ControllerRuntime,
    /// As a framework of controllers.
    KubeRuntime,
    /// Several clients in one job.
    Everybody,
}

/// A process to run.
#[derive(Debug, Clone)]
pub struct Job {
    pub group: String,
    pub who: Who,
    pub setting: String,
    pub what: What,
    pub reps: u32,
}

#[derive(Debug, Clone)]
pub enum What {
    /// A client of the replay server.
    Follow { work: Work, count: u64, scenario: &'static str, arguments: Vec<String> },
    /// A work queue.
    Queue { items: u64 },
    /// A controller of this many websites.
    Websites { count: u64 },
    /// All clients of one simulated cluster at the same time, for so many seconds.
    Pretended { nodes: u64, pods: u64, seconds: u64 },
}

impl Job {
    /// Whether it is in a group, or in one of a number: `many` is the group of all numbers of pods.
    fn is_in(&self, group: &str) -> bool {
        self.group == group || self.group.split(' ').next() == Some(group) && group == "many"
    }

    pub fn name(&self) -> String {
        let who = match self.who {
            Who::ClientGo => "client-go",
            Who::KubeRs => "kube-rs",
            Who::Ours => "ours",
            Who::Plain => "Mutex<VecDeque>",
            Who::ControllerRuntime => "controller-runtime",
            Who::KubeRuntime => "kube-runtime",
            Who::Everybody => "all",
        };
        if self.setting.is_empty() { who.to_owned() } else { format!("{who} {}", self.setting) }
    }
}

/// What the benchmark measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// All clients compared with each other.
    SideBySide,
    /// The cost of more objects and more handlers.
    Growth,
}

/// The command line options.
#[derive(Debug)]
pub struct Options {
    pub question: Question,
    pub quick: bool,
    only: Vec<String>,
    reps: Option<u32>,
    pub count: u64,
    pub out: PathBuf,
    pub words: Vec<String>,
}

impl Options {
    pub fn parse(root: &Path) -> Result<Self, String> {
        let words: Vec<String> = env::args().skip(1).collect();
        let mut options = Self {
            question: Question::SideBySide,
            quick: false,
            only: Vec::new(),
            reps: None,
            count: 20_000,
            out: root.join("bench/results"),
            words: words.clone(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "growth" => options.question = Question::Growth,
                "--quick" => options.quick = true,
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--reps" => options.reps = Some(value()?.parse().map_err(|_| "--reps is a number")?),
                "--count" => options.count = value()?.parse().map_err(|_| "--count is a number")?,
                "--out" => options.out = PathBuf::from(value()?),
                _ => return Err(format!("no such option: {word} (bench/README.md has them)")),
            }
        }
        // Partial and quick runs do not overwrite the published results.
        let whole = !options.quick && options.only.is_empty();
        if !whole && options.out == root.join("bench/results") {
            options.out = root.join("target/bench/results");
        }
        Ok(options)
    }
}

#[derive(Debug)]
pub struct Plan {
    pub jobs: Vec<Job>,
}

type Client = (Who, String);

/// The store modes of this project that are measured, each with every wire format: JSON, and the
/// others that the client supports.
const KEEPS: [&str; 2] = ["plain", "compact"];
pub const WIRES: &[&str] = &["", "+protobuf"];

/// The group of clients that drop managedFields.
pub const LEAN: &str = "pods, lean";
/// The group in which this project's clients use another allocator. Go has its own.
pub const MIMALLOC: &str = "pods, mimalloc";

/// The group of clients of a simulated cluster.
pub const PRETENDED: &str = "pretended";
/// How many pods clients get in the group of the same name. Memory limits client-go.
pub const MANY_OF_CLIENT_GO: [u64; 2] = [100_000, 300_000];
pub const MANY_OF_OURS: [u64; 2] = [20_000, 1_000_000];

/// The group of controllers.
pub const WEBSITES: &str = "websites";

/// Handler counts.
pub const HANDLERS: [u64; 4] = [1, 4, 16, 64];

impl Plan {
    pub fn new(options: &Options) -> Self {
        let mut plan = Self { jobs: Vec::new() };
        match options.question {
            Question::SideBySide => plan.side_by_side(options),
            Question::Growth => plan.growth(options),
        }
        let chosen = |job: &Job| {
            let name = format!("{} {}", job.group, job.name());
            options.only.is_empty()
                || options.only.iter().any(|only| job.is_in(only) || name.contains(only.as_str()) && only.contains(' '))
        };
        plan.jobs.retain(chosen);
        for job in &mut plan.jobs {
            job.reps = options.reps.unwrap_or(if options.quick { 1 } else { job.reps });
        }
        plan
    }

    pub fn reps(&self) -> u32 {
        self.jobs.iter().map(|job| job.reps).max().unwrap_or(0)
    }

    fn side_by_side(&mut self, options: &Options) {
        let (count, scale) = if options.quick { (2_000, 10) } else { (options.count, 1) };
        self.pods(count, scale);
        self.decoding(count);
        self.gzip(count, scale);
        self.lean(count, scale);
        self.mimalloc(count, scale);
        self.reads(count);
        self.handlers(count, scale);
        for (work, many) in [(Work::EndpointSlices, count), (Work::Events, count), (Work::Certificates, count)] {
            self.kind(work, many, 40_000 / scale);
        }
        self.kind(Work::ConfigMaps, 1_000 / scale, 4_000 / scale);
        self.queues(1_000_000 / scale);
        self.websites(5_000 / scale);
        self.pretended(if options.quick { 30 } else { 600 }, scale);
        self.many(scale);
        // Slow or intermediate measurements are run only once.
        let between =
            |job: &Job| HANDLERS[1..HANDLERS.len() - 1].iter().any(|number| job.group == handlers_group(*number));
        for job in self.jobs.iter_mut().filter(|job| job.setting == "JSON+gzip" || between(job)) {
            job.reps = 1;
        }
    }

    /// Increasing numbers of objects and handlers. Other clients are limited by memory.
    fn growth(&mut self, options: &Options) {
        let scale = if options.quick { 10 } else { 1 };
        for count in growth::COUNTS.map(|count| count / scale) {
            let mut who = ours("");
            if count <= growth::PEERS_TO {
                who.extend(peers(&[(Who::ClientGo, "protobuf"), (Who::KubeRs, "stream")]));
            }
            let more =
                [("updates", (30_000 / scale).to_string()), ("deeper", "0".to_owned()), ("settle", "2500".to_owned())];
            self.follow(&growth::group(count), &who, Work::Pods, count, "life", &more);
        }
        self.handlers(options.count.min(5_000) / scale, scale);
        // Two runs can differ by a third if the memory is newly allocated by the host.
        for job in &mut self.jobs {
            job.reps = 3;
        }
    }

    /// The full scenario: first list, updates, deletions, relist, latencies.
    fn pods(&mut self, count: u64, scale: u64) {
        let life = |updates: u64, settle: u64| {
            let rates = format!("200x{},1000x{}", 1_000 / scale, 3_000 / scale);
            arguments(&[
                ("updates", (updates / scale).to_string()),
                ("churn", (count / 10).to_string()),
                ("relist", "1".to_owned()),
                ("rates", rates),
                ("settle", settle.to_string()),
            ])
        };
        let mut add = |(who, setting): Client, updates, settle, reps| {
            let what = What::Follow { work: Work::Pods, count, scenario: "life", arguments: life(updates, settle) };
            self.jobs.push(Job { group: "pods".to_owned(), who, setting, what, reps });
        };
        // Most goals concern these two, and single slow deliveries determine a 99th percentile, so
        // they are repeated more often.
        add((Who::ClientGo, "protobuf".to_owned()), 100_000, 1_500, 5);
        for client in ours("").into_iter().chain([(Who::Ours, "default".to_owned())]) {
            // New objects are compressed after a delay; the settle time includes that cost.
            let settle = if !client.1.starts_with("plain") { 6_000 } else { 1_500 };
            add(client, 100_000, settle, 5);
        }
        add((Who::KubeRs, "stream".to_owned()), 100_000, 1_500, 3);
        add((Who::Ours, "decoded".to_owned()), 100_000, 1_500, 3);
        // Slow, and the cost per update does not depend on the number of updates.
        add((Who::ClientGo, "JSON".to_owned()), 10_000, 1_500, 2);
        let list = peers(&[(Who::KubeRs, "list")]);
        self.follow("pods", &list, Work::Pods, count, "sync", &[("settle", "1500".to_owned())]);
    }

    /// The first list with a handler that reads every body. Other clients have already decoded it.
    fn decoding(&mut self, count: u64) {
        let more = [("depth", "new".to_owned()), ("settle", "1500".to_owned())];
        self.follow("pods, decoding", &ours(""), Work::Pods, count, "sync", &more);
    }

    /// Compressed responses. kube-rs does not request compression for watches, and therefore not
    /// for streaming lists.
    fn gzip(&mut self, count: u64, scale: u64) {
        let list = peers(&[(Who::KubeRs, "list+gzip")]);
        self.follow("pods, gzip", &list, Work::Pods, count, "sync", &[("settle", "1500".to_owned())]);
        let mut who = peers(&[(Who::ClientGo, "protobuf+gzip"), (Who::ClientGo, "JSON+gzip")]);
        who.extend(ours("+gzip"));
        let more =
            [("updates", (10_000 / scale).to_string()), ("deeper", "0".to_owned()), ("settle", "1500".to_owned())];
        self.follow("pods, gzip", &who, Work::Pods, count, "life", &more);
    }

    /// Clients that drop managedFields, which are half of a pod and which few programs read.
    fn lean(&mut self, count: u64, scale: u64) {
        let mut who = peers(&[(Who::ClientGo, "protobuf+lean")]);
        who.extend(ours("+lean"));
        let more = [("updates", (30_000 / scale).to_string()), ("settle", "1500".to_owned())];
        self.follow(LEAN, &who, Work::Pods, count, "life", &more);
    }

    fn mimalloc(&mut self, count: u64, scale: u64) {
        let mut who = peers(&[(Who::ClientGo, "protobuf")]);
        who.extend(ours("+mimalloc"));
        let more = [("updates", (30_000 / scale).to_string()), ("settle", "1500".to_owned())];
        self.follow(MIMALLOC, &who, Work::Pods, count, "life", &more);
    }

    fn reads(&mut self, count: u64) {
        let mut who = peers(&[(Who::ClientGo, "protobuf"), (Who::KubeRs, "stream")]);
        who.extend(ours(""));
        who.extend(["decoded", "default"].map(|setting| (Who::Ours, setting.to_owned())));
        let more = [("rates", "1000x2000".to_owned()), ("settle", "1500".to_owned())];
        self.follow("reads", &who, Work::Pods, count, "reads", &more);
    }

    /// The cost of handlers does not depend on the number of objects, so there are few, to keep the
    /// first list short.
    fn handlers(&mut self, count: u64, scale: u64) {
        for handlers in HANDLERS {
            let more = [
                ("handlers", handlers.to_string()),
                ("updates", (20_000 / scale).to_string()),
                ("settle", "500".to_owned()),
            ];
            let mut who = peers(&[(Who::ClientGo, "protobuf"), (Who::KubeRs, "stream")]);
            who.extend(ours(""));
            who.push((Who::Ours, "decoded".to_owned()));
            self.follow(&handlers_group(handlers), &who, Work::Pods, count.min(5_000), "handlers", &more);
        }
    }

    fn kind(&mut self, work: Work, count: u64, updates: u64) {
        let go = if work.has_protobuf() { "protobuf" } else { "JSON" };
        let mut who = peers(&[(Who::ClientGo, go), (Who::KubeRs, "stream")]);
        who.extend(ours("").into_iter().filter(|(_, setting)| work.has_protobuf() || !setting.contains("protobuf")));
        who.push((Who::Ours, "default".to_owned()));
        let more = [("updates", updates.to_string()), ("settle", "1500".to_owned())];
        self.follow(work.plural(), &who, work, count, "life", &more);
    }

    fn queues(&mut self, items: u64) {
        for who in [Who::ClientGo, Who::Ours, Who::Plain] {
            let (group, setting) = ("queue".to_owned(), String::new());
            self.jobs.push(Job { group, who, setting, what: What::Queue { items }, reps: 3 });
        }
    }

    /// Controllers that do the same work.
    fn websites(&mut self, count: u64) {
        for who in [Who::ControllerRuntime, Who::Ours, Who::KubeRuntime] {
            let (group, setting) = (WEBSITES.to_owned(), String::new());
            self.jobs.push(Job { group, who, setting, what: What::Websites { count }, reps: 3 });
        }
    }

    /// A cluster with its own rate of change. Its clients run beside each other, as ten minutes
    /// each would take too long; they are idle for most of the time.
    fn pretended(&mut self, seconds: u64, scale: u64) {
        let what = What::Pretended { nodes: 660 / scale, pods: 20_000 / scale, seconds };
        let (group, setting) = (PRETENDED.to_owned(), String::new());
        self.jobs.push(Job { group, who: Who::Everybody, setting, what, reps: 1 });
    }

    /// So many pods that client-go has no room for them.
    fn many(&mut self, scale: u64) {
        let mut clients: Vec<(Client, u64)> = Vec::new();
        for count in MANY_OF_CLIENT_GO {
            clients.push(((Who::ClientGo, "protobuf".to_owned()), count / scale));
        }
        for count in MANY_OF_OURS {
            clients.push(((Who::Ours, "default".to_owned()), count / scale));
        }
        let more = [("updates", "20000".to_owned()), ("settle", "2500".to_owned())];
        for (client, count) in clients {
            self.follow(&many_group(count), &[client], Work::Pods, count, "many", &more);
        }
        self.jobs.iter_mut().filter(|job| job.group.starts_with("many ")).for_each(|job| job.reps = 1);
    }

    fn follow(
        &mut self,
        group: &str,
        who: &[Client],
        work: Work,
        count: u64,
        scenario: &'static str,
        more: &[(&str, String)],
    ) {
        for (who, setting) in who.iter().cloned() {
            let what = What::Follow { work, count, scenario, arguments: arguments(more) };
            self.jobs.push(Job { group: group.to_owned(), who, setting, what, reps: 2 });
        }
    }
}

/// The group of clients with this many pods.
pub fn many_group(count: u64) -> String {
    format!("many {count}")
}

/// The group of clients with this many handlers.
pub fn handlers_group(handlers: u64) -> String {
    format!("{handlers} handlers")
}

fn peers(who: &[(Who, &str)]) -> Vec<Client> {
    who.iter().map(|(who, setting)| (*who, (*setting).to_owned())).collect()
}

/// This project's clients with every wire format, with this suffix on each setting.
fn ours(more: &str) -> Vec<Client> {
    let settings = WIRES.iter().flat_map(|wire| KEEPS.map(|keep| format!("{keep}{wire}{more}")));
    settings.map(|setting| (Who::Ours, setting)).collect()
}

fn arguments(pairs: &[(&str, String)]) -> Vec<String> {
    pairs.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]).collect()
}
