//! The cluster: a server with a pretended cluster on it, in a process of its own.
//!
//! Does what it is told on its standard input, a command a line, and answers each with lines of which the last is empty. The first
//! answer is its address. Ends with its input.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use kube_embedded::faults::{Fault, Rule};
use kube_embedded::pretend::{Pretend, Size};
use kube_embedded::{Server, Verb};
use rig::process;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::Error;

/// The config map by which is seen how late news is: an annotation says when it was written.
pub const PROBE: &str = "soak-probe";
/// That annotation.
pub const WRITTEN: &str = "soak/written";
const PROBE_EVERY: Duration = Duration::from_millis(250);

/// Serves until the input ends.
pub fn serve(arguments: &[String]) -> Result<(), Error> {
    let [pods, rate, seed] = arguments else { return Err("serve PODS RATE SEED".into()) };
    let pods: u64 = pods.parse()?;
    let runtime = Runtime::new()?;
    let (server, pretend) = runtime.block_on(async {
        // The history is short, so that what the server holds is soon as much as it will ever be.
        let server = Server::builder().history_age(Duration::from_secs(60)).start().await?;
        let size = Size { nodes: (pods / 30).max(1), pods };
        let pretend = Pretend::builder().size(size).rate(rate.parse()?).seed(seed.parse()?).start(&server).await?;
        Ok::<_, Error>((server, pretend))
    })?;
    let maps = server.objects("v1", "ConfigMap")?.namespace("default");
    maps.create(&json!({"metadata": {"name": PROBE}}))?;
    answer(&[server.url()])?;

    let mut cluster = Cluster { runtime: &runtime, server: &server, pretend: Some(pretend) };
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let maps = &maps;
        scope.spawn(move || {
            // Ends when the other side is dropped.
            while stopped.recv_timeout(PROBE_EVERY) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let written = json!({"metadata": {"annotations": {WRITTEN: process::now_nanos().to_string()}}});
                // Nobody else writes it, so it is there.
                drop(maps.patch(PROBE, &written));
            }
        });
        let mut stop = Some(stop);
        for line in io::stdin().lock().lines() {
            let line = line?;
            if line == "still" {
                drop(stop.take());
            }
            answer(&cluster.obey(&line)?)?;
        }
        drop(stop);
        Ok(())
    })
}

fn answer(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    out.flush()
}

struct Cluster<'a> {
    runtime: &'a Runtime,
    server: &'a Server,
    pretend: Option<Pretend>,
}

impl Cluster<'_> {
    fn obey(&mut self, line: &str) -> Result<Vec<String>, Error> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["cut"] => self.server.cut(),
            ["expire"] => self.server.restart(),
            ["refuse"] => self.runtime.block_on(self.server.refuse()),
            ["accept"] => self.runtime.block_on(self.server.accept()),
            ["fail", how] => self.fail(how)?,
            ["calm"] => self.server.faults().clear(),
            ["still"] => {
                if let Some(pretend) = self.pretend.take() {
                    self.runtime.block_on(pretend.stop());
                }
            }
            ["truth", api_version, kind] => return self.truth(api_version, kind),
            ["figures"] => {
                let writes = self.pretend.as_ref().map_or(0, Pretend::writes);
                let figures = [
                    writes as f64,
                    self.server.request_count() as f64,
                    process::resident(),
                    process::cpu().as_secs_f64(),
                ];
                return Ok(figures.iter().map(ToString::to_string).collect());
            }
            _ => return Err(format!("no such command: {line}").into()),
        }
        Ok(Vec::new())
    }

    /// The next watches, lists or streaming lists of whatever kind fail, once each.
    fn fail(&self, how: &str) -> Result<(), Error> {
        let inject = |fault: Fault, verb: Verb| drop(self.server.faults().inject(Rule::new(fault).verb(verb).times(3)));
        match how {
            "unavailable" => {
                inject(Fault::status(503), Verb::Watch);
                inject(Fault::status(500), Verb::List);
            }
            "busy" => inject(Fault::TooManyRequests, Verb::Watch),
            "gone" => inject(Fault::GoneAfterEvents(3), Verb::Watch),
            "torn" => inject(Fault::CutWithinEvent(5), Verb::Watch),
            "twice" => inject(Fault::DuplicateAfterEvents(2), Verb::Watch),
            "stalled" => inject(Fault::StallAfterEvents(8), Verb::Watch),
            "garbled" => inject(Fault::GarbageAfterEvents(4, "{\"type\":\"MODIF\n".into()), Verb::Watch),
            _ => return Err(format!("no such failure: {how}").into()),
        }
        self.server.cut();
        Ok(())
    }

    /// Keys and versions of everything of a kind.
    fn truth(&self, api_version: &str, kind: &str) -> Result<Vec<String>, Error> {
        let line = |object: serde_json::Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            let name = text("name");
            let key = match text("namespace") {
                namespace if namespace.is_empty() => name,
                namespace => format!("{namespace}/{name}"),
            };
            format!("{key} {}", text("resourceVersion"))
        };
        Ok(self.server.objects(api_version, kind)?.list().into_iter().map(line).collect())
    }
}
