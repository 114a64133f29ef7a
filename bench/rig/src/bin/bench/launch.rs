//! Starts clients and servers.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rig::client::Figures;
use rig::corpus;
use rig::work::Work;

use crate::plan::{Job, Plan, What, Who};
use crate::{pretended, websites};

/// The name of a client, and its measurements.
pub type OfClient = (String, Figures);

/// The paths of all programs and corpora.
pub struct Workshop {
    binaries: PathBuf,
    folder: PathBuf,
    go: PathBuf,
}

impl Workshop {
    /// Builds and generates everything that the plan needs. Corpora are kept for later runs.
    pub fn open(root: &Path, plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let folder = root.join("target/bench");
        fs::create_dir_all(&folder)?;
        let own = std::env::current_exe()?;
        let workshop = Self {
            binaries: own.parent().ok_or("no folder of binaries")?.to_owned(),
            go: folder.join("client-go"),
            folder,
        };
        if plan.jobs.iter().any(|job| matches!(job.who, Who::ClientGo | Who::Everybody)) {
            eprintln!("building the Go program");
            let mut build = Command::new("go");
            build.current_dir(root.join("bench/go")).args(["build", "-o"]).arg(&workshop.go).arg(".");
            succeed(&mut build)?;
        }
        if plan.jobs.iter().any(|job| job.who == Who::ControllerRuntime) {
            eprintln!("building the Go controller");
            let mut build = Command::new("go");
            build.current_dir(root.join("bench/go")).args(["build", "-o"]).arg(workshop.go_websites());
            succeed(build.arg("./websites"))?;
        }
        // For each workload, whether any client uses protobuf.
        let mut wanted: BTreeMap<(Work, u64), bool> = BTreeMap::new();
        for job in &plan.jobs {
            match job.what {
                What::Follow { work, count, scenario, .. } if scenario != MADE => {
                    *wanted.entry((work, count)).or_default() |= forms(work, &job.setting).contains(&"protobuf");
                }
                _ => {}
            }
        }
        for ((work, count), in_protobuf) in wanted {
            eprintln!("making {count} {work}");
            let (json, tag) = corpus::make(&workshop.folder, work, count)?;
            let protobuf = workshop.corpus(work, count, "protobuf");
            if in_protobuf && corpus::tag(&protobuf) != Some(tag) {
                eprintln!("converting {count} {work} to protobuf");
                succeed(Command::new(&workshop.go).arg("convert").args([&json, &protobuf]))?;
            }
        }
        Ok(workshop)
    }

    /// Runs one job. Returns the measurements of each client, and the total duration in seconds.
    pub fn run(&self, job: &Job) -> Result<(Vec<OfClient>, f64), Box<dyn Error>> {
        let start = Instant::now();
        if let What::Pretended { nodes, pods, seconds } = job.what {
            let found = pretended::measure(&self.binaries, &self.go, pretended::Cluster { nodes, pods, seconds })?;
            return Ok((found, start.elapsed().as_secs_f64()));
        }
        let figures = match &job.what {
            What::Follow { work, count, scenario, arguments } => {
                let server = self.serve(*work, *count, &job.setting, *scenario == MADE)?;
                let mut client = self.client(job.who, &job.setting);
                client.args(["--server", &server.address, "--work", work.plural(), "--scenario", scenario]);
                client.args(["--count", &count.to_string(), "--setting", &job.setting]).args(arguments);
                touch_memory(match *scenario {
                    MADE => count.saturating_mul(8_000),
                    _ => fs::metadata(self.corpus(*work, *count, forms(*work, &job.setting)[0]))?.len(),
                });
                figures(&mut client)?
            }
            What::Queue { items } => {
                let items = items.to_string();
                match job.who {
                    Who::ClientGo => figures(Command::new(&self.go).args(["queue", "--items", &items]))?,
                    Who::Plain => figures(Command::new(self.binaries.join("queue")).args(["plain", &items]))?,
                    _ => figures(Command::new(self.binaries.join("queue")).args(["ours", &items]))?,
                }
            }
            What::Websites { count } => {
                let client = match job.who {
                    Who::ControllerRuntime => self.go_websites(),
                    Who::KubeRuntime => self.binaries.join("websites_kube_runtime"),
                    _ => self.binaries.join("websites_ours"),
                };
                websites::measure(&self.binaries.join("apiserver"), &client, *count)?
            }
            What::Pretended { .. } => unreachable!("it has several clients"),
        };
        Ok((vec![(job.name(), figures)], start.elapsed().as_secs_f64()))
    }

    fn client(&self, who: Who, setting: &str) -> Command {
        match who {
            Who::ClientGo => {
                let mut go = Command::new(&self.go);
                go.arg("client");
                go
            }
            Who::KubeRs => Command::new(self.binaries.join("kube_rs")),
            Who::Ours if setting.ends_with("+mimalloc") => Command::new(self.binaries.join("ours_mimalloc")),
            _ => Command::new(self.binaries.join("ours")),
        }
    }

    /// Starts a replay server with the corpus for a client with this setting, or with objects that
    /// it makes itself.
    fn serve(&self, work: Work, count: u64, setting: &str, is_made: bool) -> Result<Server, Box<dyn Error>> {
        let mut replay = Command::new(self.binaries.join("replay"));
        replay.args(["--work", work.plural()]);
        for form in forms(work, setting) {
            let corpus = if is_made { count.to_string().into() } else { self.corpus(work, count, form) };
            replay.arg(format!("--{form}")).arg(corpus);
        }
        replay.args(["--gzip", if setting.ends_with("+gzip") { "1" } else { "0" }]);
        let mut process = replay.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(process.stdout.take().ok_or("no output")?).read_line(&mut address)?;
        if address.is_empty() {
            process.wait()?;
            return Err("the replay server did not start".into());
        }
        Ok(Server { process, address: address.trim().to_owned() })
    }

    fn go_websites(&self) -> PathBuf {
        self.folder.join("websites-go")
    }

    fn corpus(&self, work: Work, count: u64, form: &str) -> PathBuf {
        corpus::path(&self.folder, work, count, form)
    }
}

/// Makes the host of a virtual machine allocate as much memory as a client may need, which the
/// kernel then gives to that client.
///
/// Memory that is unused for some time returns to the host, and the next process to touch it pays
/// for the page faults: the same list can take three times the CPU, for any client. The maximum
/// measured for a client of pods is seven times its corpus.
fn touch_memory(corpus: u64) {
    const MOST: u64 = 6 << 30;
    let bytes = corpus.saturating_mul(7).min(MOST);
    drop(std::hint::black_box(vec![1_u8; usize::try_from(bytes).unwrap_or(0)]));
}

/// The corpus formats for a client with this setting. With default settings the library chooses.
fn forms(work: Work, setting: &str) -> &'static [&'static str] {
    if setting == "default" && work.has_protobuf() {
        return &["json", "protobuf"];
    }
    if setting.split('+').any(|word| word == "protobuf") { &["protobuf"] } else { &["json"] }
}

/// The scenario whose objects are not stored: the server makes them when it sends them.
const MADE: &str = "many";

struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process ends when its standard input is closed.
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

fn figures(command: &mut Command) -> Result<Figures, Box<dyn Error>> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{:?}: {}", command.get_program(), output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if status.success() { Ok(()) } else { Err(format!("{:?}: {status}", command.get_program()).into()) }
}
