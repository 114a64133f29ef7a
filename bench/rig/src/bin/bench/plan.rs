//! What is run.

use std::env;
use std::path::{Path, PathBuf};

use rig::work::Work;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    ClientGo,
    KubeRs,
    Ours,
    /// A lock and a list: what a queue cannot be cheaper than.
    Plain,
}

/// One process to be run.
#[derive(Debug, Clone)]
pub struct Job {
    pub group: &'static str,
    pub who: Who,
    pub setting: &'static str,
    pub what: What,
    pub reps: u32,
}

#[derive(Debug, Clone)]
pub enum What {
    /// A client of the replay server.
    Follow { work: Work, count: u64, scenario: &'static str, arguments: Vec<String> },
    /// A work queue.
    Queue { items: u64 },
}

impl Job {
    pub fn name(&self) -> String {
        let who = match self.who {
            Who::ClientGo => "client-go",
            Who::KubeRs => "kube-rs",
            Who::Ours => "ours",
            Who::Plain => "Mutex<VecDeque>",
        };
        if self.setting.is_empty() { who.to_owned() } else { format!("{who} {}", self.setting) }
    }
}

/// The command line.
#[derive(Debug)]
pub struct Options {
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
                "--quick" => options.quick = true,
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--reps" => options.reps = Some(value()?.parse().map_err(|_| "--reps is a number")?),
                "--count" => options.count = value()?.parse().map_err(|_| "--count is a number")?,
                "--out" => options.out = PathBuf::from(value()?),
                _ => return Err(format!("no such option: {word}")),
            }
        }
        // What was run in part or in haste does not go where the results are.
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

pub const GO: &[(Who, &str)] = &[(Who::ClientGo, "protobuf")];
const OURS: &[(Who, &str)] = &[(Who::Ours, "plain"), (Who::Ours, "compact")];

impl Plan {
    pub fn new(options: &Options) -> Self {
        let mut plan = Self { jobs: Vec::new() };
        let (count, scale) = if options.quick { (2_000, 10) } else { (options.count, 1) };
        plan.pods(count, scale);
        plan.decoding(count);
        plan.gzip(count);
        plan.reads(count);
        plan.handlers(count, scale);
        for (work, many) in [(Work::EndpointSlices, count), (Work::Events, count), (Work::Certificates, count)] {
            plan.kind(work, many, 40_000 / scale);
        }
        plan.kind(Work::ConfigMaps, 1_000 / scale, 4_000 / scale);
        plan.queues(1_000_000 / scale);
        let chosen = |job: &Job| {
            let name = format!("{} {}", job.group, job.name());
            options.only.is_empty()
                || options
                    .only
                    .iter()
                    .any(|only| job.group == only || name.contains(only.as_str()) && only.contains(' '))
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

    /// A whole life: first list, updates, deletions, relist, delays.
    fn pods(&mut self, count: u64, scale: u64) {
        let life = |updates: u64, settle: u64| {
            let rates = format!("200x{},1000x{}", 500 / scale, 3_000 / scale);
            arguments(&[
                ("updates", (updates / scale).to_string()),
                ("churn", (count / 10).to_string()),
                ("relist", "1".to_owned()),
                ("rates", rates),
                ("settle", settle.to_string()),
            ])
        };
        let mut add = |who, setting, updates, settle, reps| {
            let what = What::Follow { work: Work::Pods, count, scenario: "life", arguments: life(updates, settle) };
            self.jobs.push(Job { group: "pods", who, setting, what, reps });
        };
        // Fresh objects are packed once they have rested for a while: what that costs is to be seen.
        add(Who::ClientGo, "protobuf", 100_000, 1_500, 3);
        add(Who::Ours, "plain", 100_000, 1_500, 3);
        add(Who::KubeRs, "stream", 100_000, 1_500, 3);
        add(Who::Ours, "compact", 100_000, 6_000, 3);
        add(Who::Ours, "decoded", 100_000, 1_500, 3);
        // Slow, and its price for an update is the same for all of them.
        add(Who::ClientGo, "JSON", 10_000, 1_500, 2);
        self.follow("pods", &[(Who::KubeRs, "list")], Work::Pods, count, "sync", &[("settle", "1500".to_owned())]);
    }

    /// The first list with a handler that reads every body. Others have decoded it anyway.
    fn decoding(&mut self, count: u64) {
        let more = [("depth", "new".to_owned()), ("settle", "1500".to_owned())];
        self.follow("pods, decoding", OURS, Work::Pods, count, "sync", &more);
    }

    fn gzip(&mut self, count: u64) {
        let who = [(Who::ClientGo, "protobuf+gzip"), (Who::Ours, "plain+gzip"), (Who::Ours, "compact+gzip")];
        self.follow("pods, gzip", &who, Work::Pods, count, "sync", &[("settle", "1500".to_owned())]);
    }

    fn reads(&mut self, count: u64) {
        let who = [&[(Who::ClientGo, "protobuf"), (Who::KubeRs, "stream")], OURS, &[(Who::Ours, "decoded")]].concat();
        let more = [("rates", "1000x2000".to_owned()), ("settle", "1500".to_owned())];
        self.follow("reads", &who, Work::Pods, count, "reads", &more);
    }

    fn handlers(&mut self, count: u64, scale: u64) {
        for (group, handlers) in [("1 handler", 1), ("9 handlers", 9)] {
            let more = [
                ("handlers", handlers.to_string()),
                ("updates", (50_000 / scale).to_string()),
                ("settle", "500".to_owned()),
            ];
            self.follow(
                group,
                &[(Who::ClientGo, "protobuf"), (Who::Ours, "plain")],
                Work::Pods,
                count,
                "handlers",
                &more,
            );
        }
    }

    fn kind(&mut self, work: Work, count: u64, updates: u64) {
        let go = if work.has_protobuf() { GO } else { &[(Who::ClientGo, "JSON")] };
        let who = [go, &[(Who::KubeRs, "stream")], OURS].concat();
        let more = [("updates", updates.to_string()), ("settle", "1500".to_owned())];
        self.follow(work.plural(), &who, work, count, "life", &more);
    }

    fn queues(&mut self, items: u64) {
        for who in [Who::ClientGo, Who::Ours, Who::Plain] {
            self.jobs.push(Job { group: "queue", who, setting: "", what: What::Queue { items }, reps: 3 });
        }
    }

    fn follow(
        &mut self,
        group: &'static str,
        who: &[(Who, &'static str)],
        work: Work,
        count: u64,
        scenario: &'static str,
        more: &[(&str, String)],
    ) {
        for &(who, setting) in who {
            let what = What::Follow { work, count, scenario, arguments: arguments(more) };
            self.jobs.push(Job { group, who, setting, what, reps: 2 });
        }
    }
}

fn arguments(pairs: &[(&str, String)]) -> Vec<String> {
    pairs.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]).collect()
}
