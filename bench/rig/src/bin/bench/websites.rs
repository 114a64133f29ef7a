//! Controllers of websites: the measurement, and its part of the results page.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rig::client::Figures;
use rig::line_process::LineProcess;
use serde::Deserialize;

use crate::plan::WEBSITES;
use crate::summary::Summary;
use crate::table::{Unit, ratio_text};

/// Title, figure, unit, and the goal as a ratio to controller-runtime.
const ROWS: [(&str, &str, Unit, Option<f64>); 11] = [
    ("CPU, websites and children from nothing", "create.cpu", Unit::Seconds, Some(0.5)),
    ("CPU, a spec change of each", "change.cpu", Unit::Seconds, Some(0.5)),
    ("memory held at the end", "held.rss", Unit::Bytes, Some(0.2)),
    ("peak memory", "peak", Unit::Bytes, Some(0.2)),
    ("requests, from nothing", "create.requests", Unit::Number, Some(1.0)),
    ("requests, spec changes", "change.requests", Unit::Number, Some(1.0)),
    ("time until all are done, from nothing", "create.wall", Unit::Seconds, None),
    ("time until all are done, spec changes", "change.wall", Unit::Seconds, None),
    ("reconciles, from nothing", "create.reconciles", Unit::Number, None),
    ("reconciles, spec changes", "change.reconciles", Unit::Number, None),
    ("memory held before the first website", "start.rss", Unit::Bytes, None),
];

/// What a controller reports of itself.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Usage {
    cpu: f64,
    rss: f64,
    peak: f64,
    /// Reconciles that succeeded.
    events: f64,
}

#[derive(Debug, Deserialize)]
struct Requests {
    requests: f64,
}

#[derive(Debug, Deserialize)]
struct Answer {
    error: Option<String>,
    #[serde(default)]
    wall: f64,
}

/// Lets a controller do the work of this many websites, which are created and then changed while
/// it runs.
pub fn measure(server: &Path, client: &Path, count: u64) -> Result<Figures, Box<dyn Error>> {
    let mut server = LineProcess::start(Command::new(server).args(["websites", &count.to_string()]))?;
    let url = server.line()?;
    let mut client = LineProcess::start(Command::new(client).arg(url))?;
    let mut found = Figures::new();
    succeed(&mut server, "watches 3")?;
    found.insert("start.rss".to_owned(), idle(&mut client)?.rss);
    for phase in ["create", "change"] {
        let before: Usage = client.ask("forget peak")?;
        let requests: Requests = server.ask("requests")?;
        let wall = succeed(&mut server, phase)?.wall;
        // What follows when all are done belongs to the work: reconciles that its own writes cause.
        let after = idle(&mut client)?;
        let Requests { requests: sent } = server.ask("requests")?;
        succeed(&mut server, "check")?;
        for (figure, value) in [
            ("cpu", after.cpu - before.cpu),
            ("wall", wall),
            ("requests", sent - requests.requests),
            ("reconciles", after.events - before.events),
        ] {
            found.insert(format!("{phase}.{figure}"), value);
        }
        let peak = found.entry("peak".to_owned()).or_default();
        *peak = peak.max(after.peak);
    }
    let held: Usage = client.ask("free")?;
    found.insert("held.rss".to_owned(), held.rss);
    Ok(found)
}

fn succeed(server: &mut LineProcess, command: &str) -> Result<Answer, Box<dyn Error>> {
    let answer: Answer = server.ask(command)?;
    match answer.error {
        Some(error) => Err(format!("{command}: {error}").into()),
        None => Ok(answer),
    }
}

/// Waits until the controller is idle.
fn idle(client: &mut LineProcess) -> Result<Usage, Box<dyn Error>> {
    const STEP: Duration = Duration::from_millis(500);
    let start = Instant::now();
    let (mut before, mut quiet): (Usage, u32) = (client.ask("usage")?, 0);
    loop {
        sleep(STEP);
        let now: Usage = client.ask("usage")?;
        let is_quiet = now.cpu - before.cpu < STEP.as_secs_f64() / 50.0 && now.events <= before.events;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        before = now;
        if quiet >= 4 || start.elapsed() > Duration::from_secs(120) {
            return Ok(now);
        }
    }
}

/// The part of the results page.
pub fn section(out: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.names(WEBSITES).is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Controllers\n\nCustom resources with a deployment and a service each, reconciled by server-side apply and a status, \
         first all from nothing, then after a change of each. Goals are ratios to controller-runtime.\n"
    )?;
    writeln!(out, "| | controller-runtime | kube-runtime | ours | ours / controller-runtime | goal |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    for (title, figure, unit, goal) in ROWS {
        let get = |name: &str| summary.get(WEBSITES, name, figure);
        let show = |name: &str| get(name).map_or_else(|| "–".to_owned(), |cell| unit.show(cell));
        let ratio = get("ours").zip(get("controller-runtime")).map(|(ours, theirs)| ours.median / theirs.median);
        let goal = goal.map(|goal| {
            let reached = ratio.map_or("", |ratio| if ratio <= goal { "✓" } else { "✗" });
            format!("≤ {} {reached}", ratio_text(goal))
        });
        writeln!(
            out,
            "| {title} | {} | {} | {} | {} | {} |",
            show("controller-runtime"),
            show("kube-runtime"),
            show("ours"),
            ratio.map_or_else(|| "–".to_owned(), ratio_text),
            goal.unwrap_or_default()
        )?;
    }
    Ok(())
}
