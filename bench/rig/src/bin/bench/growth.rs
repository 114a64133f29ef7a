//! Scaling: whether cost grows at most linearly with the number of objects and handlers.

use std::fmt::Write;

use rig::chart::{self, Chart, Line, Scale};
use rig::machine::Machine;

use crate::plan::{HANDLERS, Options, handlers_group};
use crate::summary::{ONE_MORE, Summary};
use crate::table::{Unit, digits};

/// Object counts.
pub const COUNTS: [u64; 4] = [10_000, 30_000, 100_000, 300_000];
/// Maximum object count of other clients: they would need 5 to 16 GB for 300,000 pods.
pub const PEERS_TO: u64 = 100_000;
/// Maximum ratio of the cost per object at the largest count to that at the smallest.
const MOST: f64 = 1.2;

/// The group of clients with this many objects.
pub fn group(count: u64) -> String {
    format!("{count} pods")
}

/// The measured growth.
pub struct Growth<'a> {
    summary: &'a Summary,
    counts: Vec<u64>,
    names: Vec<String>,
}

/// A cost per object or per update.
struct Cost {
    title: &'static str,
    unit: Unit,
    of: fn(&Growth<'_>, u64, &str) -> Option<f64>,
}

const COSTS: [Cost; 5] = [
    Cost {
        title: "CPU until synced, an object",
        unit: Unit::Micros,
        of: |growth, count, name| growth.each(count, name, "sync.cpu").map(|seconds| seconds * 1e6),
    },
    Cost {
        title: "the same, and housework after it",
        unit: Unit::Micros,
        of: |growth, count, name| growth.each(count, name, "sync.cpu_settled").map(|seconds| seconds * 1e6),
    },
    Cost {
        title: "memory held, an object",
        unit: Unit::PlainBytes,
        of: |growth, count, name| {
            Some(growth.each(count, name, "held.rss")? - growth.each(count, name, "start.rss").unwrap_or(0.0))
        },
    },
    Cost {
        title: "peak memory of the first list, an object",
        unit: Unit::PlainBytes,
        of: |growth, count, name| {
            Some(growth.each(count, name, "sync.peak_settled")? - growth.each(count, name, "start.rss").unwrap_or(0.0))
        },
    },
    Cost {
        title: "CPU for an update",
        unit: Unit::Micros,
        of: |growth, count, name| growth.figure(&group(count), name, "updates.keys.cpu"),
    },
];

impl<'a> Growth<'a> {
    /// Extracts the growth from the measurements.
    pub fn of(summary: &'a Summary, options: &Options) -> Self {
        let counts: Vec<u64> = COUNTS.iter().map(|count| if options.quick { count / 10 } else { *count }).collect();
        let groups = counts.iter().map(|count| group(*count)).chain(HANDLERS.map(handlers_group));
        let mut names: Vec<String> = Vec::new();
        for name in groups.flat_map(|group| summary.names(&group).into_iter().map(str::to_owned).collect::<Vec<_>>()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort_by_key(|name| (!name.starts_with("ours"), name.contains("decoded"), name.contains("compact")));
        Self { summary, counts, names }
    }

    pub fn page(&self, machine: &Machine, options: &Options) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        _ = self.write(&mut out, machine, options);
        out
    }

    pub fn draw(&self) -> String {
        let mut charts: Vec<Chart> = COSTS
            .iter()
            .map(|cost| {
                let points = |name: &str| {
                    self.counts
                        .iter()
                        .filter_map(|&count| Some((count as f64, (cost.of)(self, count, name)?)))
                        .collect()
                };
                let unit = if matches!(cost.unit, Unit::Micros) { "µs" } else { "bytes" };
                self.chart(format!("{}, {unit}, by the number of pods", cost.title), points)
            })
            .collect();
        charts.push(self.chart("CPU for an update, µs, by the number of handlers".to_owned(), |name| {
            HANDLERS.iter().filter_map(|&handlers| Some((handlers as f64, self.handlers(handlers, name)?))).collect()
        }));
        charts.retain(|chart| chart.lines.iter().any(|line| !line.points.is_empty()));
        chart::draw(&charts)
    }

    fn chart(&self, title: String, points: impl Fn(&str) -> Vec<(f64, f64)>) -> Chart {
        let lines = self.names.iter().map(|name| Line { name: name.clone(), points: points(name) });
        Chart { title, scale: Scale::Logarithmic, lines: lines.collect() }
    }

    fn write(&self, out: &mut String, machine: &Machine, options: &Options) -> std::fmt::Result {
        writeln!(out, "# Growth\n")?;
        writeln!(
            out,
            "Written by `just growth{}` {machine}. \
             Medians of interleaved repetitions. Raw figures are in `growth.json`.\n\n![growth](growth.svg)\n",
            options.words.iter().skip(1).map(|word| format!(" {word}")).collect::<String>(),
        )?;
        self.objects(out)?;
        self.more_handlers(out)
    }

    fn objects(&self, out: &mut String) -> std::fmt::Result {
        let (Some(fewest), Some(most)) = (self.counts.first(), self.counts.last()) else { return Ok(()) };
        writeln!(
            out,
            "## Objects\n\nWhat one of so many pods costs; memory without what the process holds before it begins. At {most} it may be at most {MOST} \
             times what it is at {fewest}.\n"
        )?;
        let heads: Vec<String> = self.counts.iter().map(u64::to_string).collect();
        writeln!(out, "| | | {} | {most} / {fewest} | |", heads.join(" | "))?;
        writeln!(out, "|---|---|{}", "---|".repeat(self.counts.len() + 2))?;
        for cost in &COSTS {
            for name in &self.names {
                let costs: Vec<Option<f64>> = self.counts.iter().map(|count| (cost.of)(self, *count, name)).collect();
                if costs.iter().all(Option::is_none) {
                    continue;
                }
                let cells: Vec<String> =
                    costs.iter().map(|one| one.map_or_else(|| "–".to_owned(), |one| cost.unit.show_one(one))).collect();
                let ratio =
                    costs.first().copied().flatten().zip(costs.last().copied().flatten()).map(|(few, many)| many / few);
                let mark = match ratio {
                    Some(ratio) if name.starts_with("ours") => {
                        if ratio <= MOST {
                            "✓"
                        } else {
                            "✗"
                        }
                    }
                    _ => "",
                };
                let ratio = ratio.map_or_else(|| "–".to_owned(), digits);
                writeln!(out, "| {} | {name} | {} | {ratio} | {mark} |", cost.title, cells.join(" | "))?;
            }
        }
        writeln!(out)
    }

    fn more_handlers(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "## Handlers\n\nCPU for an update, handlers that count; the last column is what one more handler costs each event, its callback \
             included. The goal is a microsecond beyond the callback.\n"
        )?;
        let heads: Vec<String> = HANDLERS.iter().map(u64::to_string).collect();
        writeln!(out, "| | {} | one more | |\n|---|{}", heads.join(" | "), "---|".repeat(HANDLERS.len() + 2))?;
        for name in &self.names {
            let costs: Vec<Option<f64>> = HANDLERS.iter().map(|handlers| self.handlers(*handlers, name)).collect();
            if costs.iter().all(Option::is_none) {
                continue;
            }
            let show = |cost: Option<f64>| cost.map_or_else(|| "–".to_owned(), |cost| Unit::Micros.show_one(cost));
            let more = self.figure(ONE_MORE, name, "handlers.more");
            let mark = match more {
                Some(more) if name.starts_with("ours") => {
                    if more <= 1.0 {
                        "✓"
                    } else {
                        "✗"
                    }
                }
                _ => "",
            };
            let cells: Vec<String> = costs.into_iter().map(show).collect();
            writeln!(out, "| {name} | {} | {} | {mark} |", cells.join(" | "), show(more))?;
        }
        Ok(())
    }

    fn handlers(&self, handlers: u64, name: &str) -> Option<f64> {
        self.figure(&handlers_group(handlers), name, "handlers.cpu")
    }

    fn each(&self, count: u64, name: &str, figure: &str) -> Option<f64> {
        self.figure(&group(count), name, figure).map(|all| all / count as f64)
    }

    fn figure(&self, group: &str, name: &str, figure: &str) -> Option<f64> {
        self.summary.get(group, name, figure).map(|spread| spread.median)
    }
}
