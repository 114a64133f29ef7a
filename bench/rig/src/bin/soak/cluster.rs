//! The cluster: a server with a simulated cluster, in a separate process.
//!
//! Executes commands from its standard input, one per line, and responds to each with lines
//! terminated by an empty one. The first response is its address. Ends when its standard input is
//! closed.

use std::io::{self, BufRead, Write};
use std::time::Duration;

use kube_embedded::faults::{Fault, Rule};
use kube_embedded::pretend::{Pretend, Size};
use kube_embedded::{Server, Verb};
use rig::process;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::Error;

/// The config map for latency measurements: an annotation contains the time of its last write.
pub const PROBE: &str = "soak-probe";
/// The name of that annotation.
pub const WRITTEN: &str = "soak/written";
const PROBE_EVERY: Duration = Duration::from_millis(250);

/// Serves until the input ends.
pub fn serve(arguments: &[String]) -> Result<(), Error> {
    let [pods, rate, seed] = arguments else { return Err("serve PODS RATE SEED".into()) };
    let pods: u64 = pods.parse()?;
    let runtime = Runtime::new()?;
    let (server, pretend) = runtime.block_on(async {
        // A short history, so that the server's memory soon reaches its maximum.
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
            // Ends when the sender is dropped.
            while stopped.recv_timeout(PROBE_EVERY) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let written = json!({"metadata": {"annotations": {WRITTEN: process::now_nanos().to_string()}}});
                // Only this loop writes it, so the patch cannot fail.
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

    /// Makes the next watches, lists or streaming lists of any kind fail, once each.
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

    /// Keys and resource versions of all objects of a kind.
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
