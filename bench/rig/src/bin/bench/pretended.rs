//! Clients of a simulated cluster with its own rate of change: the measurement, and its part of the
//! results page.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rig::client::Figures;
use rig::line_process::LineProcess;
use serde::Deserialize;

use crate::launch::OfClient;
use crate::plan::PRETENDED;
use crate::summary::Summary;
use crate::table::{Unit, ratio_text};

/// Title, figure, unit.
const ROWS: [(&str, &str, Unit); 6] = [
    ("CPU until synced", "sync.cpu", Unit::Seconds),
    ("CPU for an event", "event.cpu", Unit::Micros),
    ("events", "events", Unit::Number),
    ("memory held after the first list", "sync.rss", Unit::Bytes),
    ("memory held at the end", "held.rss", Unit::Bytes),
    ("peak memory after the first list", "peak", Unit::Bytes),
];

/// The size of the cluster, and how long it is followed.
pub struct Cluster {
    pub nodes: u64,
    pub pods: u64,
    pub seconds: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Usage {
    cpu: f64,
    rss: f64,
    peak: f64,
    events: f64,
}

/// Lets all clients follow the same cluster at the same time.
pub fn measure(binaries: &Path, go: &Path, cluster: Cluster) -> Result<Vec<OfClient>, Box<dyn Error>> {
    let Cluster { nodes, pods, seconds } = cluster;
    let arguments = ["pretend".to_owned(), nodes.to_string(), pods.to_string(), "20".to_owned()];
    let mut server = LineProcess::start(Command::new(binaries.join("apiserver")).args(arguments))?;
    let url = server.line()?;
    let clients = [
        ("client-go", go.to_owned(), vec!["pretended", &url]),
        ("kube-rs", binaries.join("pretended_kube_rs"), vec![&url, ""]),
        ("ours default", binaries.join("pretended_ours"), vec![&url, "default"]),
        ("ours plain", binaries.join("pretended_ours"), vec![&url, "plain"]),
    ];
    let mut running = Vec::new();
    for (name, program, arguments) in clients {
        let mut client = LineProcess::start(Command::new(program).args(arguments))?;
        // One after the other, so that first lists do not compete for the processor.
        let synced = synced(&mut client, (pods + 2 * nodes) as f64)?;
        let figures = Figures::from([("sync.cpu".to_owned(), synced.cpu)]);
        running.push((name.to_owned(), client, figures));
    }
    sleep(Duration::from_secs(10.min(seconds)));
    let mut before = Vec::new();
    for (_, client, figures) in &mut running {
        let _: Usage = client.ask("forget peak")?;
        let usage: Usage = client.ask("free")?;
        figures.insert("sync.rss".to_owned(), usage.rss);
        before.push(usage);
    }
    sleep(Duration::from_secs(seconds));
    let mut found = Vec::new();
    for ((name, mut client, mut figures), before) in running.into_iter().zip(before) {
        let after: Usage = client.ask("usage")?;
        let held: Usage = client.ask("free")?;
        let events = after.events - before.events;
        figures.insert("events".to_owned(), events);
        figures.insert("event.cpu".to_owned(), (after.cpu - before.cpu) * 1e6 / events.max(1.0));
        figures.insert("peak".to_owned(), after.peak);
        figures.insert("held.rss".to_owned(), held.rss);
        found.push((name, figures));
    }
    Ok(found)
}

/// Waits for as many events as there are objects.
fn synced(client: &mut LineProcess, objects: f64) -> Result<Usage, Box<dyn Error>> {
    let start = Instant::now();
    loop {
        let usage: Usage = client.ask("usage")?;
        // The number of pods fluctuates.
        if usage.events >= objects * 0.98 {
            return Ok(usage);
        }
        if start.elapsed() > Duration::from_secs(300) {
            return Err(format!("{} of {objects} objects have arrived", usage.events).into());
        }
        sleep(Duration::from_millis(100));
    }
}

/// The part of the results page.
pub fn section(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let names = summary.names(PRETENDED);
    if names.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## A cluster's own rate of change\n\nPods, nodes and leases of a simulated cluster: leases and node statuses change all the time, most pods never. \
         All clients follow the same cluster at the same time; handlers read nothing. Ratios are to client-go.\n"
    )?;
    writeln!(out, "| | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len()))?;
    for (title, figure, unit) in ROWS {
        let go = summary.get(PRETENDED, "client-go", figure);
        let cells = names.iter().map(|name| {
            let Some(cell) = summary.get(PRETENDED, name, figure) else { return "–".to_owned() };
            let ratio = go.filter(|_| name.starts_with("ours") && figure != "events");
            let ratio = ratio.map_or_else(String::new, |go| format!(", {}", ratio_text(cell.median / go.median)));
            unit.show(cell) + &ratio
        });
        writeln!(out, "| {title} | {} |", cells.collect::<Vec<_>>().join(" | "))?;
    }
    Ok(())
}
