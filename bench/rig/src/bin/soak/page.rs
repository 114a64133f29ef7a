//! The report as a page and as a plot.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use rig::chart::{self, Chart, Scale};
use rig::machine::Machine;
use serde_json::{Value, json};

use crate::options::Options;
use crate::record::Line;
use crate::run::Soaked;

/// The raw figures.
pub fn raw(options: &Options, machine: &Machine, soaked: &Soaked) -> Value {
    json!({ "machine": machine, "options": quoted(&options.words), "lines": soaked.lines, "checks": soaked.checks })
}

/// The page.
pub fn write(options: &Options, machine: &Machine, soaked: &Soaked) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    _ = page(&mut out, options, machine, soaked);
    out
}

fn page(out: &mut String, options: &Options, machine: &Machine, soaked: &Soaked) -> std::fmt::Result {
    let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let loads = || soaked.lines.iter().map(|line| line.load);
    writeln!(out, "# A soak\n")?;
    writeln!(
        out,
        "Written by `{}` at commit {}, {}, on {} ({} cores, {} GiB, Linux {}), with {}. The machine's load was {:.1} to {:.1}. {}\n",
        format!("just soak {}", quoted(&options.words)).trim_end(),
        machine.commit,
        machine.date,
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        machine.rust,
        loads().fold(f64::INFINITY, f64::min),
        loads().fold(0.0, f64::max),
        options.note
    )?;
    let faults = &soaked.faults;
    writeln!(
        out,
        "{:.0} minutes against a simulated cluster of {} pods with {} writes per second, in another process. Its connections were cut {} times, \
         {} times with all versions expired, {} times with requests or watches that failed, were torn, stalled or sent events twice. {} watches \
         were detected as stalled. {} handlers and {} informers were added and removed, caches were compared with the server {} times during the run, and a \
         controller reconciled {} times. The figures are explained in [the rig's page](../README.md).\n\n![over time](soak.svg)\n",
        options.time.as_secs_f64() / 60.0,
        options.pods,
        options.rate,
        number(&faults.cuts),
        number(&faults.expiries),
        number(&faults.failures),
        soaked.stalls,
        soaked.lines.last().map_or(0, |line| line.handlers),
        soaked.visits,
        soaked.comparisons,
        soaked.reconciled
    )?;
    writeln!(out, "## Verdict\n\n| | found | wanted | |\n|---|---|---|---|")?;
    for check in &soaked.checks {
        let mark = if check.passed { "✓" } else { "✗" };
        writeln!(out, "| {} | {} | {} | {mark} |", check.what, check.found.replace('|', "/"), check.wanted)?;
    }
    writeln!(
        out,
        "\n## Line by line\n\nBytes are means of the interval, tasks and connections are modes, counts are totals since the start. \
         The lag is from a write to the handler's call: the median and the maximum, which includes outages.\n"
    )?;
    writeln!(
        out,
        "| minute | RSS | heap | objects | writes | events delivered | lag | max lag | tasks | connections | handlers removed | relists | watches | requests | errors | CPU | server's CPU | server's RSS |"
    )?;
    writeln!(out, "|{}", "---|".repeat(18))?;
    for line in &soaked.lines {
        writeln!(
            out,
            "| {:.1} | {:.1} MB | {:.1} MB | {} | {:.0} | {} | {:.2} ms | {:.0} ms | {} | {} | {} | {} | {} | {:.0} | {} | {:.1} % | {:.1} % | {:.0} MB |",
            line.at / 60.0,
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
            line.requests,
            line.errors,
            line.cpu * 100.0,
            line.host_cpu * 100.0,
            line.host_resident / 1e6
        )?;
    }
    Ok(())
}

/// The plot.
pub fn draw(soaked: &Soaked) -> String {
    let line = |name: &str, figure: fn(&Line) -> f64| chart::Line {
        name: name.to_owned(),
        // Intervals without events have no latency.
        points: soaked.lines.iter().map(|line| (line.at / 60.0, figure(line))).filter(|(_, y)| y.is_finite()).collect(),
    };
    let chart = |title: &str, lines| Chart { title: title.to_owned(), scale: Scale::Linear, lines };
    chart::draw(&[
        chart("MB, over minutes", vec![line("RSS", |line| line.resident / 1e6), line("heap", |line| line.heap / 1e6)]),
        chart("objects in the caches", vec![line("objects", |line| line.objects as f64)]),
        chart(
            "tasks and connections",
            vec![line("tasks", |line| line.tasks), line("connections", |line| line.connections)],
        ),
        chart("ms from a write to a handler, median", vec![line("lag", |line| line.lag_median)]),
        chart("events delivered, thousands", vec![line("events", |line| line.events as f64 / 1e3)]),
        chart(
            "relists and handlers removed",
            vec![line("relists", |line| line.relists as f64), line("handlers", |line| line.handlers as f64)],
        ),
    ])
}

fn quoted(words: &[String]) -> String {
    let mut shown = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            // The output folder and the note do not affect the run.
            "--out" | "--note" => drop(words.next()),
            other => shown.push(other),
        }
    }
    shown.join(" ")
}
