//! The environment of the measurements.

use std::path::Path;
use std::process::Command;
use std::{fmt, fs};

use serde::Serialize;

/// The machine and its tool versions.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub memory_gib: u64,
    pub kernel: String,
    pub rust: String,
    pub go: String,
    pub client_go: String,
    pub kube_rs: String,
    pub commit: String,
    pub date: String,
    /// The load at the start.
    pub load: String,
}

impl fmt::Display for Machine {
    /// Formats the machine, the time and the tool versions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commit, date, processor, cores, memory_gib, kernel, load, rust, go, client_go, kube_rs } = self;
        write!(
            f,
            "at commit {commit}, {date}, on {processor} ({cores} cores, {memory_gib} GiB, Linux {kernel}, load {load} at the start), \
             with {rust}, {go}, client-go {client_go}, kube-runtime {kube_rs}"
        )
    }
}

impl Machine {
    /// Collects the information.
    pub fn detect(root: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_once(':'));
            line.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let dirty = if output(root, "git", &["status", "--porcelain", "--untracked-files=no"]).is_empty() {
            ""
        } else {
            ", changed"
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory: u64 = memory.split(' ').next().and_then(|kilobytes| kilobytes.parse().ok()).unwrap_or(0);
        let go_mod = read(&root.join("bench/go/go.mod").to_string_lossy());
        let lock = read(&root.join("bench/Cargo.lock").to_string_lossy());
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: memory >> 20,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            rust: output(root, "rustc", &["--version"]),
            go: output(root, "go", &["env", "GOVERSION"]),
            client_go: go_mod
                .lines()
                .find_map(|line| line.trim().strip_prefix("k8s.io/client-go "))
                .unwrap_or("")
                .to_owned(),
            kube_rs: version(&lock, "kube-runtime"),
            commit: output(root, "git", &["rev-parse", "--short", "HEAD"]) + dirty,
            date: output(root, "date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
            load: read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

fn version(lock: &str, name: &str) -> String {
    let mut lines = lock.lines().skip_while(|line| *line != format!("name = \"{name}\""));
    lines.nth(1).and_then(|line| line.split('"').nth(1)).unwrap_or_default().to_owned()
}

fn output(root: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).current_dir(root).args(arguments).output().ok();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
